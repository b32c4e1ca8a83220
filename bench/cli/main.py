"""The command line. Commands import heavy modules inside, so that --help is fast."""

import atexit
import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from bench import __version__
from bench.cli.data import data as data_commands
from bench.cli.failures import exits_raised, report_failure
from bench.cli.gate import COMMANDS as GATE_COMMANDS
from bench.cli.leaderboard import leaderboard
from bench.cli.options import (
    collect_garbage_rarely,
    data_option,
    json_option,
    output_option,
    plugin_option,
    set_data_folder,
    store_option,
    suites_argument,
)
from bench.cli.output import Group, discard_unwritable, echo, end, occupy_descriptors
from bench.cli.plugins import new, verify
from bench.cli.reproduce import reproduce
from bench.cli.rescore import rescore
from bench.cli.run import COMMANDS as RUN_COMMANDS
from bench.cli.stats import compare, rank
from bench.cli.store import COMMANDS as STORE_COMMANDS
from bench.cli.store_check import store as store_commands
from bench.cli.submissions import score, submit
from bench.errors import unknown_name
from bench.store.passwords import hide_in_process_list

if TYPE_CHECKING:
    from bench.plugins.kinds import Kind


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="uqbench")
def app() -> None:
    """Compare uncertainty methods for neural networks.

    Start with 'uqbench run quick' and 'uqbench report'.
    """


LISTED = {
    "methods": "what is compared",
    "datasets": "what they are compared on",
    "networks": "what they train",
    "suites": "which methods run on which datasets, and how",
    "metrics": "what is measured",
    "reports": "the sections of a report",
    "experiments": "published experiments for 'uqbench reproduce'",
}


@app.command("list")
@click.argument("what", required=False, metavar="[methods|datasets|networks|suites|metrics|reports|experiments]")
@json_option
@plugin_option
def list_(what: str | None, as_json: bool, plugins: Sequence[str]) -> None:
    """List the methods, datasets, networks, suites, metrics, reports or published experiments; alone, how many."""
    if what is not None and what not in LISTED:
        raise unknown_name("list", what, LISTED)
    rows = _kinds(plugins) if what is None else _rows(what, plugins)
    if as_json:
        echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        tail = "" if row.get("origin", "built in") == "built in" else f"  ({row['origin']})"
        count = f"{row['count']:>4}  " if "count" in row else ""
        echo(f"{row['name']:<{width}}  {count}{row['summary']}{tail}")


def _kinds(plugins: Sequence[str]) -> list[dict[str, Any]]:
    """Return what can be listed, and how many there are of each."""
    return [{"name": kind, "count": len(_rows(kind, plugins)), "summary": text} for kind, text in LISTED.items()]


def _rows(what: str, plugins: Sequence[str]) -> list[dict[str, Any]]:
    if what == "suites":
        from bench.plan.suite import suite_names

        return [{"name": name, "summary": title} for name, title in suite_names().items()]
    from bench.plugins.registry import Registry

    registry = Registry([Path(p) for p in plugins])
    if what == "experiments":
        from bench.reproduction import experiments

        return [{"name": name, "summary": one.title} for name, (_, one) in experiments(registry).items()]
    if what == "metrics":
        files = registry.metric_files
        fields = ["task", "family", "direction", "target", "unit", "needs", "formula", "source"]
        fields += ["relative_to", "biased_in_draws", "on_request", "only_with", "version"]
        rows = []
        for m in registry.metrics.values():
            asked = "on request, " if m.on_request else ""
            summary = f"{asked}{m.family}, {m.task}, {_better(m.direction, m.target)}, unit {m.unit}: {m.formula}"
            stated = {name: getattr(m, name) for name in fields} | {"needs": sorted(m.needs)}
            origin = {"origin": f"file {files[m.name]}"} if m.name in files else {}
            rows.append({"name": m.name, "summary": summary} | stated | origin)
        return rows
    found = registry.plugins(cast("Kind", what[:-1]))
    return [{"name": p.name, "summary": p.summary, "origin": p.origin} for p in found.values()]


def _better(direction: str, target: float | None) -> str:
    if direction == "none":
        return "descriptive: no value is better"
    return f"target {target:g}" if target is not None else f"{direction} is better"


@app.command()
@suites_argument
@store_option
@output_option("--out", show_default=True, default="report", metavar="DIR", help="The folder to write to.")
@click.option("--pdf", is_flag=True, help="Write the figures also as PDF, for papers; takes about twice as long.")
@plugin_option
def report(suites: Sequence[str], store: str, out: str, pdf: bool, plugins: Sequence[str]) -> None:
    """Write a report on the stored results: a page (index.html), Markdown, figures and tables (CSV, LaTeX)."""
    collect_garbage_rarely()
    from bench.workflow import write_report

    echo(f"report: {write_report(store, out, suites=suites, plugins=plugins, pdf=pdf)}")


@app.command()
@store_option
@data_option
@plugin_option
@json_option
def doctor(store: str, data: str | None, plugins: Sequence[str], as_json: bool) -> None:
    """Show what is installed, the device, threads and data that are found, and how to solve problems."""
    set_data_folder(data)
    from bench.cli.doctor import examine
    from bench.plugins.registry import Registry

    findings = examine(Registry([Path(p) for p in plugins]), store)
    if as_json:
        echo(json.dumps([vars(f) for f in findings], indent=2))
    else:
        for finding in findings:
            echo(f"{finding.state:<8} {finding.subject:<9} {finding.text}")
    if any(f.state == "problem" for f in findings):
        end(1)


OTHERS = (data_commands, store_commands, leaderboard, new, verify, compare, rank, reproduce, rescore, score, submit)
for command in (*OTHERS, *RUN_COMMANDS, *STORE_COMMANDS, *GATE_COMMANDS):
    app.add_command(command)


def main() -> None:
    """Run the command line; whatever fails is one line and an exit code, never a traceback."""
    # Python would collect garbage again while it exits, which takes long after a report.
    atexit.register(gc.freeze)
    occupy_descriptors()
    hide_in_process_list(sys.argv[1:])
    try:
        with exits_raised():
            code = app(standalone_mode=False) or 0
    except BaseException as error:  # a plug-in may raise anything
        code = report_failure(error)
    for stream in (sys.stdout, sys.stderr):
        discard_unwritable(stream)
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
