"""The connection to a database, and transactions that work the same on SQLite and PostgreSQL."""

import contextlib
import json
import random
import shutil
import sqlite3
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Engine,
    Float,
    QueuePool,
    Table,
    bindparam,
    cast,
    create_engine,
    extract,
    func,
    literal,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from bench.errors import UserError
from bench.store.address import Address

PATIENCE = 60.0  # seconds in which a transaction that others block is tried again
CHUNK = 500  # keys in one query: well below the limit of either database
TRANSIENT = {"40001", "40P01", "55P03"}  # PostgreSQL: serialisation failure, deadlock, lock not available

Result = TypeVar("Result")
Item = TypeVar("Item")


class Database:
    """A connected database: reads in one snapshot, writes in one transaction."""

    def __init__(self, address: Address, *, writable: bool) -> None:
        self.address = address
        self.writable = writable
        path = address.path
        self._engine = _sqlite_engine(path, writable) if path else _postgresql_engine(address, writable)

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a file rather than a server."""
        return self.address.path is not None

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection whose queries all see the same snapshot."""
        with user_errors(self.address.without_password), self._engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            else:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    def write(self, work: Callable[[Connection], Result], lock: Table | None = None) -> Result:
        """Call `work` in one transaction; on PostgreSQL, `lock` is a table that nobody else may write meanwhile.

        It is called again if another process was in the way, so it must not have effects outside the database.
        """
        if not self.writable:
            raise UserError(f"--store {self.address.without_password}: opened for reading only")
        end = time.monotonic() + PATIENCE
        with user_errors(self.address.without_password):
            while True:
                try:
                    with self._engine.begin() as connection:
                        if self.is_sqlite:
                            # A transaction that reads first and locks later may never get the lock.
                            connection.exec_driver_sql("BEGIN IMMEDIATE")
                        elif lock is not None:
                            connection.execute(text(f"LOCK TABLE {lock.name} IN SHARE ROW EXCLUSIVE MODE"))
                        return work(connection)
                except SQLAlchemyError as error:
                    if not _is_transient(error) or time.monotonic() > end:
                        raise
                time.sleep(random.uniform(0.01, 0.1))

    def rows(self, query: Any) -> list[dict[str, Any]]:
        """Return the rows of a query as dictionaries."""
        with self.reading() as connection:
            found = connection.execute(query)
            names = tuple(found.keys())
            return [dict(zip(names, row, strict=True)) for row in found]

    def size(self) -> int:
        """Return the size of the database in bytes."""
        if self.address.path:
            files = (self.address.path, self.address.path.with_name(self.address.path.name + "-wal"))
            return sum(path.stat().st_size for path in files if path.is_file())
        with self.reading() as connection:
            return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())

    def clock(self) -> ColumnElement[float]:
        """Return the time by the clock that all drivers share: the server's, or this machine's for a file."""
        if self.is_sqlite:
            return literal(time.time(), Float(53))
        return cast(extract("epoch", func.clock_timestamp()), Float(53))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def insert(connection: Connection, table: Table) -> Any:
    """Return the INSERT of the connection's dialect, which has `on_conflict_...` methods."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # takes 0.1 s to import, and a file does not need it

    return postgresql.insert(table)


def insert_rows(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], finish: Callable[[Any], Any] | None = None
) -> Any:
    """Insert rows that have all columns of a table, in one statement; `finish` completes it (conflicts, RETURNING).

    PostgreSQL receives one array per column: it reads them several times faster than a list of values for every row.
    """
    statement = insert(connection, table)
    names = table.columns.keys()
    if connection.dialect.name == "sqlite":
        return connection.execute(finish(statement) if finish else statement, rows)
    arrays = func.unnest(*(bindparam(column.name, type_=ARRAY(column.type)) for column in table.columns))
    statement = statement.from_select(names, select(arrays.table_valued(*names).render_derived()))
    return connection.execute(
        finish(statement) if finish else statement, {name: [row[name] for row in rows] for name in names}
    )


def chunks(items: Sequence[Item], size: int = CHUNK) -> Iterator[Sequence[Item]]:
    """Split a sequence into parts that fit into one query."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


@contextlib.contextmanager
def user_errors(store: str) -> Iterator[None]:
    """Turn errors of the disk or the database into a UserError of one line."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise UserError(f"--store {store}: {_reason(getattr(error, 'orig', None) or error)}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"--store {store}: {DAMAGED} ({' '.join(str(error).split())[:100]})") from error
    except OSError as error:
        raise UserError(f"--store {store}: {error.strerror or error}") from error


DAMAGED = "the database is malformed; restore it from a backup, or save what is left with 'sqlite3 FILE .recover'"
REASONS = {  # by a part of SQLite's message: what it means for the user
    "malformed": DAMAGED,
    "readonly database": "the file or its folder cannot be written (attempt to write a readonly database)",
    "disk is full": "No space left on device (database or disk is full); what was stored before is still there",
    "disk I/O error": "the disk refused to read or write (disk I/O error); what was stored before is still there",
}


def _reason(error: BaseException) -> str:
    message = " ".join(str(error).split())
    known = [reason for part, reason in REASONS.items() if isinstance(error, sqlite3.Error) and part in message]
    return known[0] if known else message[:400]


def _is_transient(error: SQLAlchemyError) -> bool:
    """Return whether another process was in the way, so that a retry may succeed."""
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.OperationalError):
        return "locked" in str(original)
    return getattr(original, "sqlstate", None) in TRANSIENT


def _sqlite_engine(path: Path, writable: bool) -> Engine:
    place = path

    def opened(mode: str) -> sqlite3.Connection:
        uri = f"{place.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            if writable:
                # WAL: readers never wait for the writer. FULL: committed results survive a power failure.
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def connect() -> sqlite3.Connection:
        nonlocal place
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return opened("mode=rwc" if writable else "mode=ro")
            except sqlite3.OperationalError as error:
                if "locked" in str(error) and time.monotonic() < end:
                    time.sleep(0.05)  # the switch to WAL does not wait by itself
                    continue
                refused = "unable to open" in str(error) or "readonly" in str(error)
                if writable or not refused or not path.is_file():
                    raise
                # SQLite cannot write to the folder, so there is no writer either.
                log = path.with_name(path.name + "-wal")
                if not log.is_file() or not log.stat().st_size:
                    return opened("mode=ro&immutable=1")
                if place != path:
                    raise
                place = _copied(path, log)
                weakref.finalize(engine, shutil.rmtree, place.parent, ignore_errors=True)

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool)
    return engine


def _copied(path: Path, log: Path) -> Path:
    """Copy a database with what an interrupted run left in its log to where SQLite can read both."""
    folder = Path(tempfile.mkdtemp(prefix="uqbench-store-"))
    for file in (log, path):  # the log first: what it holds may be in the file, too, but not the other way round
        shutil.copyfile(file, folder / file.name)
    return folder / path.name


def _postgresql_engine(address: Address, writable: bool) -> Engine:
    options = {} if writable else {"postgresql_readonly": True}
    try:
        # pool_pre_ping: after a restart of the server, a new connection instead of an error.
        return create_engine(address.parsed, pool_pre_ping=True, execution_options=options)
    except ArgumentError as error:
        raise UserError(f"--store {address.without_password}: {' '.join(str(error).split())[:200]}") from None
    except ModuleNotFoundError as error:
        problem = f"PostgreSQL needs the package {error.name}"
    except ImportError as error:  # psycopg without libpq
        problem = " ".join(str(error).split())[:200]
    raise UserError(f"--store {address.without_password}: {problem}: pip install 'uqbench[postgres]'")
