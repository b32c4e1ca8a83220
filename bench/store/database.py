"""Where a store lives: its address, its connection, and transactions that behave alike on SQLite and PostgreSQL."""

import contextlib
import json
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, QueuePool, Table, create_engine, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from bench.errors import UserError

DEFAULT_URL = "sqlite:///runs/uqbench.db"
EXPECTED = f"expected an SQLite file, such as {DEFAULT_URL}, or postgresql://user@host/database"
PATIENCE = 60.0  # seconds that a transaction is tried again while others hold what it needs
CHUNK = 500  # keys in one query: well below the number of variables that either database takes
PASSING = {"40001", "40P01", "55P03"}  # PostgreSQL: serialisation failure, deadlock, lock not available

Made = TypeVar("Made")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Address:
    """A store's place, read from what the user wrote."""

    url: str
    parsed: URL
    arrays: Path  # the folder of array files
    path: Path | None = None  # of the SQLite file

    @property
    def shown(self) -> str:
        """The address without its password."""
        return hidden(self.url)


def hidden(url: str) -> str:
    """Return a URL without the password in it."""
    return re.sub(r"(://[^/:@]*:)[^@/]*@", r"\1***@", url)


def address(url: str) -> Address:
    """Return where a path or URL leads."""
    shown = hidden(url)
    try:
        parsed = make_url(url) if "://" in url else URL.create("sqlite", database=url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise UserError(f"--store {shown}: not a store; {EXPECTED}") from None
    if backend in ("postgresql", "postgres"):
        return _postgresql(url, parsed)
    if backend != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise UserError(f"--store {shown}: {EXPECTED}")
    path = Path(str(parsed.database))
    if path.is_dir():
        raise UserError(f"--store {shown}: this is a folder; name a file in it")
    # The whole name, with its suffix: two stores side by side never share a folder that one of them cleans up.
    arrays = path.with_name(path.name + ".arrays")
    return Address(url if "://" in url else f"sqlite:///{url}", parsed, arrays, path)


def _postgresql(url: str, parsed: URL) -> Address:
    if not parsed.database:
        raise UserError(f"--store {hidden(url)}: name a database, such as postgresql://user@host/database")
    folder = parsed.query.get("arrays", f"runs/{Path(parsed.database).name}.arrays")
    if not isinstance(folder, str):
        raise UserError(f"--store {hidden(url)}: give arrays=DIR once")
    query = {"connect_timeout": "10", **{name: value for name, value in parsed.query.items() if name != "arrays"}}
    return Address(url, parsed.set(drivername="postgresql+psycopg", query=query), Path(folder))


class Database:
    """A connected database: reading in one snapshot, writing in one transaction."""

    def __init__(self, place: Address, *, writable: bool) -> None:
        self.place = place
        self.writable = writable
        self._engine = _sqlite_engine(place.path, writable) if place.path else _postgresql_engine(place, writable)

    @property
    def is_sqlite(self) -> bool:
        """Is it a file, rather than a server?"""
        return self.place.path is not None

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection whose queries all see the same moment."""
        with told(self.place.shown), self._engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            else:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    def write(self, work: Callable[[Connection], Made], lock: Table | None = None) -> Made:
        """Do some work in one transaction; `lock` is the table that PostgreSQL must let nobody else write meanwhile.

        The work is done again where another process was in the way, so it has no effects but those on the database.
        """
        if not self.writable:
            raise UserError(f"--store {self.place.shown}: opened for reading only")
        end = time.monotonic() + PATIENCE
        with told(self.place.shown):
            while True:
                try:
                    with self._engine.begin() as connection:
                        if self.is_sqlite:
                            # A transaction that reads first and asks for the lock later can be refused it for good.
                            connection.exec_driver_sql("BEGIN IMMEDIATE")
                        elif lock is not None:
                            connection.execute(text(f"LOCK TABLE {lock.name} IN SHARE ROW EXCLUSIVE MODE"))
                        return work(connection)
                except SQLAlchemyError as error:
                    if not _passes(error) or time.monotonic() > end:
                        raise
                time.sleep(random.uniform(0.01, 0.1))

    def rows(self, query: Any) -> list[dict[str, Any]]:
        """Return what a query finds."""
        with self.reading() as connection:
            found = connection.execute(query)
            names = tuple(found.keys())
            return [dict(zip(names, row, strict=True)) for row in found]

    def size(self) -> int:
        """Return the bytes that the database takes."""
        if self.place.path:
            beside = (self.place.path, self.place.path.with_name(self.place.path.name + "-wal"))
            return sum(path.stat().st_size for path in beside if path.is_file())
        with self.reading() as connection:
            return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())

    def now(self, connection: Connection) -> float:
        """Return the time that all who use this store agree on: a server's clock, or this machine's for a file."""
        if self.is_sqlite:
            return time.time()
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

    def close(self) -> None:
        """Let the connections go."""
        self._engine.dispose()


def insert(connection: Connection, table: Table) -> Any:
    """Return an INSERT that can be told what to do on conflict; the two dialects spell it alike."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # a tenth of a second that a file can do without

    return postgresql.insert(table)


def chunks(items: Sequence[Item], size: int = CHUNK) -> Iterator[Sequence[Item]]:
    """Cut a sequence into parts that one query can take."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


@contextlib.contextmanager
def told(shown: str) -> Iterator[None]:
    """Turn what the disk or the database says into one line for the user."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise UserError(f"--store {shown}: {_reason(getattr(error, 'orig', None) or error)}") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"--store {shown}: {DAMAGED} ({' '.join(str(error).split())[:100]})") from error
    except OSError as error:
        raise UserError(f"--store {shown}: {error.strerror or error}") from error


DAMAGED = "the database is malformed; bring it back from a copy, or save what is left with 'sqlite3 FILE .recover'"
REASONS = {  # what SQLite says, and what it means for the user
    "malformed": DAMAGED,
    "readonly database": "the file or its folder cannot be written (attempt to write a readonly database)",
    "disk is full": "No space left on device (database or disk is full); what was stored before is still there",
    "disk I/O error": "the disk refused to read or write (disk I/O error); what was stored before is still there",
}


def _reason(error: BaseException) -> str:
    said = " ".join(str(error).split())
    meant = [reason for sign, reason in REASONS.items() if isinstance(error, sqlite3.Error) and sign in said]
    return meant[0] if meant else said[:400]


def _passes(error: SQLAlchemyError) -> bool:
    """Was another process in the way, so that it is worth trying again?"""
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.OperationalError):
        return "locked" in str(original)
    return getattr(original, "sqlstate", None) in PASSING


