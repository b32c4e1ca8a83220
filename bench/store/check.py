"""Checks a store: every array file that a cell refers to is read, and what belongs to nothing is counted.

A repair marks the cells whose arrays are lost or damaged as failed, so that they run again; their values stay until the
new result replaces them. It then removes what belongs to nothing, damaged files among it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, select, text, update

from bench.errors import UserError
from bench.store.arrays import DamagedArraysError
from bench.store.bank import files_beside, forget_predictions, kept_files, read_predictions
from bench.store.database import chunks, user_errors
from bench.store.gc import clean
from bench.store.store import Store
from bench.store.tables import cells, metrics, wanted

MESSAGE = "its array file was {}: found by 'uqbench store check'; 'uqbench retry --failed' runs it again"


@dataclass(frozen=True)
class CellFault:
    """A cell whose arrays cannot be read."""

    key: str
    fault: str  # 'lost' or 'damaged'
    file: str
    places: tuple[dict[str, Any], ...]  # in suites: suite, dataset, split, method, seed; none: no suite contains it
    what: str = "arrays"  # or 'predictions', without which a cell need not run again


@dataclass(frozen=True)
class Checked:
    """What a check found."""

    cells: int  # that have arrays
    faults: tuple[CellFault, ...]  # cells that have to run again, or lost their stored predictions
    orphan_files: int  # array files that no cell refers to, and temporary files of killed processes
    orphan_bytes: int
    orphan_values: int  # metric values without a cell
    database: tuple[str, ...]  # what the database says is wrong with itself
    predictions: int = 0  # cells with stored predictions
    networks: int = 0  # files of kept networks
    damaged_networks: tuple[str, ...] = ()  # those that cannot be read: they would be trained again


def check(store: Store) -> Checked:
    """Read every array file of a store, and count what belongs to nothing."""
    with store.database.reading() as connection:
        problems = _integrity(connection) if store.database.is_sqlite else ()
        query = select(cells.c.key, cells.c.arrays).where(cells.c.arrays.is_not(None)).order_by(cells.c.key)
        names = {row.key: str(row.arrays) for row in connection.execute(query)}
        values = int(connection.execute(select(func.count()).select_from(metrics).where(_without_cell())).scalar_one())
    bank = {key: str(row["file"]) for key, row in kept_files(store).items()}
    fault_of = cache(store.arrays.fault)  # several cells may share a file
    own = [(key, fault, name, "arrays") for key, name in names.items() if (fault := fault_of(name))]
    kept = [(key, fault, name, "predictions") for key, name in bank.items() if (fault := _bank_fault(store, name))]
    places = _places(store, {key for key, *_ in (*own, *kept)})
    faults = tuple(CellFault(key, fault, name, tuple(places[key]), what) for key, fault, name, what in (*own, *kept))
    orphans = clean(store, dry_run=True)
    count = orphans.array_files + orphans.temporary_files
    networks = files_beside(store, "networks")
    bad = tuple(str(path) for path in networks if not _readable(path))
    return Checked(len(names), faults, count, orphans.bytes, values, problems, len(bank), len(networks), bad)


def repair(store: Store, found: Checked) -> None:
    """Mark the cells that have to run again as failed, and remove what belongs to nothing.

    A cell whose stored predictions are lost keeps its values and moments.
    """
    drivers = store.drivers()
    if drivers:
        raise UserError(f"--repair: {drivers[0]['name']} is working on this store; try again when it has ended")
    if found.database:
        raise UserError(f"--store {store.address}: {found.database[0]}; restore it from a backup first")

    def work(connection: Connection) -> None:
        for kind in ("lost", "damaged"):
            for part in chunks([f.key for f in found.faults if f.fault == kind and f.what == "arrays"]):
                changed = {"status": "failed", "message": MESSAGE.format(kind), "arrays": None}
                connection.execute(update(cells).where(cells.c.key.in_(part)).values(changed))
        forget_predictions(connection, [fault.key for fault in found.faults if fault.what == "predictions"])
        connection.execute(delete(metrics).where(_without_cell()))

    store.database.write(work, lock=cells)
    with user_errors(store.address):
        for name in found.damaged_networks:
            Path(name).unlink(missing_ok=True)
    clean(store)


def _readable(path: Path) -> bool:
    from bench.training.stored_networks import read_network  # loads torch

    try:
        read_network(path)
    except ValueError:
        return False
    return True


def _bank_fault(store: Store, name: str) -> str | None:
    """Return 'lost' or 'damaged' where predictions cannot be read, or None."""
    try:
        return "lost" if read_predictions(store, name) is None else None
    except DamagedArraysError:
        return "damaged"


def _without_cell() -> ColumnElement[bool]:
    return ~select(cells.c.key).where(cells.c.key == metrics.c.key).exists()


def _integrity(connection: Connection) -> tuple[str, ...]:
    rows = [str(row[0]) for row in connection.execute(text("PRAGMA quick_check(10)"))]
    return () if rows == ["ok"] else tuple(" ".join(row.split()) for row in rows)


def _places(store: Store, keys: Iterable[str]) -> defaultdict[str, list[dict[str, Any]]]:
    """Return the places of cells in suites, by their key."""
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    order = (wanted.c.suite, wanted.c.dataset, wanted.c.method, wanted.c.seed)
    for part in chunks(sorted(keys)):
        for row in store.database.rows(select(wanted).where(wanted.c.key.in_(part)).order_by(*order)):
            found[row.pop("key")].append(row)
    return found
