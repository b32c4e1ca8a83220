"""Merges the results of one store into another.

Nothing in a foreign store is trusted: a file is copied only if its content matches its name, and a row that no store of
ours could hold ends the merge with an error.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from sqlalchemy import Connection, Table, func, select

from bench.errors import UserError
from bench.spec.cell import Status
from bench.spec.names import check_name
from bench.store.arrays import DamagedArraysError
from bench.store.database import chunks, insert, user_errors
from bench.store.leases import new_owner
from bench.store.merge_bank import copy_networks, copy_predictions, rescored_rows, write_copied, write_rescored
from bench.store.recalibrated import foreign_rows, write_recalibrated
from bench.store.result_rows import storable, write_results
from bench.store.schema import content_hash, split_code
from bench.store.store import Store
from bench.store.tables import cells, environments, metrics, remarks, searches, suites, wanted


@dataclass(frozen=True)
class Conflict:
    """A value of a cell that differs between the stores; None: one of them has none."""

    key: str
    what: str  # a metric, 'status' or 'search'
    here: Any
    there: Any


@dataclass(frozen=True)
class SkippedFile:
    """An array file of the other store that was not copied; the values of its cell were."""

    key: str
    file: str
    reason: str


@dataclass
class Merged:
    """Counts of what a merge changed, and the conflicts."""

    added: int = 0
    replaced: int = 0  # failures replaced by a result
    same: int = 0
    arrays: int = 0  # files copied
    predictions: int = 0  # files of stored predictions copied
    networks: int = 0  # files of kept networks copied
    predictions_left_out: int = 0  # cells whose predictions the budget of this store had no room for
    skipped: list[SkippedFile] = field(default_factory=list)  # array files that could not be copied
    suites: int = 0  # added
    wanted: int = 0  # added cells of suites
    plugins: int = 0  # added sources of plug-in files
    conflicts: list[Conflict] = field(default_factory=list)


def merge(store: Store, other: Store) -> Merged:
    """Merge everything in another store into this one; cells with other values here are kept as they are."""
    done = Merged()
    owner = new_owner()
    store.renew(owner)  # gc then keeps new files, whose rows are not written yet
    try:
        with other.database.reading() as there:
            for part in chunks(sorted(_keys(there, other))):
                store.renew(owner)
                _merge_cells(store, other, there, part, done)
            _merge_suites(store, other, there, done)
            _merge_searches(store, other, there, done)
        done.networks = copy_networks(store, other)
        new = {name: source for name, source in other.plugins().items() if name not in store.plugins([name])}
        store.save_plugins(new.values())
        done.plugins = len(new)
    finally:
        store.release(owner)
    return done


def _keys(there: Connection, other: Store) -> list[str]:
    keys = list(there.execute(select(cells.c.key)).scalars())
    for key in keys:
        _checked_name(key, "key", other)
    return keys


def _merge_cells(store: Store, other: Store, there: Connection, keys: Sequence[str], done: Merged) -> None:
    theirs = {row["key"]: row for row in _results(there, keys, other)}
    later_there = rescored_rows(there, keys, other)
    corrected = foreign_rows(there, keys, other)
    with store.database.reading() as here:
        ours = {row["key"]: row for row in _results(here, keys, store)}
        later = rescored_rows(here, keys, store).keys() | later_there.keys()
    new, same = [], set()
    for key, row in theirs.items():
        mine = ours.get(key)
        if mine is None or (mine["status"] == "failed" and row["status"] != "failed"):
            new.append(row)
        elif row["status"] == "failed":
            done.same += 1
        elif found := list(_differences(mine, row, {metric for one, metric in later if one == key})):
            done.conflicts += found
        else:
            done.same += 1
            same.add(key)
            if mine["arrays"] is not None and store.arrays.path(mine["arrays"]) is None:
                _copy_arrays(store, other, mine, done)
    added = {
        place: there_row
        for place, there_row in later_there.items()
        if place[0] in same and place[1] not in ours[place[0]]["values"]
    }
    known = {place: theirs[place[0]]["values"].get(place[1]) for place in added}
    copied = copy_predictions(store, other, same | {row["key"] for row in new if row["status"] == "ok"})
    done.skipped += [SkippedFile(*fault) for fault in copied.faults]
    done.predictions += copied.files
    done.predictions_left_out += copied.full
    rows, values, described = [], [], set()
    for row in new:
        environment = row.pop("environment_json") or "{}"
        code, dirty = split_code(environment)
        values += [{"key": row["key"], "metric": name, "value": value} for name, value in row.pop("values").items()]
        described.add(environment)
        arrays = _copy_arrays(store, other, row, done)
        rows.append(row | {"environment": content_hash(environment), "code": code, "dirty": dirty, "arrays": arrays})
    with user_errors(store.address):
        store.arrays.sync()

    def work(connection: Connection) -> set[str]:
        written = write_results(connection, rows, values, described) if rows else set()
        write_copied(connection, copied, same | written)
        moved = [row for (key, _), row in later_there.items() if key in written]
        if corrected:
            write_recalibrated(connection, [row for row in corrected if row["key"] in written | same])
        write_rescored(connection, [*moved, *added.values()], {p: v for p, v in known.items() if v is not None})
        return written

    if rows or copied.rows or added or corrected:
        written = store.database.write(work)
        replaced = sum(key in ours for key in written)
        done.replaced += replaced
        done.added += len(written) - replaced


def _results(connection: Connection, keys: Sequence[str], origin: Store) -> list[dict[str, Any]]:
    """Return the cells with these keys, their metric values and their environments as JSON."""
    query = select(cells, environments.c.content.label("environment_json"))
    query = query.join(environments, environments.c.hash == cells.c.environment, isouter=True)
    rows = [dict(row) for row in connection.execute(query.where(cells.c.key.in_(keys))).mappings()]
    values: dict[str, dict[str, float]] = {row["key"]: {} for row in rows}
    try:
        for key, metric, value in connection.execute(select(metrics).where(metrics.c.key.in_(keys))):
            values[key][_checked_name(metric, "metric", origin)] = value
    except (ValueError, TypeError):
        raise UserError(f"{origin.address}: a metric value is not a number; not merged") from None
    for row in rows:
        if row["status"] not in get_args(Status):
            status = str(row["status"])[:40]
            raise UserError(f"{origin.address}: cell {row['key']} has the status {status!r}; not merged")
        for name in ("spec", "message", "training", "code", "suite_hash", "arrays", "environment_json"):
            if row[name] is not None:
                row[name] = _checked_text(row[name], f"{name} of cell {row['key']}", origin)
        for name in ("seconds", "cpu_seconds", "started", "finished"):
            if not isinstance(row[name], float | int | type(None)):
                raise UserError(f"{origin.address}: {name} of cell {row['key']} is not a number; not merged")
    return [row | {"values": values[row["key"]]} for row in rows]


def _differences(here: Mapping[str, Any], there: Mapping[str, Any], later: Collection[str]) -> Iterator[Conflict]:
    """Yield the values that differ; those that were computed after the run (`later`) may be in one store alone."""
    if here["status"] != there["status"]:
        yield Conflict(here["key"], "status", here["status"], there["status"])
    for name in sorted((here["values"].keys() | there["values"].keys()) - set(later)):
        one, two = here["values"].get(name), there["values"].get(name)
        both_undefined = one is not None and two is not None and math.isnan(one) and math.isnan(two)
        if one != two and not both_undefined:
            yield Conflict(here["key"], name, one, two)


def _copy_arrays(store: Store, other: Store, row: Mapping[str, Any], done: Merged) -> str | None:
    """Copy the array file of a cell and return its name here; None if there is none that could be copied."""
    name = row["arrays"]
    if name is None:
        return None
    try:
        with user_errors(other.address):
            path = other.arrays.path(name)
            if path is None:
                done.skipped.append(SkippedFile(row["key"], name, "lost"))
                return None
            content = other.arrays.read(path)
    except DamagedArraysError as error:
        done.skipped.append(SkippedFile(row["key"], name, str(error)))
        return None
    with user_errors(store.address):
        copied = store.arrays.add(content)
    done.arrays += 1
    return copied


def _merge_suites(store: Store, other: Store, there: Connection, done: Merged) -> None:
    records, places, notes = (_rows(there, table, other) for table in (suites, wanted, remarks))

    def work(here: Connection) -> tuple[int, int]:
        before = _count(here, suites), _count(here, wanted)
        known = {tuple(row) for row in here.execute(select(remarks.c.suite, remarks.c.dataset, remarks.c.method))}
        new = [row for row in notes if (row["suite"], row["dataset"], row["method"]) not in known]
        for table, rows in ((suites, records), (wanted, places), (remarks, new)):
            for part in chunks(rows):
                here.execute(insert(here, table).on_conflict_do_nothing(), part)
        return _count(here, suites) - before[0], _count(here, wanted) - before[1]

    done.suites, done.wanted = store.database.write(work, lock=suites)


def _merge_searches(store: Store, other: Store, there: Connection, done: Merged) -> None:
    rows = _rows(there, searches, other)

    def work(here: Connection) -> dict[str, str]:
        for part in chunks(rows):
            here.execute(insert(here, searches).on_conflict_do_nothing(), part)
        return {row.key: row.content for row in here.execute(select(searches))}

    kept = store.database.write(work)
    done.conflicts += [
        Conflict(row["key"], "search", kept[row["key"]], row["content"])
        for row in rows
        if kept[row["key"]] != row["content"]
    ]


def _rows(connection: Connection, table: Table, origin: Store) -> list[dict[str, Any]]:
    """Return the rows of a table; raise if a value does not have the type of its column."""
    names = {column.name for column in table.primary_key}
    rows = [dict(row) for row in connection.execute(select(table)).mappings()]
    for row in rows:
        for name, value in row.items():
            if table.c[name].type.python_type is int:
                if not isinstance(value, int):
                    raise UserError(f"{origin.address}: {table.name}.{name} holds {str(value)[:40]!r}, not a number")
            elif name in names:
                _checked_name(value, f"{table.name}.{name}", origin)
            elif value is not None:
                row[name] = _checked_text(value, f"{table.name}.{name}", origin)
    return rows


def _checked_name(value: Any, what: str, origin: Store) -> str:
    text = _checked_text(value, what, origin)
    return check_name(value, f"{origin.address}: {what}") if text else text  # a remark on a dataset names no method


def _checked_text(value: Any, what: str, origin: Store) -> str:
    if not isinstance(value, str):
        raise UserError(f"{origin.address}: {what} is not text but {type(value).__name__}; not merged")
    return storable(value)


def _count(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())
