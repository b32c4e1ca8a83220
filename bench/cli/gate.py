"""`uqbench baseline`, `uqbench gate` and `uqbench history`: numbers under regression control."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli.options import (
    data_option,
    defaulted,
    output_option,
    plugin_option,
    repository_option,
    set_data_folder,
    suite_argument,
)
from bench.cli.output import Command, echo, end
from bench.counts import plural
from bench.errors import UserError
from bench.run.progress_bar import progress_bar
from bench.store import DEFAULT_URL

if TYPE_CHECKING:
    from bench.gate.baseline import Baseline
    from bench.gate.measure import SuiteMeasurer
    from bench.plan.suite import Suite
    from bench.plugins.registry import Registry

store_option = click.option(
    "--store", metavar="URL", help="Read what is stored there and run the rest into it.  [default: run everything anew]"
)
workers_option = click.option("--workers", type=click.IntRange(min=1), help="Worker processes; by default as it pays.")


@click.command(cls=Command)
@suite_argument(required=True)
@output_option("--out", metavar="FILE", help="The file.  [default: baselines/SUITE.json]")
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds, instead of the suite's number.")
@click.option("--update", is_flag=True, help="Replace the baseline that is there; needs --why.")
@click.option("--why", metavar="REASON", help="Why the numbers may change; kept in the file.")
@store_option
@workers_option
@data_option
@plugin_option
def baseline(
    suite: str,
    out: str | None,
    seeds: int | None,
    update: bool,
    why: str | None,
    store: str | None,
    workers: int | None,
    data: str | None,
    plugins: Sequence[str],
) -> None:
    """Write what SUITE measures to a file that 'uqbench gate' holds later runs to."""
    from bench.gate.baseline import Baseline, Reason, read_baseline, write_baseline
    from bench.gate.same_suite import suite_content
    from bench.metrics import using_metrics
    from bench.workflow import registry_of

    registry = registry_of(plugins)
    chosen, path = _suite(suite, data, registry), Path(out or f"baselines/{Path(suite).stem}.json")
    before = read_baseline(path) if path.exists() else None
    if before is not None and not update:
        raise UserError(f"{path} is there already; replace it with --update --why REASON")
    if update and not (why or "").strip():
        raise UserError("--update: say why the numbers may change, with --why REASON; it is kept in the file")
    if update and before is None:
        raise UserError(f"--update: there is no {path} yet; leave --update out")
    if before is not None and before.suite != chosen.name:
        raise UserError(f"{path} is the baseline of suite {before.suite}, not of {chosen.name}")
    number = seeds or (len(before.measured.seeds) if before else chosen.seeds)
    with _measurer(chosen, registry, store, workers, number) as measure:
        measured = measure(number)
    if not measured.values:
        raise UserError(
            f"suite {chosen.name}: nothing was measured, so there is no baseline; see 'uqbench run {suite}'"
        )
    today = time.strftime("%Y-%m-%d", time.gmtime())
    reason = Reason(today, ", ".join(measured.codes), (why or "first baseline").strip())
    reasons = (*(before.reasons if before else ()), reason)
    written = Baseline(chosen.name, suite_content(chosen), measured, reasons)
    write_baseline(written, path)
    with using_metrics(registry.metrics):
        _print_baseline(written, before, path)


@click.command(cls=Command)
@suite_argument(required=True)
@click.option("--baseline", "baseline_file", required=True, metavar="FILE", help="Made by 'uqbench baseline'.")
@store_option
@click.option("--sequential", is_flag=True, help="Look at few seeds first, and at more only where it is undecided.")
@defaulted(
    "--first",
    type=click.IntRange(min=1),
    default=3,
    metavar="SEEDS",
    help="Seeds of the first look of --sequential; each further look has twice as many.",
)
@click.option("--strict", is_flag=True, help="Inconclusive comparisons fail, too.")
@click.option("--json", "json_", is_flag=True, help="Print JSON.")
@output_option("--junit", metavar="FILE", help="Also write JUnit's XML.")
@output_option("--markdown", "markdown_file", metavar="FILE", help="Also write a summary for a pull request.")
@workers_option
@data_option
@plugin_option
def gate(
    suite: str,
    baseline_file: str,
    store: str | None,
    sequential: bool,
    first: int,
    strict: bool,
    json_: bool,
    junit: str | None,
    markdown_file: str | None,
    workers: int | None,
    data: str | None,
    plugins: Sequence[str],
) -> None:
    """Tell whether any number of SUITE is worse than its baseline: exit 0 if not, 1 if so."""
    from bench.gate import output
    from bench.gate.baseline import read_baseline
    from bench.gate.same_suite import check_suite_against
    from bench.machine.files import write_output
    from bench.stats.sequential import doubling
    from bench.workflow import registry_of

    held_to = read_baseline(Path(baseline_file))
    registry = registry_of(plugins)
    chosen = _suite(suite, data, registry)
    check_suite_against(chosen, held_to, baseline_file)
    from bench.gate.measure import gate_suite  # brings torch, which a mistake in the call need not wait for

    seeds = len(held_to.measured.seeds)
    looks = doubling(first, seeds) if sequential else ()
    with _measurer(chosen, registry, store, workers, seeds) as measure:
        result = gate_suite(chosen, held_to, measure, looks)
    if junit:
        write_output(Path(junit), output.junit(result, strict=strict))
    if markdown_file:
        write_output(Path(markdown_file), output.markdown(result, strict=strict))
    echo(output.as_json(result, strict=strict) if json_ else "\n".join(output.gate_lines(result, strict=strict)))
    if result.failing(strict=strict):
        end(1)


@click.command(cls=Command)
@suite_argument()
@click.option("--metric", required=True, metavar="NAME", help="The metric.")
@output_option("--out", required=True, metavar="DIR", help="Where the page and its data are written.")
@defaulted(
    "--store", "urls", multiple=True, default=[DEFAULT_URL], metavar="URL", help="A store of results; repeatable."
)
@repository_option
@plugin_option
def history(
    metric: str, out: str, suite: str | None, urls: Sequence[str], repository: str | None, plugins: Sequence[str]
) -> None:
    """Write how a metric of SUITE went over the versions of the code, with the commits at which it changed.

    SUITE may be left out where the stores hold only one.
    """
    from contextlib import ExitStack, closing

    from bench.history.files import metric_history, write_history
    from bench.history.repository import find_repository
    from bench.metrics import using_metrics
    from bench.store.store import Store
    from bench.workflow import registry_of

    with ExitStack() as opened:
        opened.enter_context(using_metrics(registry_of(plugins).metrics))
        stores = [opened.enter_context(closing(Store(url, create=False, writable=False))) for url in urls]
        place = find_repository(repository)
        found = metric_history(stores, metric, suite)
        written = write_history(metric, found, Path(out), place)
    versions = {(version.code, version.plugins) for one in found.lines for version in one.series.versions}
    count = f"{len(found.lines)} series, {plural(len(versions), 'version')}"
    echo(f"{metric}: {count} of code, plug-ins and harness")
    for one in found.lines:
        for change in one.changes:
            version, label = one.series.versions[change.at], one.series.label
            echo(
                f"{change.verdict:<6} since {version.name}: {label.method} on {label.dataset}: "
                f"{change.before:.4g} -> {change.after:.4g}  {version.subject}".rstrip()
            )
            if cause := one.series.changed_plugins(change.at):
                echo(f"       {cause}")
    if any(one.changes for one in found.lines):
        echo(f"({100 * found.alpha:g} % chance of any false one, Bonferroni over {plural(found.cuts, 'place')})")
    echo(f"history: {written[0]}")


def _suite(name: str, data: str | None, registry: "Registry") -> "Suite":
    from bench.metrics import using_metrics
    from bench.plan.suite import load_suite

    set_data_folder(data)
    with using_metrics(registry.metrics):
        return load_suite(name).only([], [])  # without datasets that run only when they are selected by name


@contextmanager
def _measurer(
    suite: "Suite", registry: "Registry", store: str | None, workers: int | None, seeds: int
) -> "Iterator[SuiteMeasurer]":
    """Yield a measurer that shows a progress bar."""
    from bench.gate.measure import StoppedError, SuiteMeasurer, store_for
    from bench.run.options import RunOptions

    total = len(suite.datasets) * len(suite.methods) * seeds
    settings = RunOptions(workers=workers, device="cpu").settings()
    with store_for(store) as opened, progress_bar(suite.name, total) as monitor:
        try:
            yield SuiteMeasurer(suite, registry, opened, settings, monitor)
        except StoppedError as error:
            echo(f"uqbench: {error}", err=True)
            end(128 + (monitor.stop.signal or 2))


def _print_baseline(new: "Baseline", before: "Baseline | None", path: Path) -> None:
    from bench.gate.verdicts import FEWEST_PAIRS

    seeds, measured = len(new.measured.seeds), new.measured
    places = f"{plural(len(measured.values), 'pair')} of dataset and method"
    echo(f"{path}: {plural(measured.count, 'value')}, {places}, {plural(seeds, 'seed')}")
    for (dataset, method), statuses in measured.lost.items():
        for status, which in statuses.items():
            echo(f"note: {dataset} {method}: {len(which)} of {plural(seeds, 'seed')} {status}", err=True)
    if seeds < FEWEST_PAIRS:
        echo(f"note: with fewer than {FEWEST_PAIRS} seeds a gate can only find identical values", err=True)
    if before is not None:
        from bench.gate.verdicts import Rules, compare

        moved = [row for row in compare(before.measured, measured, Rules()) if row.verdict != "identical"]
        total = sum(map(len, measured.values.values()))
        echo(f"{len(moved)} of {plural(total, 'metric')} moved: see 'git diff {path}'")


COMMANDS = (baseline, gate, history)
