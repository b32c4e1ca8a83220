"""The store: one row a cell and one row a metric value, written the moment a cell ends.

SQLite in WAL mode by default. Predictions lie beside it as files that are written under another name, synced and
renamed. Nothing stored is code: JSON, numbers and plain arrays.
"""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sqlalchemy import (
    Column,
    Engine,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from bench.api import Array
from bench.errors import UserError
from bench.plan import Cell

SCHEMA = 1
DEFAULT_URL = "sqlite:///runs/uqbench.db"

_meta = MetaData()
_schema = Table("schema", _meta, Column("version", Integer, primary_key=True))
_suites = Table(
    "suites", _meta,
    Column("name", String(200), primary_key=True), Column("title", Text), Column("baseline", Text),
    Column("metrics", Text),
)  # fmt: skip
_wanted = Table(
    "wanted", _meta,
    Column("suite", String(200), primary_key=True), Column("dataset", String(200), primary_key=True),
    Column("split", Integer, primary_key=True), Column("method", String(200), primary_key=True),
    Column("seed", Integer, primary_key=True), Column("key", String(64), index=True),
)  # fmt: skip
_remarks = Table(
    "remarks", _meta,
    Column("suite", String(200), primary_key=True), Column("dataset", String(200), primary_key=True),
    Column("method", String(200), primary_key=True), Column("number", Integer, primary_key=True), Column("text", Text),
)  # fmt: skip
_cells = Table(
    "cells", _meta,
    Column("key", String(64), primary_key=True), Column("spec", Text), Column("status", String(20)),
    Column("message", Text), Column("training", Text), Column("environment", Text), Column("finished", Float),
)  # fmt: skip
_metrics = Table(
    "metrics", _meta,
    Column("key", String(64), primary_key=True), Column("metric", String(100), primary_key=True),
    Column("value", Float(53)),
)  # fmt: skip

Status = Literal["ok", "diverged", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What became of a cell."""

    status: Status
    message: str = ""
    metrics: Mapping[str, float] | None = None
    training: Mapping[str, Any] | None = None
    arrays: Mapping[str, Array] | None = None


class Store:
    """Results on disk."""

    def __init__(self, url: str = DEFAULT_URL, *, create: bool = True) -> None:
        try:
            parsed = make_url(url) if "://" in url else URL.create("sqlite", database=url)
        except (ArgumentError, ValueError):
            raise UserError(f"--store {url}: not a store; expected a path or a URL such as {DEFAULT_URL}") from None
        if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
            raise UserError(f"--store {url}: expected an SQLite file, such as {DEFAULT_URL}")
        self.url = url if "://" in url else f"sqlite:///{url}"
        self.path = Path(str(parsed.database))
        if self.path.is_dir():
            raise UserError(f"--store {url}: this is a folder; name a file in it")
        if not create and not self.path.is_file():
            raise UserError(f"--store {url}: no such store; make one with 'uqbench run SUITE --store {url}'")
        self.arrays = self.path.with_suffix(".arrays")
        with _told(self.url):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._engine = _connected(parsed)
            self._prepare()

    def _prepare(self) -> None:
        with self._engine.begin() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # two runs may open a new store at the same moment
            known = inspect(connection).get_table_names()
            if known and "schema" not in known:
                raise UserError(f"--store {self.url}: this database is not a uqbench store")
            _meta.create_all(connection)
            version = connection.execute(select(_schema.c.version)).scalar()
            if version is None:
                connection.execute(insert(_schema).values(version=SCHEMA))
            elif version > SCHEMA:
                raise UserError(
                    f"--store {self.url}: written by a newer uqbench (schema {version}, this one knows {SCHEMA})"
                )

    def want(self, suite: str, title: str, baseline: str | None, metrics: Iterable[str], cells: Iterable[Cell]) -> None:
        """Note which cells a suite consists of, so that reports find them."""
        with _told(self.url), self._engine.begin() as connection:
            connection.execute(delete(_suites).where(_suites.c.name == suite))
            row = {"name": suite, "title": title, "baseline": baseline, "metrics": json.dumps(list(metrics))}
            connection.execute(insert(_suites), [row])
            places = ("dataset", "split", "method", "seed", "key")
            rows = [{name: getattr(cell, name) for name in places} | {"suite": suite} for cell in cells]
            for dataset, method in {(cell["dataset"], cell["method"]) for cell in rows}:
                before = (_wanted.c.suite == suite, _wanted.c.dataset == dataset, _wanted.c.method == method)
                connection.execute(delete(_wanted).where(*before))
            if rows:
                connection.execute(insert(_wanted), rows)

    def forget(self, suite: str) -> None:
        """Forget which cells a suite consisted of, and what was remarked; the results themselves stay."""
        with _told(self.url), self._engine.begin() as connection:
            for table in (_wanted, _remarks):
                connection.execute(delete(table).where(table.c.suite == suite))

    def remark(self, suite: str, dataset: str, method: str, texts: Sequence[str]) -> None:
        """Keep what readers of the results should know about a dataset (method: '') or a method on it."""
        place = {"suite": suite, "dataset": dataset, "method": method}
        with _told(self.url), self._engine.begin() as connection:
            connection.execute(delete(_remarks).where(*(_remarks.c[name] == value for name, value in place.items())))
            if texts:
                connection.execute(insert(_remarks), [{**place, "number": n, "text": t} for n, t in enumerate(texts)])

    def remarks(self, suite: str) -> list[dict[str, Any]]:
        """Return one row a remark: dataset, method, text."""
        columns = (_remarks.c.dataset, _remarks.c.method, _remarks.c.text)
        order = (_remarks.c.dataset, _remarks.c.method, _remarks.c.number)
        return self._rows(select(*columns).where(_remarks.c.suite == suite).order_by(*order))

    def done(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that have a result. Failed cells have none: they run again."""
        wanted = set(keys)
        with _told(self.url), self._engine.connect() as connection:
            stored = connection.execute(select(_cells.c.key).where(_cells.c.status != "failed")).scalars()
            return wanted.intersection(stored)

    def save(self, cell: Cell, outcome: Outcome, environment: Mapping[str, Any]) -> None:
        """Store the result of one cell: all of it or nothing."""
        if outcome.arrays:
            self._save_arrays(cell.key, outcome.arrays)
        row = {
            "key": cell.key,
            "spec": cell.spec,
            "status": outcome.status,
            "message": outcome.message,
            "training": json.dumps(outcome.training or {}, sort_keys=True),
            "environment": json.dumps(environment, sort_keys=True),
            "finished": time.time(),
        }
        # SQLite has no NaN (it becomes NULL); a metric without a value is left out by the scoring.
        values = [{"key": cell.key, "metric": name, "value": value} for name, value in (outcome.metrics or {}).items()]
        with _told(self.url), self._engine.begin() as connection:
            connection.execute(delete(_cells).where(_cells.c.key == cell.key))
            connection.execute(delete(_metrics).where(_metrics.c.key == cell.key))
            connection.execute(insert(_cells), [row])
            if values:
                connection.execute(insert(_metrics), values)

    def suites(self) -> dict[str, dict[str, Any]]:
        """Return the suites in the store by name: title, baseline, metrics."""
        with _told(self.url), self._engine.connect() as connection:
            rows = connection.execute(select(_suites).order_by(_suites.c.name)).mappings()
            return {
                row["name"]: {**row, "metrics": json.loads(row["metrics"])} for row in rows
            }  # fmt: skip

    def values(self, suite: str) -> list[dict[str, Any]]:
        """Return one row a metric value of a suite."""
        columns = [*(c for c in _wanted.c), _metrics.c.metric, _metrics.c.value]
        query = select(*columns).join(_metrics, _metrics.c.key == _wanted.c.key).where(_wanted.c.suite == suite)
        order = (_wanted.c.dataset, _wanted.c.method, _wanted.c.seed, _metrics.c.metric)
        return self._rows(query.order_by(*order))

    def cells(self, suite: str) -> list[dict[str, Any]]:
        """Return one row a cell of a suite, with its status (None: not run yet), message, training and environment."""
        columns = [
            *(c for c in _wanted.c), _cells.c.spec, _cells.c.status, _cells.c.message, _cells.c.training,
            _cells.c.environment,
        ]  # fmt: skip
        query = select(*columns).join(_cells, _cells.c.key == _wanted.c.key, isouter=True)
        order = (_wanted.c.dataset, _wanted.c.method, _wanted.c.seed)
        return self._rows(query.where(_wanted.c.suite == suite).order_by(*order))

    def load_arrays(self, key: str) -> dict[str, Array] | None:
        """Return the arrays of a cell, or None where there are none."""
        path = self.arrays / f"{key}.npz"
        if not path.is_file():
            return None
        with np.load(path, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}

    def close(self) -> None:
        """Release the database."""
        self._engine.dispose()

    def _rows(self, query: Any) -> list[dict[str, Any]]:
        with _told(self.url), self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _save_arrays(self, key: str, arrays: Mapping[str, Array]) -> None:
        with _told(self.url):
            self.arrays.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.arrays, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    np.savez_compressed(file, allow_pickle=False, **arrays)
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).replace(self.arrays / f"{key}.npz")
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise


def _connected(url: URL) -> Engine:
    engine = create_engine(url)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, record: Any) -> None:
        # WAL: readers never wait for the writer. FULL: what was acknowledged survives a power cut.
        for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


@contextlib.contextmanager
def _told(url: str) -> Iterator[None]:
    """Turn what the disk or the database says into one line for the user."""
    try:
        yield
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
        raise UserError(f"--store {url}: {reason}") from error
    except OSError as error:
        raise UserError(f"--store {url}: {error.strerror or error}") from error
