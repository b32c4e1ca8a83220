"""The commands on a store: status, show, merge, export, gc. None of them needs torch."""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli.options import defaulted, json_option, output_option, store_option, suite_argument
from bench.cli.output import Command, echo, end, failures_named, output_stream
from bench.counts import plural
from bench.errors import UserError
from bench.json_values import without_nan
from bench.store.export import Format

if TYPE_CHECKING:
    from bench.store.merge import Merged
    from bench.store.status import Status
    from bench.store.store import Store


@click.command(cls=Command)
@suite_argument()
@store_option
@json_option
def status(suite: str | None, store: str, as_json: bool) -> None:
    """Show the progress of every suite, or of each dataset and method of SUITE, and the live drivers."""
    from bench.store.status import status as count

    with closing(_opened(store, suite)) as opened:
        found = count(opened, suite)
    if as_json:
        print_json({"store": opened.address, "suite": suite, **asdict(found)})
    else:
        _print_status(found)


def _print_status(found: "Status") -> None:
    from bench.store.status import STATES

    if found.rows:
        names = [name for name in found.rows[0] if name not in STATES]
        rows = [[*(plain(str(row[name])) for name in names), *(str(row[s]) for s in STATES)] for row in found.rows]
        _print_table([*names, *STATES], rows, left=len(names))
    else:
        echo("no suite is stored yet; run one first: uqbench run quick")
    for driver in found.drivers:
        echo(f"driver {plain(driver['name'])}: {plural(driver['cells'], 'cell')}, last seen {driver['age']:.0f} s ago")
    if found.unwanted:
        forms = "of earlier forms of suites (other seeds, methods, datasets or settings), which no suite contains now"
        again = "running that form again shows them without computing anew"
        echo(f"{plural(found.unwanted, 'result')} {forms}; {again}, 'uqbench gc --unwanted' deletes them for good")
    database, arrays = readable_bytes(found.database_bytes), readable_bytes(found.array_bytes)
    echo(f"size: database {database}, {plural(found.array_files, 'array file')} {arrays}")
    bank = found.predictions
    used = f"{readable_bytes(bank.bytes)} of {readable_bytes(bank.budget)}"
    echo(f"predictions: {plural(bank.cells, 'cell')}, {used}")
    if found.network_files:
        echo(f"networks: {plural(found.network_files, 'file')}, {readable_bytes(found.network_bytes)}")
    if bank.left_out:
        moments = f"{plural(bank.left_out, 'cell')} kept mean and variance alone"
        echo(f"the budget for predictions was used up: {moments}; 'uqbench store budget SIZE' changes it")


@click.command(cls=Command)
@click.argument("cell")
@suite_argument()
@click.option("--source", is_flag=True, help="Also print the plug-in files that it was computed with.")
@store_option
@json_option
def show(cell: str, suite: str | None, source: bool, store: str, as_json: bool) -> None:
    """Show everything stored about CELL: a key, its first characters, or DATASET/METHOD/SEED (of SUITE)."""
    from bench.store.lookup import describe, find_key

    with closing(_opened(store, suite)) as opened:
        found = describe(opened, find_key(opened, cell, suite))
    if as_json:
        print_json(found)
        return
    echo(f"cell {plain(found['key'])}: {found['status']}")
    for place in found["places"]:
        text = "{suite}: {dataset}, split {split}, {method}, seed {seed}".format(**place)
        echo(f"wanted by {plain(text)}")
    for name, value in found["timing"].items():
        if value is not None:
            echo(f"{name}: {f'{value:.3f}' if name.endswith('seconds') else _moment(value)}")
    if found["code"]:
        echo(f"code: {plain(found['code'])}{' with changes' if found['dirty'] else ''}")
    left_out = found["training"].pop("left_out", {})
    for part in ("spec", "training", "environment"):
        if found[part]:
            echo(f"{part}:\n{_indented(json.dumps(found[part], indent=2, ensure_ascii=False))}")
    _print_metrics(found["metrics"], left_out, {row["metric"]: row for row in found["rescored"]})
    if (bank := found["predictions"]) is not None:
        size = f"{readable_bytes(bank['bytes'])}, " if bank["file"] else "none: "
        echo(f"predictions: {size}{plain(bank['precision'] or bank['reason'])}")
    for plugin in found["plugins"]:
        lines = plugin["source"].count("\n")
        echo(f"plug-in file {plain(plugin['file'])}: {plural(lines, 'line')}, hash {plugin['hash']}")
        if source:
            echo(_indented(plugin["source"].rstrip("\n")))
    if found["message"]:
        echo(f"message:\n{_indented(found['message'])}")


