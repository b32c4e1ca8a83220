"""`uqbench compare` and `uqbench rank`: verdicts on stored results."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import json_option, store_option
from bench.errors import UserError, unknown_name
from bench.json_values import without_nan

if TYPE_CHECKING:
    import pandas as pd

    from bench.metrics import Metric
    from bench.stats import Ranking, Settings

suite_option = click.option("--suite", metavar="NAME", help="The suite; needed where the store holds several.")
metric_option = click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Only this metric; may be repeated.  [default: the suite's]",
)
alpha_option = click.option("--alpha", default=0.05, show_default=True, help="The level of the tests.")
correction_option = click.option(
    "--correction", default="holm", show_default=True, metavar="holm|bh", help="Holm, or Benjamini-Hochberg."
)


@dataclass(frozen=True)
class _Stored:
    """One suite, read from its store."""

    store: str  # its address, without a password
    suite: str
    metrics: list[str]
    frame: "pd.DataFrame"
    cells: "pd.DataFrame"


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@metric_option
@suite_option
@store_option
@click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="Only this dataset; may be repeated.")
@click.option(
    "--margin",
    default="0.5sd",
    show_default=True,
    metavar="SIZE",
    help="Differences below it do not matter: a number in the metric's unit, or a share of the seeds' deviation.",
)
@click.option(
    "--test-share",
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Share of test rows where repeats are different splits of the same rows; 0: repeats are independent.",
)
@click.option("--power", default=0.8, show_default=True, help="For the smallest difference seen and the seeds needed.")
@alpha_option
@correction_option
@json_option
def compare(
    a: str,
    b: str,
    metrics: Sequence[str],
    suite: str | None,
    store: str,
    datasets: Sequence[str],
    margin: str,
    test_share: float,
    power: float,
    alpha: float,
    correction: str,
    as_json: bool,
) -> None:
    """Compare method A with method B: on every dataset, and over the datasets.

    Values are paired by split and seed. The verdict is about A: better, worse, equivalent or inconclusive.
    """
    from bench.stats import Margin, Settings
    from bench.stats import compare as compared
    from bench.stats.text import comparison_lines

    settings = Settings(
        alpha=alpha, power=power, correction=_correction(correction), margin=Margin.read(margin), test_share=test_share
    )
    results = _stored(store, suite)
    frame, cells = results.frame, results.cells
    for name in datasets:
        if name not in set(cells["dataset"]):
            raise unknown_name("dataset", name, set(cells["dataset"]), f"suite {results.suite}")
    if datasets:
        frame, cells = frame[frame["dataset"].isin(datasets)], cells[cells["dataset"].isin(datasets)]
    comparison = compared(frame, a, b, _metrics(results, metrics, (a, b)), cells=cells, settings=settings)
    if as_json:
        _print_json({"suite": results.suite, "store": results.store, **asdict(comparison)})
        return
    click.echo(f"suite {results.suite}")
    click.echo("\n".join(comparison_lines(comparison)))


@click.command()
@click.argument("methods", nargs=-1, metavar="[METHOD]...")
@metric_option
@suite_option
@store_option
@alpha_option
@correction_option
@json_option
def rank(
    methods: Sequence[str],
    metrics: Sequence[str],
    suite: str | None,
    store: str,
    alpha: float,
    correction: str,
    as_json: bool,
) -> None:
    """Rank methods (all, or those named) over the datasets of a suite, and tell which ranks differ."""
    from bench.stats import Settings
    from bench.stats.text import ranking_lines

    settings = Settings(alpha=alpha, correction=_correction(correction))
    results = _stored(store, suite)
    rankings, left_out = _rankings(results, methods, metrics, settings)
    if as_json:
        made = [asdict(ranking) for ranking in rankings]
        _print_json({"suite": results.suite, "store": results.store, "rankings": made, "left_out": left_out})
        return
    click.echo(f"suite {results.suite}")
    for ranking in rankings:
        click.echo("\n" + "\n".join(ranking_lines(ranking)))
    for reason in left_out:
        click.echo(f"not ranked: {reason}", err=True)


def _rankings(
    results: _Stored, methods: Sequence[str], metrics: Sequence[str], settings: "Settings"
) -> tuple[list["Ranking"], list[str]]:
    from bench.stats import rank as ranked

    rankings, left_out = [], []
    for metric in _metrics(results, metrics, methods):
        try:
            rankings.append(
                ranked(results.frame, metric, methods=methods or None, cells=results.cells, settings=settings)
            )
        except UserError as error:
            if metrics:
                raise
            left_out.append(str(error))  # of the suite's metrics, some have one dataset only
    if not rankings:
        raise UserError(f"suite {results.suite}: nothing to rank: {'; '.join(left_out) or 'no results'}")
    return rankings, left_out


def _stored(store: str, suite: str | None) -> _Stored:
    from bench.store.results import StoredResults
    from bench.store.store import Store

    with closing(Store(store, create=False, writable=False)) as opened:
        names = list(opened.suites())
        if not names:
            raise UserError(f"--store {opened.address}: no results yet; make some with 'uqbench run SUITE'")
        if suite is None and len(names) > 1:
            raise UserError(f"--store {opened.address} holds several suites; name one with --suite: {', '.join(names)}")
        if suite is not None and suite not in names:
            raise unknown_name("suite", suite, names, f"--store {opened.address}")
        results = StoredResults(opened, suite or names[0])
        return _Stored(opened.address, results.suite, results.metrics, results.frame, results.cells)


def _metrics(results: _Stored, names: Sequence[str], methods: Sequence[str]) -> list["Metric"]:
    """Return the metrics asked for, or those the suite shows, or all there are, that every method named has."""
    from bench.metrics import declaration

    stored = results.frame.groupby("metric")["method"].agg(set)
    for name in names:
        declaration(name)
        if name not in stored.index:
            raise unknown_name("metric", name, stored.index, f"suite {results.suite} has no values")
    chosen = list(dict.fromkeys(names or results.metrics or sorted(stored.index)))
    everybody = set(results.cells["method"])
    wanted = {method for method in methods if method in everybody}  # others are complained about later
    return [declaration(name) for name in chosen if names or (name in stored.index and wanted <= stored[name])]


def _correction(text: str) -> Any:
    from bench.stats.corrections import NAMES

    if text not in NAMES:
        raise unknown_name("correction", text, NAMES)
    return text


def _print_json(content: dict[str, Any]) -> None:
    click.echo(json.dumps(without_nan(content), indent=2, allow_nan=False))