def _sqlite_engine(path: Path, writable: bool) -> Engine:
    address = path.absolute().as_uri()

    def opened(mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{address}?{mode}", uri=True, timeout=30, isolation_level=None, check_same_thread=False
        )
        try:
            if writable:
                # WAL: readers never wait for the writer. FULL: what was acknowledged survives a power cut.
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def connect() -> sqlite3.Connection:
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
                return _unchanging(path, opened, error)

    return create_engine("sqlite://", creator=connect, poolclass=QueuePool)


def _unchanging(path: Path, opened: Callable[[str], sqlite3.Connection], error: sqlite3.Error) -> sqlite3.Connection:
    """Open a file in a folder where SQLite cannot make the files it shares with a writer, so there is no writer."""
    pending = path.with_name(path.name + "-wal")
    if pending.is_file() and pending.stat().st_size:
        raise sqlite3.OperationalError(
            f"a run was cut short and left {pending.name}; copy both files into a folder that can be written"
        ) from error
    return opened("mode=ro&immutable=1")


def _postgresql_engine(place: Address, writable: bool) -> Engine:
    try:
        # A server that was restarted is met with a new connection, not with an error.
        return create_engine(
            place.parsed, pool_pre_ping=True, execution_options={} if writable else {"postgresql_readonly": True}
        )
    except ModuleNotFoundError as error:
        raise UserError(
            f"--store {place.shown}: PostgreSQL needs the package {error.name}: pip install 'uqbench[postgres]'"
        ) from None
    except ImportError as error:  # psycopg without libpq
        raise UserError(
            f"--store {place.shown}: {' '.join(str(error).split())[:200]}: pip install 'uqbench[postgres]'"
        ) from None
