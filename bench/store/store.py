"""The store: one row per cell and one row per metric value, written as soon as a cell ends.

SQLite in WAL mode by default, PostgreSQL by URL for a team. Predictions are files beside it, named by their content.
Results are JSON, numbers and plain arrays. The only code is that of plug-in files, kept as text by its hash and never
imported from a store.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray
from sqlalchemy import Connection, delete, select

from bench.errors import UserError, unknown_name
from bench.plugins.files import PluginSource
from bench.probes import check_outcome
from bench.spec.cell import Cell, Outcome
from bench.spec.names import LONGEST_NAME, check_name
from bench.store import DEFAULT_URL, bank
from bench.store import leases as lease_rows
from bench.store.address import parse_address
from bench.store.arrays import ArrayFiles
from bench.store.database import Database, chunks, insert, user_errors
from bench.store.leases import Owner, new_owner
from bench.store.result_rows import environment_text, result_row, storable, unique_results, write_results
from bench.store.schema import SCHEMA, NoStoreError, content_hash, prepare
from bench.store.tables import cells, environments, leases, plugins, remarks, searches, suites, wanted
from bench.store.value_columns import ValueColumns, read_values

__all__ = ["SCHEMA", "NoStoreError", "Owner", "Store", "SuiteRecord", "new_owner"]

PLACE = ("dataset", "split", "method", "seed", "key")


@dataclass(frozen=True)
class SuiteRecord:
    """A suite as it is stored."""

    name: str
    title: str
    baseline: str | None
    metrics: Sequence[str]
    content: str  # the suite as JSON


class Store:
    """Stored results. A store that was not opened as writable is never changed."""

    def __init__(self, url: str = DEFAULT_URL, *, create: bool = True, writable: bool = True) -> None:
        address = parse_address(url)
        self.url = address.url
        self.address = address.without_password  # without its password
        self.path: Path | None = address.path
        self.arrays = ArrayFiles(address.arrays)
        if address.path and not address.path.is_file():
            if not (create and writable):
                raise NoStoreError(self.address)
            with user_errors(self.address):
                address.path.parent.mkdir(parents=True, exist_ok=True)
        self.database = Database(address, writable=writable)
        try:
            prepare(self.database, create=create and writable)
        except BaseException:
            self.database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def want(self, suite: SuiteRecord, cells: Iterable[Cell]) -> None:
        """Record which cells a suite consists of, so that reports find them."""
        record = {
            "name": suite.name,
            "title": suite.title,
            "baseline": suite.baseline,
            "metrics": json.dumps(list(suite.metrics)),
            "content": suite.content,
            "hash": content_hash(suite.content),
        }
        rows = [{name: getattr(cell, name) for name in PLACE} | {"suite": suite.name} for cell in cells]
        check_name(suite.name, "suite")
        for part in ("dataset", "method"):
            for name in {str(row[part]) for row in rows}:
                check_name(name, part)

        def work(connection: Connection) -> None:
            row = insert(connection, suites).values(record)
            connection.execute(row.on_conflict_do_update(index_elements=["name"], set_=record))
            for dataset, method in {(row["dataset"], row["method"]) for row in rows}:
                same = (wanted.c.suite == suite.name, wanted.c.dataset == dataset, wanted.c.method == method)
                connection.execute(delete(wanted).where(*same))
            if rows:
                connection.execute(insert(connection, wanted), rows)

        self.database.write(work, lock=suites)

    def forget(self, suite: str) -> None:
        """Delete the list of a suite's cells and its remarks; the results themselves stay."""

        def work(connection: Connection) -> None:
            for table in (wanted, remarks):
                connection.execute(delete(table).where(table.c.suite == suite))

        self.database.write(work, lock=suites)

    def remark(self, suite: str, dataset: str, method: str, texts: Sequence[str]) -> None:
        """Store remarks for readers of the results on a dataset (method: '') or on a method on it."""
        place = {"suite": suite, "dataset": dataset, "method": method}
        rows = [{**place, "number": number, "text": storable(text)} for number, text in enumerate(texts)]

        def work(connection: Connection) -> None:
            connection.execute(delete(remarks).where(*(remarks.c[name] == value for name, value in place.items())))
            if rows:
                connection.execute(insert(connection, remarks), rows)

        self.database.write(work, lock=suites)

    def remarks(self, suite: str) -> list[dict[str, Any]]:
        """Return the remarks on a suite, one row each: dataset, method, text."""
        columns = (remarks.c.dataset, remarks.c.method, remarks.c.text)
        order = (remarks.c.dataset, remarks.c.method, remarks.c.number)
        return self.database.rows(select(*columns).where(remarks.c.suite == suite).order_by(*order))

    def done(self, keys: Iterable[str]) -> set[str]:
        """Return the keys that have a result. A failure is not a result: such cells run again."""
        found: set[str] = set()
        with self.database.reading() as connection:
            for part in chunks(sorted(set(keys))):
                known = select(cells.c.key).where(cells.c.key.in_(part), cells.c.status != "failed")
                found.update(connection.execute(known).scalars())
        return found

    def save(self, results: Iterable[tuple[Cell, Outcome]], suite: str = "") -> None:
        """Store results in one transaction; `suite` is the name of the suite that was run.

        The first result of a cell is kept, since two drivers may both have run it. Only a failure is replaced.
        """
        batch = unique_results(results)
        for _, outcome in batch:
            check_outcome(outcome)
        values = [
            {"key": cell.key, "metric": name, "value": float(value)}
            for cell, outcome in batch
            for name, value in outcome.metrics.items()
        ]
        described = {environment_text(outcome) for _, outcome in batch}
        rows = [result_row(cell, outcome) for cell, outcome in batch]
        with user_errors(self.address):
            for row, (_, outcome) in zip(rows, batch, strict=True):
                row["arrays"] = self.arrays.save(outcome.arrays) if outcome.arrays else None
            deposits = bank.deposit(self, batch)
            self.arrays.sync()

        def work(connection: Connection) -> None:
            hashed = connection.execute(select(suites.c.hash).where(suites.c.name == suite)).scalar()
            own = [{**row, "suite_hash": hashed or ""} for row in rows]
            bank.write_rows(connection, deposits, write_results(connection, own, values, described))
            for part in chunks([row["key"] for row in rows]):
                connection.execute(delete(leases).where(leases.c.key.in_(part)))

        if rows:
            self.database.write(work)

    def lease(self, keys: Sequence[str], owner: Owner) -> set[str]:
        """Lease those of the cells that have no result and no other live driver; return all that the owner holds."""
        database = self.database
        return database.write(lambda connection: lease_rows.acquire(database, connection, keys, owner), lock=leases)

    def renew(self, owner: Owner) -> None:
        """Renew the leases of a driver: it is alive."""
        self.database.write(lambda connection: lease_rows.renew(self.database, connection, owner))

    def release(self, owner: Owner, keys: Iterable[str] | None = None) -> None:
        """End the leases of these cells; without keys all of the driver's, when it ends."""
        ended = None if keys is None else set(keys)
        self.database.write(lambda connection: lease_rows.release(connection, owner, ended))

    def drivers(self) -> list[dict[str, Any]]:
        """Return the drivers that are alive, one row each: name, since, beat (last renewal), age."""
        with self.database.reading() as connection:
            return lease_rows.live_drivers(self.database, connection)

    def failed(self, suite: str | None = None) -> list[Cell]:
        """Return the failed cells of a suite, or of all suites."""
        columns = [*(wanted.c[name] for name in PLACE), cells.c.spec]
        query = select(*columns).join(cells, cells.c.key == wanted.c.key).where(cells.c.status == "failed")
        if suite is not None:
            query = query.where(wanted.c.suite == suite)
        found = self.database.rows(query.order_by(wanted.c.dataset, wanted.c.method, wanted.c.seed, wanted.c.suite))
        return list({row["key"]: Cell(**row) for row in reversed(found)}.values())[::-1]

    def finished(self, suite: str) -> list[dict[str, Any]]:
        """Return the places of a suite's results, one row each: dataset, split, method, seed, key."""
        query = select(*(wanted.c[name] for name in PLACE)).join(cells, cells.c.key == wanted.c.key)
        return self.database.rows(query.where(wanted.c.suite == suite, cells.c.status != "failed"))

    def suites(self) -> dict[str, dict[str, Any]]:
        """Return the suites in the store by name: title, baseline, metrics, content, hash."""
        with self.database.reading() as connection:
            rows = connection.execute(select(suites).order_by(suites.c.name)).mappings().all()
            return {row["name"]: {**row, "metrics": json.loads(row["metrics"])} for row in rows}

    def datasets(self) -> list[str]:
        """Return the names of all datasets that suites of the store have."""
        with self.database.reading() as connection:
            return sorted(connection.execute(select(wanted.c.dataset).distinct()).scalars())

    def require_suite(self, suite: str) -> None:
        """Raise if the store does not have a suite."""
        if suite not in (known := self.suites()):
            hint = "another store is named with --store"
            raise UserError(f"{unknown_name('suite', suite, known, f'store {self.address}')} ({hint})")

    def value_columns(self, suite: str) -> ValueColumns:
        """Return the metric values of a suite as columns, however many they are."""
        return read_values(self.database, suite)

    def values(self, suite: str) -> list[dict[str, Any]]:
        """Return the metric values of a suite, one row each."""
        found, names = self.value_columns(suite), ("suite", *PLACE, "metric", "value")
        numbers = zip(found.place.tolist(), found.metric.tolist(), found.value.tolist(), strict=True)
        return [dict(zip(names, (*found.places[p], found.metrics[m], v), strict=True)) for p, m, v in numbers]

    def states(self, suite: str) -> dict[str, str | None]:
        """Return the status of every cell of a suite by key; None: it has not run yet."""
        query = select(wanted.c.key, cells.c.status).join(cells, cells.c.key == wanted.c.key, isouter=True)
        with self.database.reading() as connection:
            return {row.key: row.status for row in connection.execute(query.where(wanted.c.suite == suite))}

    def cells(self, suite: str) -> list[dict[str, Any]]:
        """Return the cells of a suite, one row each: status (None: not run yet), message, training, environment, ..."""
        outcome = [column for column in cells.c if column.name not in ("key", "environment")]
        columns = [*wanted.c, *outcome, environments.c.content.label("environment")]
        query = select(*columns).join(cells, cells.c.key == wanted.c.key, isouter=True)
        query = query.join(environments, environments.c.hash == cells.c.environment, isouter=True)
        order = (wanted.c.dataset, wanted.c.method, wanted.c.seed)
        return self.database.rows(query.where(wanted.c.suite == suite).order_by(*order))

    def load_arrays(self, key: str, only: Collection[str] | None = None) -> dict[str, NDArray[Any]] | None:
        """Return the arrays of a cell, all or `only` some by name, or None if it has none."""
        with self.database.reading() as connection:
            name = connection.execute(select(cells.c.arrays).where(cells.c.key == key)).scalar()
        with user_errors(self.address):
            return self.arrays.load(str(name), only) if name else None

    def searches(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the stored hyper-parameter searches of these cells, as JSON by key."""
        found: dict[str, str] = {}
        with self.database.reading() as connection:
            for part in chunks(list(keys)):
                query = select(searches.c.key, searches.c.content).where(searches.c.key.in_(part))
                found.update((row.key, row.content) for row in connection.execute(query))
        return found

    def save_search(self, key: str, content: str) -> None:
        """Store a hyper-parameter search; the first one of a key is kept."""

        def work(connection: Connection) -> None:
            row = insert(connection, searches).values(key=key, content=content)
            connection.execute(row.on_conflict_do_nothing())

        self.database.write(work)

    def save_plugins(self, sources: Iterable[PluginSource]) -> None:
        """Store the content of plug-in files by its hash; what is stored already stays."""
        rows = [
            {"hash": one.hash, "name": storable(one.name)[:LONGEST_NAME], "content": one.content} for one in sources
        ]

        def work(connection: Connection) -> None:
            connection.execute(insert(connection, plugins).on_conflict_do_nothing(), rows)

        if rows:
            self.database.write(work)

    def plugins(self, hashes: Iterable[str] | None = None) -> dict[str, PluginSource]:
        """Return the stored plug-in files by their hash: all, or those of some hashes."""
        query = select(plugins)
        if hashes is not None:
            query = query.where(plugins.c.hash.in_(sorted(set(hashes))))
        rows = self.database.rows(query.order_by(plugins.c.hash))
        content = {row["hash"]: row["content"] for row in rows if isinstance(row["content"], bytes | memoryview)}
        found = {row["hash"]: PluginSource(str(row["name"]), bytes(content.get(row["hash"], b""))) for row in rows}
        # The rows of a foreign store are not trusted: content under a wrong hash is nobody's.
        return {name: source for name, source in found.items() if source.hash == name}

    def close(self) -> None:
        """Close the database."""
        self.database.close()


HASH = re.compile(r'"([0-9a-f]{16})"')


def plugin_hashes(spec: str | None) -> set[str]:
    """Return the hashes of plug-in files that a specification may name: whatever is quoted and looks like one."""
    return set(HASH.findall(spec or ""))
