"""`uqbench store check`: find lost and damaged results, and have them computed again."""

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from bench.cli.options import json_option, store_option
from bench.cli.output import Group, echo, end
from bench.cli.store import plain, print_json, readable_bytes
from bench.counts import plural

if TYPE_CHECKING:
    from bench.store.check import Checked

MOST_LINES = 50  # of cells; JSON has all


@click.group(cls=Group)
def store() -> None:
    """Check a store and repair it; set the budget of its predictions."""


@store.command("check")
@click.option("--repair", "repairing", is_flag=True, help="Have these cells run again, and remove what is left over.")
@store_option
@json_option
def check_command(repairing: bool, store: str, as_json: bool) -> None:
    """Read every array file of a store; list the cells whose arrays are lost or damaged, and what belongs to nothing.

    With --repair these cells count as failed, so that 'uqbench retry --failed' or 'uqbench run' computes them again,
    and files and values without a cell are removed. The exit code is 1 if something is lost or damaged and was not
    repaired.
    """
    from bench.store.check import check, repair
    from bench.store.store import Store

    with closing(Store(store, create=False, writable=repairing)) as opened:
        found = check(opened)
        if repairing:
            repair(opened, found)
    if as_json:
        print_json({"store": opened.address, "repaired": repairing, **asdict(found)})
    else:
        _print_checked(found, repairing)
    if (found.faults or found.database or found.damaged_networks) and not repairing:
        end(1)


@store.command("budget")
@click.argument("size", required=False)
@store_option
@json_option
def budget_command(size: str | None, store: str, as_json: bool) -> None:
    """Show how many bytes stored predictions may take, or set it to SIZE, such as 500MB or 10GB.

    Predictions beyond the budget are not stored: their cells keep mean and variance alone. What is stored stays;
    'uqbench gc --predictions' removes it.
    """
    from bench.store.bank import read_bytes, set_budget, usage
    from bench.store.store import Store

    wanted = None if size is None else read_bytes(size)
    with closing(Store(store, create=False, writable=size is not None)) as opened:
        if wanted is not None:
            set_budget(opened, wanted)
        with opened.database.reading() as connection:
            found = usage(connection)
    if as_json:
        print_json({"store": opened.address, **asdict(found)})
        return
    used = f"{readable_bytes(found.bytes)} of {readable_bytes(found.budget)}"
    echo(f"predictions: {plural(found.cells, 'cell')}, {used}")


def _print_checked(found: "Checked", repaired: bool) -> None:
    for problem in found.database:
        echo(f"DATABASE: {plain(problem)}")
    for fault in found.faults[:MOST_LINES]:
        where = "; ".join("{suite}: {dataset}, split {split}, {method}, seed {seed}".format(**p) for p in fault.places)
        file = f"cell {plain(fault.key)}, file {plain(fault.file)[:80]}"
        file += ", its stored predictions" * (fault.what == "predictions")
        echo(f"{fault.fault.upper()}: {plain(where or 'in no suite')}: {file}")
    if len(found.faults) > MOST_LINES:
        echo(f"and {len(found.faults) - MOST_LINES} more; --json lists all")
    kinds = [fault.fault for fault in found.faults if fault.what == "arrays"]
    lost = f"{kinds.count('lost')} lost, {kinds.count('damaged')} damaged"
    files, values = plural(found.orphan_files, "file"), plural(found.orphan_values, "value")
    orphans = f"{files} ({readable_bytes(found.orphan_bytes)}) and {values} without a cell"
    echo(f"{plural(found.cells, 'cell')} with arrays: {lost}; {orphans}{' were removed' if repaired else ''}")
    bank = [fault.fault for fault in found.faults if fault.what == "predictions"]
    if found.predictions:
        gone = f"{bank.count('lost')} lost, {bank.count('damaged')} damaged"
        after = "; the values and moments of these cells stay" if bank else ""
        echo(f"{plural(found.predictions, 'cell')} with stored predictions: {gone}{after}")
    for name in found.damaged_networks:
        echo(f"DAMAGED: kept network {plain(name)}{': removed' if repaired else ''}")
    if kinds:
        again = f"{plural(len(kinds), 'cell')} to run again"
        how = "'uqbench retry --failed' runs them" if repaired else "'uqbench store check --repair' plans it"
        echo(f"{again}: {how}")
