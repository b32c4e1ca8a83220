"""The store: one row a cell and one row a metric value, written the moment a cell ends.

SQLite in WAL mode by default, PostgreSQL by URL for a team. Predictions lie beside it as files named by their content.
Nothing stored is code: JSON, numbers and plain arrays.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sqlalchemy import Connection, delete, select

from bench.errors import UserError
from bench.probes import check_outcome
from bench.spec.cell import Cell, Outcome
from bench.store import leases as driving
from bench.store.arrays import ArrayFiles
from bench.store.database import DEFAULT_URL, Database, address, chunks, insert, told
from bench.store.leases import Owner, living_owner
from bench.store.schema import (
    LONGEST_NAME,
    SCHEMA,
    cells,
    claims,
    content_hash,
    environments,
    metrics,
    prepare,
    remarks,
    searches,
    split_code,
    suites,
    wanted,
)

__all__ = ["DEFAULT_URL", "SCHEMA", "Owner", "Store", "SuiteRecord", "living_owner"]

PLACE = ("dataset", "split", "method", "seed", "key")


@dataclass(frozen=True)
class SuiteRecord:
    """What the store knows of a suite."""

    name: str
    title: str
    baseline: str | None
    metrics: Sequence[str]
    content: str  # the suite as JSON: what was asked for


class Store:
    """Results on disk. A store that is not writable is never changed, also where it could be."""

    def __init__(self, url: str = DEFAULT_URL, *, create: bool = True, writable: bool = True) -> None:
        place = address(url)
        self.url = place.url
        self.shown = place.shown  # the address without its password
        self.path: Path | None = place.path
        self.arrays = ArrayFiles(place.arrays)
        if place.path and not place.path.is_file():
            if not (create and writable):
                raise UserError(f"--store {url}: no such store; make one with 'uqbench run SUITE --store {url}'")
            with told(place.shown):
                place.path.parent.mkdir(parents=True, exist_ok=True)
        self.database = Database(place, writable=writable)
        try:
            prepare(self.database, self.arrays, create=create and writable)
        except BaseException:
            self.database.close()
            raise

    def want(self, suite: SuiteRecord, cells: Iterable[Cell]) -> None:
        """Note which cells a suite consists of, so that reports find them."""
        record = {
            "name": suite.name,
            "title": suite.title,
            "baseline": suite.baseline,
            "metrics": json.dumps(list(suite.metrics)),
            "content": suite.content,
            "hash": content_hash(suite.content),
        }
        rows = [{name: getattr(cell, name) for name in PLACE} | {"suite": suite.name} for cell in cells]
        for name in {suite.name, *(row[part] for row in rows for part in ("dataset", "method"))}:
            if len(name) > LONGEST_NAME:
                raise UserError(
                    f"the name {name[:40]}... has {len(name)} characters; at most {LONGEST_NAME} are stored"
                )

        def work(connection: Connection) -> None:
            row = insert(connection, suites).values(record)
            connection.execute(row.on_conflict_do_update(index_elements=["name"], set_=record))
            for dataset, method in {(row["dataset"], row["method"]) for row in rows}:
                before = (wanted.c.suite == suite.name, wanted.c.dataset == dataset, wanted.c.method == method)
                connection.execute(delete(wanted).where(*before))
            if rows:
                connection.execute(insert(connection, wanted), rows)

        self.database.write(work, lock=suites)

    def forget(self, suite: str) -> None:
        """Forget which cells a suite consisted of, and what was remarked; the results themselves stay."""

        def work(connection: Connection) -> None:
            for table in (wanted, remarks):
                connection.execute(delete(table).where(table.c.suite == suite))

        self.database.write(work, lock=suites)

    def remark(self, suite: str, dataset: str, method: str, texts: Sequence[str]) -> None:
        """Keep what readers of the results should know about a dataset (method: '') or a method on it."""
        place = {"suite": suite, "dataset": dataset, "method": method}
        rows = [{**place, "number": number, "text": plain(text)} for number, text in enumerate(texts)]

        def work(connection: Connection) -> None:
            connection.execute(delete(remarks).where(*(remarks.c[name] == value for name, value in place.items())))
            if rows:
                connection.execute(insert(connection, remarks), rows)

        self.database.write(work, lock=suites)

    def remarks(self, suite: str) -> list[dict[str, Any]]:
        """Return one row a remark: dataset, method, text."""
        columns = (remarks.c.dataset, remarks.c.method, remarks.c.text)
        order = (remarks.c.dataset, remarks.c.method, remarks.c.number)
        return self.database.rows(select(*columns).where(remarks.c.suite == suite).order_by(*order))

    def done(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that have a result. Failed cells have none: they run again."""
        found: set[str] = set()
        with self.database.reading() as connection:
            for part in chunks(sorted(set(keys))):
                known = select(cells.c.key).where(cells.c.key.in_(part), cells.c.status != "failed")
                found.update(connection.execute(known).scalars())
        return found

    def save(self, results: Iterable[tuple[Cell, Outcome]], suite: str = "") -> None:
        """Store results, all of them or none; `suite` is the name of the one that asked for them.

        The first result of a cell stays: two drivers may both have made it. Only a failure gives way.
        """
        batch = _one_each(results)
        for _, outcome in batch:
            check_outcome(outcome)
        values = [
            {"key": cell.key, "metric": name, "value": float(value)}
            for cell, outcome in batch
            for name, value in outcome.metrics.items()
        ]
        surroundings = {_environment(outcome) for _, outcome in batch}
        rows = [_row(cell, outcome) for cell, outcome in batch]
        with told(self.shown):
            for row, (_, outcome) in zip(rows, batch, strict=True):
                row["arrays"] = self.arrays.save(outcome.arrays) if outcome.arrays else None
            self.arrays.sync()

        def work(connection: Connection) -> None:
            hashed = connection.execute(select(suites.c.hash).where(suites.c.name == suite)).scalar()
            put(connection, [{**row, "suite_hash": hashed or ""} for row in rows], values, surroundings)
            for part in chunks([row["key"] for row in rows]):
                connection.execute(delete(claims).where(claims.c.key.in_(part)))

        if rows:
            self.database.write(work)

    def claim(self, keys: Sequence[str], owner: Owner) -> set[str]:
        """Make those of the keys ours that have no result and no other living driver; return all that are ours."""
        return self.database.write(
            lambda connection: driving.claim(self.database, connection, keys, owner), lock=claims
        )

    def beat(self, owner: Owner) -> None:
        """Show that a driver is alive."""
        self.database.write(lambda connection: driving.beat(self.database, connection, owner))

    def release(self, owner: Owner, keys: Iterable[str] | None = None) -> None:
        """Give claims back; without keys all of them, when the driver ends."""
        given = None if keys is None else set(keys)
        self.database.write(lambda connection: driving.release(connection, owner, given))

    def drivers(self) -> list[dict[str, Any]]:
        """Return one row a driver that is alive: name, since, beat, age."""
        with self.database.reading() as connection:
            return driving.living(self.database, connection)

    def failed(self, suite: str | None = None) -> list[Cell]:
        """Return the wanted cells that failed, of a suite or of all."""
        columns = [*(wanted.c[name] for name in PLACE), cells.c.spec]
        query = select(*columns).join(cells, cells.c.key == wanted.c.key).where(cells.c.status == "failed")
        if suite is not None:
            query = query.where(wanted.c.suite == suite)
        found = self.database.rows(query.order_by(wanted.c.dataset, wanted.c.method, wanted.c.seed, wanted.c.suite))
        return list({row["key"]: Cell(**row) for row in reversed(found)}.values())[::-1]

    def suites(self) -> dict[str, dict[str, Any]]:
        """Return the suites in the store by name: title, baseline, metrics, content, hash."""
        with self.database.reading() as connection:
            rows = connection.execute(select(suites).order_by(suites.c.name)).mappings().all()
            return {row["name"]: {**row, "metrics": json.loads(row["metrics"])} for row in rows}

    def values(self, suite: str) -> list[dict[str, Any]]:
        """Return one row a metric value of a suite."""
        columns = [*wanted.c, metrics.c.metric, metrics.c.value]
        query = select(*columns).join(metrics, metrics.c.key == wanted.c.key).where(wanted.c.suite == suite)
        order = (wanted.c.dataset, wanted.c.method, wanted.c.seed, metrics.c.metric)
        return self.database.rows(query.order_by(*order))

    def cells(self, suite: str) -> list[dict[str, Any]]:
        """Return one row a cell of a suite: status (None: not run yet), message, training, timing, environment."""
        about = [column for column in cells.c if column.name not in ("key", "environment")]
        columns = [*wanted.c, *about, environments.c.content.label("environment")]
        query = select(*columns).join(cells, cells.c.key == wanted.c.key, isouter=True)
        query = query.join(environments, environments.c.hash == cells.c.environment, isouter=True)
        order = (wanted.c.dataset, wanted.c.method, wanted.c.seed)
        return self.database.rows(query.where(wanted.c.suite == suite).order_by(*order))

    def load_arrays(self, key: str) -> dict[str, NDArray[Any]] | None:
        """Return the arrays of a cell, or None where there are none."""
        with self.database.reading() as connection:
            name = connection.execute(select(cells.c.arrays).where(cells.c.key == key)).scalar()
        with told(self.shown):
            return self.arrays.load(str(name)) if name else None

    def searches(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the searches for hyper-parameters that were kept for these cells, as JSON by key."""
        found: dict[str, str] = {}
        with self.database.reading() as connection:
            for part in chunks(list(keys)):
                query = select(searches.c.key, searches.c.content).where(searches.c.key.in_(part))
                found.update((row.key, row.content) for row in connection.execute(query))
        return found

    def save_search(self, key: str, content: str) -> None:
        """Keep a search for hyper-parameters; the first one of a key stays."""
        row = {"key": key, "content": content}
        self.database.write(
            lambda connection: connection.execute(insert(connection, searches).values(row).on_conflict_do_nothing())
        )

    def close(self) -> None:
        """Release the database."""
        self.database.close()


def put(
    connection: Connection,
    rows: Sequence[dict[str, Any]],
    values: Sequence[dict[str, Any]],
    surroundings: Iterable[str],
) -> set[str]:
    """Write rows of cells with their metric values where there is no result yet; return the keys that were written."""
    contents = [{"hash": content_hash(content), "content": content} for content in sorted(surroundings)]
    for part in chunks(contents):
        connection.execute(insert(connection, environments).on_conflict_do_nothing(), part)
    written: set[str] = set()
    # Sorted, so that two transactions with the same cells wait for each other instead of locking each other out.
    for part in chunks(sorted(rows, key=lambda row: str(row["key"]))):
        new = insert(connection, cells)
        replaced = {column.name: new.excluded[column.name] for column in cells.c if column.name != "key"}
        new = new.on_conflict_do_update(index_elements=["key"], set_=replaced, where=cells.c.status == "failed")
        written.update(connection.execute(new.values(part).returning(cells.c.key)).scalars())
    for keys in chunks(sorted(written)):
        connection.execute(delete(metrics).where(metrics.c.key.in_(keys)))
    fresh = [value for value in values if value["key"] in written]
    for part in chunks(fresh, 5000):
        connection.execute(insert(connection, metrics), part)
    return written


def plain(text: str) -> str:
    """Return text that both databases can hold: no NUL, no halves of characters."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def _one_each(results: Iterable[tuple[Cell, Outcome]]) -> list[tuple[Cell, Outcome]]:
    """Return one result for each key: the first that did not fail."""
    best: dict[str, tuple[Cell, Outcome]] = {}
    for cell, outcome in results:
        if cell.key not in best or (best[cell.key][1].status == "failed" and outcome.status != "failed"):
            best[cell.key] = cell, outcome
    return list(best.values())


def _environment(outcome: Outcome) -> str:
    return plain(json.dumps(outcome.environment, sort_keys=True))


def _row(cell: Cell, outcome: Outcome) -> dict[str, Any]:
    environment = _environment(outcome)
    code, dirty = split_code(environment)
    return {
        "key": cell.key,
        "spec": cell.spec,
        "status": outcome.status,
        "message": plain(outcome.message),
        "training": json.dumps(outcome.training, sort_keys=True),
        "seconds": outcome.timing.get("seconds"),
        "cpu_seconds": outcome.timing.get("cpu_seconds"),
        "environment": content_hash(environment),
        "code": code,
        "dirty": dirty,
        "started": outcome.timing.get("started"),
        "finished": outcome.timing.get("finished", time.time()),
    }
