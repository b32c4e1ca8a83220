"""`uqbench score` and `uqbench submit`: predictions that were made elsewhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli.options import data_option, json_option, output_option, plugin_option, set_data_folder, store_option
from bench.cli.output import Command, echo, end
from bench.cli.store import plain, print_json
from bench.counts import plural
from bench.errors import UserError

if TYPE_CHECKING:
    from bench.plugins.registry import Registry


@click.command(cls=Command)
@click.argument("path", metavar="PATH")
@data_option
@plugin_option
@json_option
def score(path: str, data: str | None, plugins: Sequence[str], as_json: bool) -> None:
    """Score predictions that were made anywhere: PATH is a submission.toml, or the folder that holds one.

    The document says who predicted what and how, and names the files: .npz, .csv or .parquet. 'uqbench data export'
    writes the rows of every split, their fingerprints and a document to be filled in. Nothing is stored.
    """
    set_data_folder(data)
    from bench.plugins.registry import Registry
    from bench.submissions.markdown import as_plain, mean_metrics
    from bench.submissions.scoring import score_submission

    found = score_submission(Path(path), Registry([Path(p) for p in plugins]))
    if as_json:
        print_json(as_plain(found))
        return
    about = found.submission
    echo(plain(f"{about.method} on {about.dataset}, mean of {plural(len(found.scored), 'split')}; not re-run"))
    values = mean_metrics(found)
    width = max(map(len, values), default=0)
    for name, value in values.items():
        echo(f"  {name:<{width}}  {value:.6g}")


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--suite", metavar="NAME", help="The suite of the store; by default its only one.")
@click.option("--replace", "replacing", is_flag=True, help="Show these predictions instead of earlier ones.")
@click.option("--check", is_flag=True, help="Only verify and score, as a pull request needs it; nothing is stored.")
@output_option("--markdown", metavar="FILE", help="Write the result of --check to FILE.")
@store_option
@data_option
@plugin_option
def submit(
    paths: Sequence[str],
    suite: str | None,
    replacing: bool,
    check: bool,
    markdown: str | None,
    store: str,
    data: str | None,
    plugins: Sequence[str],
) -> None:
    """Put predictions that were made elsewhere into a store, beside the runs of a suite on the same rows.

    PATH is a submission.toml or the folder that holds one. The data are compared with the fingerprint, metrics are
    computed here, and the method's name ends with "(not re-run)" wherever it is shown.

    --check needs no store: it exits with 1 if a submission is refused.
    """
    set_data_folder(data)
    from bench.plugins.registry import Registry

    registry = Registry([Path(p) for p in plugins])
    if markdown is not None and not check:
        raise UserError("--markdown is what --check writes; give --check")
    if check:
        _check([Path(path) for path in paths], registry, markdown)
        return
    from bench.submissions.entry import enter
    from bench.submissions.scoring import score_submission
    from bench.workflow import open_store

    with open_store(store) as opened:
        for path in paths:
            entered = enter(opened, score_submission(Path(path), registry), suite, replacing=replacing)
            before = f", {entered.there} stored before" if entered.there else ""
            where = f"suite {entered.suite}: {', '.join(entered.datasets)}"
            echo(plain(f"{entered.method}: {plural(entered.new, 'cell')} stored{before}; {where}"))


def _check(paths: Sequence[Path], registry: "Registry", markdown: str | None) -> None:
    from bench.machine.files import write_output
    from bench.submissions.markdown import Checked, as_markdown
    from bench.submissions.scoring import score_submission

    checked: list[Checked] = []
    for path in paths:
        try:
            checked.append((path, score_submission(path, registry)))
        except UserError as error:
            checked.append((path, " ".join(str(error).split())))
    text = as_markdown(checked)
    if markdown is None:
        echo(text.rstrip("\n"))
    else:
        write_output(Path(markdown), text)
    for path, found in checked:
        if isinstance(found, str):
            echo(plain(f"uqbench: {path}: {found}"), err=True)
    if any(isinstance(found, str) for _, found in checked):
        end(1)
