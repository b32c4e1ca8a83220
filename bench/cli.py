"""The command line. Imports of anything heavy stand inside the commands that need it."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from bench import __version__
from bench.cli_data import data as data_commands
from bench.cli_engine import How, engine_options
from bench.cli_gate import COMMANDS as GATE_COMMANDS
from bench.cli_leaderboard import leaderboard
from bench.cli_plugins import new, verify
from bench.cli_stats import compare, rank
from bench.cli_store import COMMANDS as STORE_COMMANDS
from bench.errors import UserError, unknown_name

if TYPE_CHECKING:
    from bench.cell import Cell
    from bench.registry import Kind, Registry
    from bench.run import Summary
    from bench.signals import Stop
    from bench.store import Store
    from bench.suite import Suite

STORE = "sqlite:///runs/uqbench.db"

Command = Callable[..., Any]
store_option = click.option("--store", default=STORE, show_default=True, metavar="URL", help="Where results are kept.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plugin_option = click.option(
    "--plugin", "plugins", multiple=True, metavar="FILE", help="A file with a plug-in of your own; may be repeated."
)


data_option = click.option("--data", metavar="DIR", help="Where datasets look for their files first.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="uqbench")
def app() -> None:
    """Compare uncertainty methods for neural networks.

    Start with 'uqbench run quick' and 'uqbench report'.
    """


LISTED = ("methods", "datasets", "suites", "metrics", "reports")


@app.command("list")
@click.argument("what", metavar="methods|datasets|suites|metrics|reports")
@json_option
@plugin_option
def list_(what: str, as_json: bool, plugins: Sequence[str]) -> None:
    """List what can be run, measured and reported."""
    if what not in LISTED:
        raise unknown_name("list", what, LISTED)
    rows = _listed(what, plugins)
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        tail = "" if row.get("origin", "built in") == "built in" else f"  ({row['origin']})"
        click.echo(f"{row['name']:<{width}}  {row['summary']}{tail}")


def _listed(what: str, plugins: Sequence[str]) -> list[dict[str, Any]]:
    if what == "suites":
        from bench.suite import suite_names

        return [{"name": name, "summary": title} for name, title in suite_names().items()]
    if what == "metrics":
        from bench.metrics import catalogue

        return [
            {
                "name": m.name,
                "summary": f"{m.family}, {m.task}, {_better(m.direction, m.target)}, unit {m.unit}: {m.formula}",
                "task": m.task,
                "family": m.family,
                "direction": m.direction,
                "target": m.target,
                "unit": m.unit,
                "needs": sorted(m.needs),
                "formula": m.formula,
                "source": m.source,
                "relative_to": m.relative_to,
            }
            for m in catalogue().values()
        ]
    from bench.registry import Registry

    found = Registry([Path(p) for p in plugins]).plugins(cast("Kind", what[:-1]))
    return [{"name": p.name, "summary": p.summary, "origin": p.origin} for p in found.values()]


def _better(direction: str, target: float | None) -> str:
    return f"target {target:g}" if target is not None else f"{direction} is better"


@app.command()
@click.argument("suite")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="Only this method, of the suite or not; repeatable; 'all' for every one there is.",
)
@click.option(
    "--dataset", "datasets", multiple=True, metavar="NAME", help="Only this dataset of the suite; repeatable."
)
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds (repeats), instead of the suite's number.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key of the suite; repeatable.")
@store_option
@engine_options
@data_option
@plugin_option
@click.option("--dry-run", is_flag=True, help="Show which cells would run, and run none.")
@json_option
def run(
    suite: str, methods: Sequence[str], datasets: Sequence[str], seeds: int | None, changes: Sequence[str], store: str,
    how: How, data: str | None, plugins: Sequence[str], dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Run SUITE (a name from 'uqbench list suites', or a TOML file); what is stored already is not run again."""
    _look_in(data)
    from bench.suite import load_suite

    if seeds is not None:
        changes = [*changes, f"seeds={seeds}"]
    from bench.registry import Registry

    registry = Registry([Path(p) for p in plugins])
    if "all" in methods:
        methods = list(registry.plugins("method"))
    # What --plugin brings, and what is asked for by name, need not be in the suite.
    more_methods = [name for name in methods if name in registry.plugins("method")]
    more_datasets = [name for name in datasets if name in registry.plugins("dataset") or ":" in name]
    chosen = load_suite(
        suite, changes, [*more_methods, *_own(registry, "method")], [*more_datasets, *_own(registry, "dataset")]
    ).only(datasets, methods)
    engine, place = how.engine(), how.place()
    if dry_run:
        _show_plan(chosen, registry, store, as_json)
        return
    from bench.run import run as run_suite
    from bench.store import Store

    results = Store(store)
    total = len(chosen.datasets) * len(chosen.methods) * chosen.seeds
    with _at_work(chosen.name, total) as (shown, stop):
        summary = run_suite(chosen, registry, results, engine=engine, device=place, limits=how.limits(), **shown)
    _tell(summary, chosen.name, store, as_json)
    if not as_json:
        _show_results(chosen, results)
    _end(summary, stop)


