"""Results as rows of the tables: how an outcome is stored, and that the first result of a cell is kept."""

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete

from bench.spec.cell import Cell, Outcome
from bench.store.database import chunks, insert_rows
from bench.store.schema import content_hash, split_code
from bench.store.tables import cells, environments, metrics

Rows = Sequence[dict[str, Any]]


def write_results(connection: Connection, rows: Rows, values: Rows, described: Iterable[str]) -> set[str]:
    """Write cells without a result yet, with their metric values and environments (JSON); return their keys."""
    contents = [{"hash": content_hash(content), "content": content} for content in sorted(described)]
    for part in chunks(contents):
        insert_rows(connection, environments, part, lambda new: new.on_conflict_do_nothing())
    written: set[str] = set()
    # Sorted, so that two transactions with the same cells wait for each other instead of deadlocking.
    for part in chunks(sorted(rows, key=lambda row: str(row["key"]))):
        written.update(insert_rows(connection, cells, part, _unless_done).scalars())
    for keys in chunks(sorted(written)):
        connection.execute(delete(metrics).where(metrics.c.key.in_(keys)))
    for part in chunks([value for value in values if value["key"] in written], 5000):
        insert_rows(connection, metrics, part)
    return written


def _unless_done(new: Any) -> Any:
    """Keep the first result of a cell; only a failure is replaced."""
    replaced = {column.name: new.excluded[column.name] for column in cells.c if column.name != "key"}
    new = new.on_conflict_do_update(index_elements=["key"], set_=replaced, where=cells.c.status == "failed")
    return new.returning(cells.c.key)


def storable(text: str) -> str:
    """Return the text without NUL and lone surrogates, which not both databases can hold."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def unique_results(results: Iterable[tuple[Cell, Outcome]]) -> list[tuple[Cell, Outcome]]:
    """Return one result per key: the first that did not fail."""
    best: dict[str, tuple[Cell, Outcome]] = {}
    for cell, outcome in results:
        if cell.key not in best or (best[cell.key][1].status == "failed" and outcome.status != "failed"):
            best[cell.key] = cell, outcome
    return list(best.values())


def environment_text(outcome: Outcome) -> str:
    """Return the environment of an outcome as it is stored."""
    return storable(json.dumps(outcome.environment, sort_keys=True))


def result_row(cell: Cell, outcome: Outcome) -> dict[str, Any]:
    """Return the row of a result, but for its array file and its suite."""
    environment = environment_text(outcome)
    code, dirty = split_code(environment)
    return {
        "key": cell.key,
        "spec": cell.spec,
        "status": outcome.status,
        "message": storable(outcome.message),
        "training": json.dumps(outcome.training, sort_keys=True),
        **{name: outcome.timing.get(name) for name in ("seconds", "cpu_seconds", "started")},
        "environment": content_hash(environment),
        "code": code,
        "dirty": dirty,
        "finished": outcome.timing.get("finished", time.time()),
    }
