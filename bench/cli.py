"""The command line. Imports of anything heavy stand inside the commands that need it."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from bench import __version__
from bench.cli_data import data as data_commands
from bench.errors import UserError, unknown_name

if TYPE_CHECKING:
    from bench.registry import Kind, Registry
    from bench.run import Summary
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
@click.option("--method", "methods", multiple=True, metavar="NAME", help="Only this method of the suite; repeatable.")
@click.option(
    "--dataset", "datasets", multiple=True, metavar="NAME", help="Only this dataset of the suite; repeatable."
)
@click.option("--seeds", type=click.IntRange(min=1), help="How many seeds (repeats), instead of the suite's number.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change a key of the suite; repeatable.")
@store_option
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@data_option
@plugin_option
@click.option("--dry-run", is_flag=True, help="Show which cells would run, and run none.")
@json_option
def run(
    suite: str, methods: Sequence[str], datasets: Sequence[str], seeds: int | None, changes: Sequence[str], store: str,
    device: str, data: str | None, plugins: Sequence[str], dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Run SUITE (a name from 'uqbench list suites', or a TOML file); what is stored already is not run again."""
    _look_in(data)
    from bench.suite import load_suite

    if seeds is not None:
        changes = [*changes, f"seeds={seeds}"]
    from bench.registry import Registry

    registry = Registry([Path(p) for p in plugins])
    # What --plugin brings, and what is asked for by name, need not be in the suite.
    more_methods = [name for name in methods if name in registry.plugins("method")]
    more_datasets = [name for name in datasets if name in registry.plugins("dataset") or ":" in name]
    chosen = load_suite(
        suite, changes, [*more_methods, *_own(registry, "method")], [*more_datasets, *_own(registry, "dataset")]
    ).only(datasets, methods)
    place = _device(device)
    if dry_run:
        _show_plan(chosen, registry, store, as_json)
        return
    from tqdm import tqdm

    from bench.run import run as run_suite
    from bench.store import Store

    results = Store(store)
    total = len(chosen.datasets) * len(chosen.methods) * chosen.seeds
    with tqdm(total=total, unit="cell", desc=chosen.name, disable=None, file=sys.stderr) as bar:

        def watch(cell: Any, outcome: Any) -> None:
            bar.set_postfix_str(f"{cell.dataset} {cell.method}", refresh=False)
            bar.update()

        summary = run_suite(chosen, registry, results, device=place, watch=watch)
    _tell(summary, chosen, store, as_json)
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


def _tell(summary: "Summary", suite: "Suite", store: str, as_json: bool) -> None:
    failures: list[dict[str, Any]] = [
        {"dataset": c.dataset, "method": c.method, "split": c.split, "seed": c.seed, "key": c.key, "message": message}
        for c, message in summary.failures
    ]
    if as_json:
        told = {
            "suite": suite.name, "store": store, "stored": summary.stored, "skipped": summary.skipped,
            "diverged": summary.diverged, "failed": failures, "refused": [vars(r) for r in summary.refused],
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
    click.echo(
        f"{suite.name}: {summary.stored} cells run, {summary.skipped} stored before, {summary.diverged} diverged, "
        f"{len(failures)} failed, in {summary.seconds:.1f} s; results are in {store}"
    )


@app.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@store_option
@click.option("--out", default="report", show_default=True, metavar="DIR", help="Where the report is written.")
@plugin_option
def report(suites: Sequence[str], store: str, out: str, plugins: Sequence[str]) -> None:
    """Write what is stored as a page (index.html), as Markdown (report.md) and as figures."""
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


def _device(name: str) -> str:
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch sees no CUDA device here; use --device cpu, or see 'uqbench doctor'")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


app.add_command(data_commands)


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