def _show_results(suite: "Suite", store: "Store") -> None:
    """Print the table of a probe that has one of its own, or how the methods stand."""
    from bench.probes.tables import table_of
    from bench.results import StoredResults
    from bench.standings import standing_lines

    results = StoredResults(store, suite.name)
    own = table_of({suite.protocol_for(name).probe.kind for name in suite.datasets}, results)
    lines = [own] if own else list(standing_lines(results))
    click.echo("\n".join(["", *lines]))


@app.command()
@click.argument("suite", required=False)
@click.option("--failed", is_flag=True, help="Retry the cells that failed (the only kind there is to retry).")
@store_option
@engine_options
@data_option
@plugin_option
@json_option
def retry(
    suite: str | None, failed: bool, store: str, how: How, data: str | None, plugins: Sequence[str], as_json: bool
) -> None:
    """Run the cells of SUITE (or of all suites) that failed again, and nothing else."""
    if not failed:
        raise UserError("retry: say which cells: --failed; missing ones are run by 'uqbench run SUITE'")
    _look_in(data)
    from bench.registry import Registry
    from bench.run import rerun
    from bench.store import Store

    results = Store(store, create=False)
    if suite is not None and suite not in results.suites():
        raise unknown_name("suite", suite, results.suites(), f"--store {store}")
    cells = results.failed(suite)
    registry = Registry([Path(p) for p in plugins])
    with _at_work("retry", len(cells)) as (shown, stop):
        summary = rerun(cells, registry, results, engine=how.engine(), device=how.place(), limits=how.limits(), **shown)
    _tell(summary, "retry", store, as_json)
    _end(summary, stop)


@contextmanager
def _at_work(name: str, total: int) -> "Iterator[tuple[dict[str, Any], Stop]]":
    """Show how far a run is, and let it be stopped politely; the arguments for it."""
    from tqdm import tqdm

    from bench.signals import polite_stop

    bar = tqdm(total=total, unit="cell", desc=name, disable=None, file=sys.stderr)
    with bar, polite_stop(lambda text: tqdm.write(f"uqbench: {text}", file=sys.stderr)) as stop:
        yield {
            "watch": lambda cell, outcome: bar.update(), "tell": bar.set_postfix_str, "stopping": lambda: bool(stop)
        }, stop  # fmt: skip


def _end(summary: "Summary", stop: "Stop") -> None:
    """Leave with the exit code that tells how the run ended."""
    if stop and summary.left:
        _fail(f"stopped; {summary.left} cells are left, the same command goes on with them", 128 + (stop.signal or 0))
    if not summary.well:
        sys.exit(1)


def _own(registry: "Registry", kind: "Kind") -> list[str]:
    """Return the names of the plug-ins that came with --plugin."""
    return [name for name, plugin in registry.plugins(kind).items() if plugin.origin.startswith("file ")]


def _show_plan(suite: "Suite", registry: Any, store: str, as_json: bool) -> None:
    from bench.plan import Refused, plan
    from bench.store import Store

    rows: list[dict[str, Any]] = []
    broken = False
    stored = Store(store) if Path(store.removeprefix("sqlite:///")).is_file() else None
    for task in plan(suite, registry):
        if isinstance(task, Refused):
            broken = broken or task.fault
            rows.append({"dataset": task.dataset, "method": task.method, "state": f"cannot run: {task.reason}"})
            continue
        done = stored.done(cell.key for cell in task.cells) if stored else set()
        rows += [
            {
                "dataset": cell.dataset, "method": cell.method, "split": cell.split, "seed": cell.seed, "key": cell.key,
                "state": "stored" if cell.key in done else "to run",
            }
            for cell in task.cells
        ]  # fmt: skip
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        _print_plan(rows)
    if broken:
        sys.exit(1)


