"""The bank: all predictions of cells, one array file each, within a budget per store.

A cell whose predictions do not fit into the budget keeps its moments, which are among its ordinary arrays.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import ColumnElement, Connection, case, delete, func, select

from bench.errors import UserError
from bench.metrics.kept import Kept, about, names_of, unpack
from bench.spec.cell import Cell, Outcome
from bench.store.arrays import DamagedArraysError
from bench.store.database import chunks, insert, insert_rows, user_errors
from bench.store.tables import cells, predictions, settings, wanted

if TYPE_CHECKING:
    from bench.store.store import Store

DEFAULT_BUDGET = 2 * 10**9  # bytes
FULL = "the budget was used up"
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
Rows = Sequence[Mapping[str, Any]]


def files_beside(store: "Store", kind: Literal["checkpoints", "networks"]) -> list[Path]:
    """Return the files of networks beside a store: checkpoints of unfinished trainings, or kept networks."""
    return sorted(store.arrays.folder.with_suffix(f".{kind}").glob("*/*.safetensors"))


@dataclass(frozen=True)
class BankUsage:
    """How much of its budget a bank uses."""

    cells: int  # whose predictions are stored
    bytes: int
    budget: int
    left_out: int  # cells that kept their moments alone because the budget was used up


def read_bytes(text: str) -> int:
    """Return a size such as `500MB` or `2GB` as a number of bytes."""
    found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([A-Z]*)\s*", text.upper())
    if found is None or found[2] not in UNITS:
        raise UserError(f"{text!r} is not a size; give one such as 500MB or 10GB, or 0 to keep no predictions")
    size = int(float(found[1]) * UNITS[found[2]])
    if size > 10**18:
        raise UserError(f"{text!r}: larger than any disk; give a size such as 10GB")
    return size


def set_budget(store: "Store", size: int) -> None:
    """Set how many bytes the predictions of a store may take; those that are stored already stay."""
    row = {"name": "budget", "value": str(size)}

    def work(connection: Connection) -> None:
        new = insert(connection, settings).values(row)
        connection.execute(new.on_conflict_do_update(index_elements=["name"], set_=row))

    store.database.write(work)


def usage(connection: Connection) -> BankUsage:
    """Return how much of its budget the bank uses."""
    counts = select(func.count(predictions.c.file), func.sum(_is(predictions.c.reason == FULL)))
    stored, left_out = connection.execute(counts).one()
    return BankUsage(int(stored), _used(connection), _budget(connection), int(left_out or 0))


def _is(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, 1), else_=0)


def _used(connection: Connection) -> int:
    files = select(predictions.c.file, predictions.c.bytes).where(predictions.c.file.is_not(None)).distinct().subquery()
    return int(connection.execute(select(func.sum(files.c.bytes))).scalar() or 0)


def _budget(connection: Connection) -> int:
    value = connection.execute(select(settings.c.value).where(settings.c.name == "budget")).scalar()
    return int(value) if value is not None and str(value).isdigit() else DEFAULT_BUDGET


class Deposits:
    """Predictions on their way into a bank: files are written first, their rows in the transaction of the cells."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._room: int | None = None
        self.rows: list[dict[str, Any]] = []

    def add(self, key: str, content: bytes) -> bool:
        """Write the file of a cell if the budget has room; return whether it had."""
        if self._room is None:
            with self._store.database.reading() as connection:
                self._room = _budget(connection) - _used(connection)
        row: dict[str, Any] = dict.fromkeys(predictions.c.keys()) | {"key": key, "reason": FULL}
        fits = len(content) <= self._room
        if fits:
            self._room -= len(content)
            row |= {"file": self._store.arrays.add(content), "bytes": len(content), "reason": ""}
            facts = about(content)
            row |= {"precision": str(facts["precision"]), "task": facts["task"]}
        self.rows.append(row)
        return fits


def deposit(store: "Store", results: Iterable[tuple[Cell, Outcome]]) -> list[dict[str, Any]]:
    """Write the predictions of outcomes into files as far as the budget goes; return the rows that name them."""
    deposits = Deposits(store)
    for cell, outcome in results:
        if outcome.predictions:
            deposits.add(cell.key, outcome.predictions)
    return deposits.rows


def write_rows(connection: Connection, rows: Rows, written: Iterable[str]) -> None:
    """Write which files hold the predictions of the cells that were written; what they had before goes."""
    keys = set(written)
    for part in chunks(sorted(keys)):
        connection.execute(delete(predictions).where(predictions.c.key.in_(part)))
    for chosen in chunks([dict(row) for row in rows if row["key"] in keys]):
        insert_rows(connection, predictions, chosen)


def kept_files(store: "Store", keys: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return which files hold the predictions of cells, by key: file, bytes, precision. All, or those of some keys."""
    query = select(predictions).where(predictions.c.file.is_not(None))
    parts = [[]] if keys is None else chunks(sorted(set(keys)))
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        rows = store.database.rows(query if keys is None else query.where(predictions.c.key.in_(part)))
        found |= {row["key"]: row for row in rows}
    return found


def keys_with_predictions(store: "Store", suite: str | None = None) -> list[str]:
    """Return the keys of the cells of a suite, or of all, whose predictions are stored, in the order of the suite."""
    query = select(predictions.c.key).join(cells, cells.c.key == predictions.c.key)
    query = query.where(predictions.c.file.is_not(None), cells.c.status == "ok")
    if suite is not None:
        order = (wanted.c.dataset, wanted.c.split, wanted.c.method, wanted.c.seed)
        query = query.join(wanted, wanted.c.key == predictions.c.key).where(wanted.c.suite == suite).order_by(*order)
    return list(dict.fromkeys(row["key"] for row in store.database.rows(query)))


def load_predictions(store: "Store", key: str, *, validation: bool = True) -> Kept | None:
    """Return the stored predictions of a cell, or None; without those at validation rows it is faster."""
    row = kept_files(store, [key]).get(key)
    return None if row is None else read_predictions(store, str(row["file"]), validation=validation)


def read_predictions(store: "Store", file: str, *, validation: bool = True) -> Kept | None:
    """Return the predictions in a file of the store, or None if it is lost; raises DamagedArraysError."""
    skipped = None if validation else names_of("validation")
    with user_errors(store.address):
        arrays = store.arrays.load(file, skip=skipped)
    if arrays is None:
        return None
    try:
        return unpack(arrays)
    except ValueError as error:
        raise DamagedArraysError(f"{store.arrays.path(file)}: {error}") from error


def forget_predictions(connection: Connection, keys: Iterable[str] | None = None) -> None:
    """Remove the rows of stored predictions, all or those of some cells; their files then belong to nothing."""
    if keys is None:
        connection.execute(delete(predictions))
    for part in chunks(sorted(set(keys or ()))):
        connection.execute(delete(predictions).where(predictions.c.key.in_(part)))
