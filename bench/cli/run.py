"""`uqbench run` and `uqbench retry`: compute cells, store them and print a summary."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from bench.cli.executor_options import compute_options
from bench.cli.options import (
    data_option,
    json_option,
    plugin_option,
    repeated,
    set_data_folder,
    store_option,
    suite_argument,
)
from bench.cli.output import Command, echo, fail
from bench.counts import plural
from bench.errors import UserError
from bench.run.progress_bar import progress_bar

if TYPE_CHECKING:
    from bench.plan.suite import Suite
    from bench.run.options import RunOptions
    from bench.run.summary import Summary
    from bench.spec.cell import Cell
    from bench.store.store import Store
    from bench.workflow import SuiteRun


@click.command(cls=Command)
@suite_argument(required=True)
@repeated("--method", "methods", help="Only this method, of the suite or not; repeatable; 'all' for every method.")
@repeated("--dataset", "datasets", help="Only this dataset, of the suite or not; repeatable.")
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds (repeats), instead of the suite's number.")
@click.option(
    "--splits", type=click.IntRange(min=1), help="How many splits the seeds share in turn, instead of one split each."
)
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key of the suite; repeatable.")
@store_option
@compute_options
@data_option
@plugin_option
@click.option("--dry-run", is_flag=True, help="Show which cells would run, and run none.")
@json_option
def run(
    suite: str,
    methods: Sequence[str],
    datasets: Sequence[str],
    seeds: int | None,
    splits: int | None,
    changes: Sequence[str],
    store: str,
    compute: "RunOptions",
    data: str | None,
    plugins: Sequence[str],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run SUITE (a name from 'uqbench list suites', or a TOML file); what is stored already is not run again."""
    set_data_folder(data)
    from bench.workflow import choose_suite, registry_of, run_suite

    changes = changes if splits is None else [*changes, f"splits={splits}"]
    part: Any = {"methods": methods, "datasets": datasets, "seeds": seeds, "changes": changes}
    if dry_run:
        device = compute.settings().device  # raises if the options do not go together
        registry = registry_of(plugins)
        _show_plan(choose_suite(suite, registry, **part), registry, store, device, as_json)
        return
    done = run_suite(suite, **part, plugins=plugins, store=store, options=compute)
    with closing(done.store):
        print_summary(done.summary, done.suite.name, done.store.address, as_json)
        if not as_json:
            _show_results(done)
    end_of_run(done.summary, done.stopped_by)


def _show_results(run: "SuiteRun") -> None:
    """Print the table of a probe that has one of its own, or how the methods stand."""
    from bench.metrics import using_metrics
    from bench.probes import probe_types
    from bench.report.standings import standing_lines, value_lines

    results, suite = run.results, run.suite
    kinds = {suite.protocol_for(name).probe["kind"] for name in suite.datasets}
    with using_metrics(results.declarations):
        own = "\n\n".join(text for kind in sorted(kinds) if (text := probe_types()[kind].table(results)))
        lines = [own] if own else [*value_lines(results), "", *standing_lines(results)]
    echo("\n".join(["", *lines]))


@click.command(cls=Command)
@suite_argument()
@click.option("--failed", is_flag=True, help="Retry the cells that failed (the only kind there is to retry).")
@store_option
@compute_options
@data_option
@plugin_option
@json_option
def retry(
    suite: str | None,
    failed: bool,
    store: str,
    compute: "RunOptions",
    data: str | None,
    plugins: Sequence[str],
    as_json: bool,
) -> None:
    """Run the cells of SUITE (or of all suites) that failed again, and nothing else."""
    if not failed:
        raise UserError("retry: choose the cells with --failed; missing ones are run by 'uqbench run SUITE'")
    set_data_folder(data)
    from bench.run.driver import rerun
    from bench.store.store import Store
    from bench.workflow import registry_of

    with closing(Store(store, create=False)) as results:
        if suite is not None:
            results.require_suite(suite)
        cells = results.failed(suite)
        with progress_bar("retry", len(cells)) as monitor:
            summary = rerun(cells, registry_of(plugins), results, compute.settings(), monitor)
    print_summary(summary, "retry", results.address, as_json)
    end_of_run(summary, monitor.stop.signal)


