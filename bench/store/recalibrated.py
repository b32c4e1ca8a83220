"""Corrected values that are kept in place of the predictions they were computed from, in a table of their own.

No ranking, test or gate reads them. Stores have the table where corrected values were written: an export, whose
predictions would be too large, has them, and `merge` copies them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, inspect, select

from bench.errors import UserError
from bench.spec.names import check_name
from bench.store.database import chunks, insert
from bench.store.tables import recalibrated, wanted

if TYPE_CHECKING:
    from bench.store.store import Store

COLUMNS = ("key", "correction", "metric", "value")


def write_recalibrated(connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add corrected values of cells; those that are there already stay."""
    recalibrated.create(connection, checkfirst=True)
    for part in chunks([{name: row[name] for name in COLUMNS} for row in rows]):
        connection.execute(insert(connection, recalibrated).on_conflict_do_nothing(), part)


def recalibrated_rows(store: "Store", suite: str) -> list[dict[str, Any]]:
    """Return the corrected values of a suite: key, correction, metric and value."""
    with store.database.reading() as connection:
        if not has_recalibrated(connection):
            return []
        keys = select(wanted.c.key).where(wanted.c.suite == suite)
        query = select(recalibrated).where(recalibrated.c.key.in_(keys)).order_by(*recalibrated.primary_key)
        return [dict(row) for row in connection.execute(query).mappings()]


def foreign_rows(connection: Connection, keys: Sequence[str], origin: "Store") -> list[dict[str, Any]]:
    """Return the corrected values of some cells of another store; raises if no store of ours could hold one."""
    if not has_recalibrated(connection):
        return []
    query = select(recalibrated).where(recalibrated.c.key.in_(keys))
    rows = [dict(row) for row in connection.execute(query).mappings()]
    for row in rows:
        if not all(isinstance(row[name], str) for name in COLUMNS[:3]):
            raise UserError(f"{origin.address}: a corrected value of cell {row['key']} is not as stored; not merged")
        check_name(row["correction"], f"{origin.address}: correction")
        check_name(row["metric"], f"{origin.address}: metric")
    return rows


def has_recalibrated(connection: Connection) -> bool:
    """Return whether a store has corrected values, or had some."""
    return bool(inspect(connection).has_table(recalibrated.name))