def _print_metrics(
    values: Mapping[str, float], left_out: Mapping[str, Sequence[str]], later: Mapping[str, Mapping[str, Any]]
) -> None:
    if values:
        echo("metrics:")
        width = max(len(name) for name in values)
        for name, value in values.items():
            echo(f"  {plain(name):<{width}}  {value!r}{_rescored_note(later.get(name))}")
    if left_out:
        echo("metrics without a value:")
        for reason, names in left_out.items():
            echo(plain(f"  {', '.join(names)}: {reason}"))


def _rescored_note(row: Mapping[str, Any] | None) -> str:
    """Return that a value was computed from stored predictions, and the run's own value if it had one."""
    if row is None:
        return ""
    before = "" if math.isnan(row["before"]) else f"; {row['before']!r} in the run"
    return plain(f"  (from predictions stored in {row['precision']}, version {row['version']}{before})")


@click.command(cls=Command)
@click.argument("other")
@store_option
@json_option
def merge(other: str, store: str, as_json: bool) -> None:
    """Merge all results of the store OTHER (a path or URL) into this one.

    A cell that has different values in the two stores is a conflict: it is not changed, both values are listed, and
    the exit code is 1. So it is if array files were lost or damaged: they are listed, everything else is merged.
    """
    from bench.workflow import merge_stores

    done = merge_stores(store, other)
    if as_json:
        print_json(asdict(done))
    else:
        _print_merged(done)
        _print_comparable(store)
    if done.conflicts or done.skipped:
        end(1)


def _print_merged(done: "Merged") -> None:
    for conflict in done.conflicts:
        here, there = (plain(str(value))[:200] for value in (conflict.here, conflict.there))
        echo(f"CONFLICT: {plain(conflict.key)} {plain(conflict.what)}: here {here}, there {there}", err=True)
    for skipped in done.skipped:
        echo(f"SKIPPED: array file of cell {plain(skipped.key)}: {plain(skipped.reason)[:300]}", err=True)
    conflicts = len({conflict.key for conflict in done.conflicts})
    kept = f"{done.same} the same, {conflicts} in conflict"
    echo(
        f"{plural(done.added, 'result')} added, {plural(done.replaced, 'failure')} replaced, {kept}; "
        f"{plural(done.arrays, 'array file')} copied; {plural(done.suites, 'suite')} and "
        f"{plural(done.wanted, 'wanted cell')} added"
    )
    if done.predictions or done.predictions_left_out:
        full = f"; the budget had no room for those of {plural(done.predictions_left_out, 'cell')}"
        echo(f"predictions of {plural(done.predictions, 'cell')} copied{full * (done.predictions_left_out > 0)}")


def _print_comparable(store: str) -> None:
    """Say which methods of each suite may be compared now."""
    from bench.store.comparable import differences, rescored_versions

    with closing(_opened(store, None)) as opened:
        versions = rescored_versions(opened)
        for name, record in opened.suites().items():
            cells = opened.cells(name)
            found = differences(cells, record["baseline"], versions=versions)
            for each in found:
                echo(plain(f"not comparable: {name}: {each}"))
            odd = {(each.dataset, each.method) for each in found}
            alike = {(cell["dataset"], cell["method"]) for cell in cells if cell["status"] == "ok"} - odd
            if alike:
                methods = plural(len({method for _, method in alike}), "method")
                datasets = plural(len({dataset for dataset, _ in alike}), "dataset")
                echo(plain(f"comparable: {name}: {methods} on {datasets}, with the same rows, protocol and metrics"))


