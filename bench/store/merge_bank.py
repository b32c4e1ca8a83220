"""What a merge does with stored predictions, and with the values that were computed from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from bench.errors import UserError
from bench.machine.files import write_output
from bench.metrics.kept import unpack
from bench.spec.names import check_name
from bench.store.arrays import DamagedArraysError
from bench.store.bank import Deposits, files_beside, kept_files, write_rows
from bench.store.database import insert, user_errors
from bench.store.result_rows import storable
from bench.store.store import Store
from bench.store.tables import metrics, rescored

Rescored = dict[tuple[str, str], dict[str, Any]]  # rows by key and metric


@dataclass
class CopiedPredictions:
    """Files of predictions that were copied from another store, and cells whose files could not be."""

    rows: list[dict[str, Any]]  # of the cells they belong to
    faults: list[tuple[str, str, str]]  # key, file, reason
    full: int = 0  # cells for which the budget had no room

    @property
    def files(self) -> int:
        """How many were copied."""
        return sum(row["file"] is not None for row in self.rows)


def copy_predictions(store: Store, other: Store, keys: Iterable[str]) -> CopiedPredictions:
    """Copy the predictions of cells that have none here, as far as the budget goes. Nothing there is trusted."""
    wanted = set(keys)
    have = kept_files(store, wanted)
    deposits, done = Deposits(store), CopiedPredictions([], [])
    for key, row in sorted(kept_files(other, wanted - have.keys()).items()):
        name = str(row["file"])
        try:
            content = _content(other, name)
        except DamagedArraysError as error:
            done.faults.append((key, name, str(error)))
            continue
        with user_errors(store.address):
            done.full += not deposits.add(key, content)
    done.rows = deposits.rows
    return done


def _content(other: Store, name: str) -> bytes:
    with user_errors(other.address):
        path = other.arrays.path(name)
        if path is None:
            raise DamagedArraysError("lost")
        content = other.arrays.read(path)
        arrays = other.arrays.load(name) or {}
    try:
        unpack(arrays)
    except ValueError as error:
        raise DamagedArraysError(f"{path}: {error}") from error
    return content


def copy_networks(store: Store, other: Store) -> int:
    """Copy kept networks that this store does not have; return how many. Whoever loads one checks its content."""
    copied = 0
    for path in files_beside(other, "networks"):
        place = store.arrays.folder.with_suffix(".networks") / path.parent.name / path.name
        if not place.exists():
            with user_errors(store.address):
                place.parent.mkdir(parents=True, exist_ok=True)
                write_output(place, path.read_bytes(), durable=True)
            copied += 1
    return copied


def write_copied(connection: Connection, copied: CopiedPredictions, keys: Iterable[str]) -> None:
    """Write the rows of copied predictions of these cells."""
    own = {row["key"] for row in copied.rows} & set(keys)
    write_rows(connection, copied.rows, own)


def rescored_rows(connection: Connection, keys: Sequence[str], origin: Store) -> Rescored:
    """Return the rows of values that were computed after the run; raises if no store of ours could hold one."""
    found: Rescored = {}
    for row in connection.execute(select(rescored).where(rescored.c.key.in_(keys))).mappings():
        texts = [row[name] for name in ("metric", "version", "precision")]
        if not all(isinstance(text, str) for text in texts) or not isinstance(row["computed"], float | int):
            raise UserError(f"{origin.address}: a rescored value of cell {row['key']} is not as stored; not merged")
        check_name(row["metric"], f"{origin.address}: metric")
        plain = {"version": storable(row["version"]), "precision": storable(row["precision"])}
        found[row["key"], row["metric"]] = {**row, **plain}
    return found


def write_rescored(
    connection: Connection, rows: Iterable[Mapping[str, Any]], values: Mapping[tuple[str, str], float]
) -> None:
    """Add rescored values that this store does not have."""
    new = [dict(row) for row in rows]
    if not new:
        return
    connection.execute(insert(connection, rescored).on_conflict_do_nothing(), new)
    known = [
        {"key": row["key"], "metric": row["metric"], "value": values[row["key"], row["metric"]]}
        for row in new
        if (row["key"], row["metric"]) in values
    ]
    if known:
        connection.execute(insert(connection, metrics).on_conflict_do_nothing(), known)