def end_of_run(summary: "Summary", stopped_by: int | None) -> None:
    """Exit with the code of how the run ended."""
    if summary.left:
        how, code = ("stopped", 128 + stopped_by) if stopped_by is not None else ("the run ended too early", 1)
        fail(f"{how} with {plural(summary.left, 'cell')} left; the same command goes on from there", code)
    if not summary.well:
        reasons = [f"{plural(len(summary.failures), 'cell')} failed"] * bool(summary.failures)
        reasons += [f"{plural(summary.broken, 'cell')} could not begin"] * bool(summary.broken)
        fail(f"exit code 1: {' and '.join(reasons)}", 1)


def _show_plan(suite: "Suite", registry: Any, store: str, device: str, as_json: bool) -> None:
    from bench.plan.cells import Refused, plan

    rows: list[dict[str, Any]] = []
    about: set[str] = set()
    broken = 0
    with _stored(store) as stored:
        for task in plan(suite, registry, device):
            if isinstance(task, Refused):
                broken += task.cells * task.fault
                rows.append({"dataset": task.dataset, "method": task.method, "state": f"cannot run: {task.reason}"})
                continue
            if task.about and task.about not in about:
                about.add(task.about)
                echo(f"uqbench: {task.about}", err=True)
            done = stored.done(cell.key for cell in task.cells) if stored else set()
            rows += [{**_place(cell), "state": "stored" if cell.key in done else "to run"} for cell in task.cells]
    if as_json:
        echo(json.dumps(rows, indent=2))
    else:
        _print_plan(rows)
    if broken:
        fail(f"exit code 1: {plural(broken, 'cell')} could not begin", 1)


@contextmanager
def _stored(url: str) -> "Iterator[Store | None]":
    """Open a store for reading; None where a run would make it."""
    from bench.store.store import NoStoreError, Store

    try:
        opened = Store(url, create=False, writable=False)
    except NoStoreError:
        yield None
        return
    with closing(opened):
        yield opened


def _print_plan(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        where = f"seed {row['seed']}  {row['key'][:12]}" if "key" in row else ""
        echo(f"{row['dataset']:<12} {row['method']:<16} {where}  {row['state']}")
    states = Counter(row["state"] for row in rows)
    echo(f"{plural(states['to run'], 'cell')} to run, {states['stored']} stored")


def print_summary(summary: "Summary", suite: str, store: str, as_json: bool) -> None:
    """Print what a run did."""
    if as_json:
        counts = {name: getattr(summary, name) for name in ("stored", "skipped", "elsewhere", "diverged", "left")}
        content = {
            "suite": suite,
            "store": store,
            **counts,
            "failed": [{**_place(cell), "message": message} for cell, message in summary.failures],
            "refused": [vars(r) for r in summary.refused],
            "doubts": [{"dataset": c.dataset, "method": c.method, "key": c.key, "why": w} for c, w in summary.doubts],
            "no_longer_shown": summary.no_longer_shown,
            "seconds": summary.seconds,
        }
        echo(json.dumps(content, indent=2))
        return
    for refused in summary.refused:
        which = f"{refused.dataset} {refused.method}".strip()  # no method: the whole dataset
        echo(f"{'FAILED' if refused.fault else 'skipped'}: {which}: {refused.reason}", err=True)
    # The seeds of one method usually fail alike.
    for reason in dict.fromkeys(f"{c.dataset} {c.method}: {m.partition(chr(10))[0]}" for c, m in summary.failures):
        echo(f"FAILED: {reason}", err=True)
    for why, doubted in _by_reason(summary.doubts).items():
        which = f"all {len(doubted)} cells" if len(doubted) == summary.stored > 1 else ", ".join(doubted)
        echo(f"warning: {which}: {why}", err=True)
    for line in summary.no_longer_shown:
        echo(f"note: {line}", err=True)
    echo(f"{suite}: {summary}; results are in {store}")


def _place(cell: "Cell") -> dict[str, Any]:
    return {name: getattr(cell, name) for name in ("dataset", "method", "split", "seed", "key")}


def _by_reason(doubts: "Sequence[tuple[Cell, str]]") -> dict[str, list[str]]:
    """Return the cells by the warning they carry."""
    found: dict[str, list[str]] = {}
    for cell, reasons in doubts:
        for reason in reasons.split("; "):
            found.setdefault(reason, []).append(f"{cell.dataset} {cell.method}")
    return found


COMMANDS: tuple[click.Command, ...] = (run, retry)