@click.command(cls=Command)
@suite_argument()
@defaulted("--format", "name", type=click.Choice([*map(str, Format)]), default=str(Format.CSV))
@output_option("--out", metavar="FILE", help="The file to write, instead of standard output.")
@output_option("--plugins", metavar="DIR", help="Also write the plug-in files of the results, as DIR/HASH/NAME.py.")
@output_option("--predictions", metavar="DIR", help="Also write stored predictions as DIR/KEY.npz, with DIR/index.csv.")
@store_option
def export(
    suite: str | None, name: str, out: str | None, plugins: str | None, predictions: str | None, store: str
) -> None:
    """Write the metric values of SUITE, or of all suites, one row per value."""
    from bench.store.export import rows, write, write_file, write_plugins
    from bench.store.export_predictions import write_predictions

    form = Format(name)
    if form is Format.PARQUET and out is None and _is_terminal():
        raise UserError("--format parquet: this is not for a terminal; write to a file with --out FILE, or to a pipe")
    with closing(_opened(store, suite)) as opened:
        sources = write_plugins(opened, suite, Path(plugins)) if plugins else []
        for source in sources:
            echo(f"plug-in file: {source}", err=True)
        if predictions:
            count = write_predictions(opened, suite, Path(predictions))
            echo(f"predictions of {plural(count, 'cell')}: {predictions}", err=True)
        if out is not None:
            count = write_file(rows(opened, suite), form, Path(out))
            echo(f"{plural(count, 'value')}: {out}", err=True)
            return
        stream = output_stream()
        if stream is not None:
            with failures_named():
                write(rows(opened, suite), form, stream.buffer)
                stream.buffer.flush()


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.option("--unwanted", is_flag=True, help="Also remove results of earlier forms of suites.")
@click.option("--checkpoints", is_flag=True, help="Also remove those of unfinished trainings, which then start again.")
@click.option("--predictions", is_flag=True, help="Also remove all stored predictions; values and moments stay.")
@click.option("--networks", is_flag=True, help="Also remove kept networks.")
@click.option("--compiled", is_flag=True, help="Also remove all compiled training steps from the user's cache folder.")
@store_option
@json_option
def gc(
    dry_run: bool,
    unwanted: bool,
    checkpoints: bool,
    predictions: bool,
    networks: bool,
    compiled: bool,
    store: str,
    as_json: bool,
) -> None:
    """Remove array files that no cell refers to, and temporary files of killed processes.

    A run with fewer seeds, other methods, datasets or settings leaves the results of the earlier form of its suite in
    the store, where the earlier command finds them; --unwanted deletes those that no suite contains now.
    """
    from bench.machine.compiled_cache import compiled_folder, prune
    from bench.store.gc import clean
    from bench.store.store import Store

    with closing(Store(store, create=False, writable=not dry_run)) as opened:
        chosen = {"unwanted": unwanted, "checkpoints": checkpoints, "predictions": predictions, "networks": networks}
        removed = clean(opened, **chosen, dry_run=dry_run)
    graphs, size = prune(compiled_folder(), kept=0, dry_run=dry_run) if compiled else (0, 0)
    if as_json:
        steps = {"compiled_files": graphs, "compiled_bytes": size} if compiled else {}
        print_json({"dry_run": dry_run, **asdict(removed), **steps})
        return
    counts = [plural(removed.array_files, "array file"), plural(removed.temporary_files, "temporary file")]
    counts += [plural(removed.checkpoint_files, "checkpoint")] * checkpoints
    counts += [plural(removed.plugins, "plug-in file")] * (removed.plugins > 0)
    counts += [f"the predictions of {plural(removed.predictions, 'cell')}"] * predictions
    counts += [plural(removed.network_files, "network")] * networks
    files = f"{', '.join(counts)} ({readable_bytes(removed.bytes)})"
    done = "would remove" if dry_run else "removed"
    echo(f"{done} {files} and {plural(removed.results, 'result')}")
    if compiled:
        echo(f"{done} {plural(graphs, 'file')} of compiled steps ({readable_bytes(size)})")


COMMANDS: tuple[click.Command, ...] = (status, show, merge, export, gc)


def _opened(url: str, suite: str | None) -> "Store":
    """Open a store for reading; raise UserError if it does not have the suite."""
    from bench.store.store import Store

    opened = Store(url, create=False, writable=False)
    try:
        if suite is not None:
            opened.require_suite(suite)
    except UserError:
        opened.close()
        raise
    return opened


def _is_terminal() -> bool:
    stream = output_stream()
    return stream is not None and stream.isatty()


def print_json(content: Any) -> None:
    """Print plain data; numbers that JSON does not have are words."""
    echo(json.dumps(without_nan(content, str), indent=2))


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> None:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        cells = [
            text.ljust(width) if column < left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        echo("  ".join(cells).rstrip())


def _indented(text: str) -> str:
    return "\n".join(f"  {plain(line)}" for line in text.split("\n"))


def plain(text: str) -> str:
    """Return text without control characters, so that a foreign store cannot control the terminal."""
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def readable_bytes(number: int) -> str:
    """Return a number of bytes for readers."""
    size = float(number)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return str(seconds)