def _print_plan(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        where = f"seed {row['seed']}  {row['key'][:12]}" if "key" in row else ""
        click.echo(f"{row['dataset']:<12} {row['method']:<16} {where}  {row['state']}")
    click.echo(
        f"{sum(r['state'] == 'to run' for r in rows)} cells to run, {sum(r['state'] == 'stored' for r in rows)} stored"
    )


def _tell(summary: "Summary", suite: str, store: str, as_json: bool) -> None:
    failures: list[dict[str, Any]] = [
        {"dataset": c.dataset, "method": c.method, "split": c.split, "seed": c.seed, "key": c.key, "message": message}
        for c, message in summary.failures
    ]
    if as_json:
        told = {
            "suite": suite, "store": store, "stored": summary.stored, "skipped": summary.skipped,
            "elsewhere": summary.elsewhere, "diverged": summary.diverged, "left": summary.left, "failed": failures,
            "refused": [vars(r) for r in summary.refused],
            "doubts": [{"dataset": c.dataset, "method": c.method, "key": c.key, "why": w} for c, w in summary.doubts],
            "seconds": summary.seconds,
        }  # fmt: skip
        click.echo(json.dumps(told, indent=2))
        return
    for refused in summary.refused:
        which = f"{refused.dataset} {refused.method}".strip()  # no method: the whole dataset
        click.echo(f"{'FAILED' if refused.fault else 'skipped'}: {which}: {refused.reason}", err=True)
    seen: set[str] = set()
    for failure in failures:
        reason = failure["message"].partition("\n")[0]
        same = f"{failure['dataset']} {failure['method']}: {reason}"
        if same not in seen:  # the seeds of one method usually fail alike
            seen.add(same)
            click.echo(f"FAILED: {same}", err=True)
    for why, doubted in _by_reason(summary.doubts).items():
        which = f"all {len(doubted)} cells" if len(doubted) == summary.stored > 1 else ", ".join(doubted)
        click.echo(f"not to be trusted: {which}: {why}", err=True)
    shared = f"{summary.elsewhere} run by another driver, " if summary.elsewhere else ""
    click.echo(
        f"{suite}: {summary.stored} cells run, {summary.skipped} stored before, {shared}{summary.diverged} diverged, "
        f"{len(failures)} failed, in {summary.seconds:.1f} s; results are in {store}"
    )


def _by_reason(doubts: "Sequence[tuple[Cell, str]]") -> dict[str, list[str]]:
    """Return the cells by what speaks against them."""
    found: dict[str, list[str]] = {}
    for cell, reasons in doubts:
        for reason in reasons.split("; "):
            found.setdefault(reason, []).append(f"{cell.dataset} {cell.method}")
    return found


@app.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@store_option
@click.option("--out", default="report", show_default=True, metavar="DIR", help="Where the report is written.")
@plugin_option
def report(suites: Sequence[str], store: str, out: str, plugins: Sequence[str]) -> None:
    """Write what is stored as a page (index.html), as Markdown (report.md), as figures and tables (CSV, LaTeX)."""
    from bench.registry import Registry
    from bench.render import write_report
    from bench.store import Store

    written = write_report(Store(store, create=False), Registry([Path(p) for p in plugins]), Path(out), suites)
    click.echo(f"report: {written[0]}")


@app.command()
@store_option
@data_option
@plugin_option
@json_option
def doctor(store: str, data: str | None, plugins: Sequence[str], as_json: bool) -> None:
    """Tell what is installed, which device and threads are used, which data is found, and what to do about problems."""
    _look_in(data)
    from bench.doctor import examine
    from bench.registry import Registry

    findings = examine(Registry([Path(p) for p in plugins]), store)
    if as_json:
        click.echo(json.dumps([vars(f) for f in findings], indent=2))
    else:
        for finding in findings:
            click.echo(f"{finding.state:<8} {finding.subject:<9} {finding.text}")
    if any(f.state == "problem" for f in findings):
        sys.exit(1)


def _look_in(data: str | None) -> None:
    from bench.data import VARIABLE

    if data is not None:
        if not Path(data).is_dir():
            raise UserError(f"--data {data}: no such folder")
        os.environ[VARIABLE] = data


app.add_command(data_commands)
app.add_command(leaderboard)
app.add_command(new)
app.add_command(verify)
app.add_command(compare)
app.add_command(rank)
for command in (*STORE_COMMANDS, *GATE_COMMANDS):
    app.add_command(command)


def main() -> None:
    """Run the command line: a user's mistake is one line and exit 2, never a traceback."""
    try:
        app(standalone_mode=False)
    except UserError as error:
        _fail(str(error))
    except click.exceptions.Abort:
        _fail("stopped; what was finished is stored", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())  # 'uqbench' alone asks what there is
    except click.ClickException as error:
        _fail(error.format_message())
    except KeyboardInterrupt:
        _fail("stopped; what was finished is stored", 130)
    except BrokenPipeError:
        # The reader went away ('uqbench list | head'): close quietly, without the interpreter's own complaint.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int = 2) -> None:
    click.echo("uqbench: " + " ".join(message.split()), err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
