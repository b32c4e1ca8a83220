"""The address of a store: an SQLite file by its path or URL, or a PostgreSQL database by its URL."""

from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from bench.errors import UserError
from bench.store import DEFAULT_URL
from bench.store.passwords import is_connection, show_address

EXPECTED = f"expected an SQLite file, such as {DEFAULT_URL}, or postgresql://user@host/database"


@dataclass(frozen=True)
class Address:
    """The address of a store, parsed from a path or URL."""

    url: str = field(repr=False)  # as the user wrote it, with its password
    parsed: URL
    arrays: Path  # the folder of array files
    path: Path | None = None  # of the SQLite file

    @property
    def without_password(self) -> str:
        """The address without its password, for messages."""
        return show_address(self.url)


def parse_address(url: str) -> Address:
    """Parse a path or URL; raise UserError if it cannot be a store."""
    where = f"--store {show_address(url)}"
    if "\0" in url or "%00" in url:
        raise UserError(f"{where}: not a store; {EXPECTED}")
    if "://" not in url:
        if is_connection(url):
            raise UserError(f"{where}: not a file; a server is named as postgresql://user@host/database")
        return _sqlite(url, url, where)
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise UserError(f"{where}: not a store; {EXPECTED}") from None
    if backend in ("postgresql", "postgres"):
        return _postgresql(url, parsed, where)
    if backend != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise UserError(f"{where}: {EXPECTED}")
    if parsed.host or parsed.username or parsed.password:
        raise UserError(f"{where}: three slashes stand before the path of a file: {DEFAULT_URL}")
    if "?" in url or "%" in url:
        # In a URL they would be a query and an encoded character, in a name they are themselves.
        raise UserError(f"{where}: a name with ? or % is given as a path, without sqlite:///")
    return _sqlite(url, str(parsed.database), where)


def _sqlite(url: str, name: str, where: str) -> Address:
    if name in ("", ":memory:"):
        raise UserError(f"{where}: {EXPECTED}")
    path = Path(name)
    if path.is_dir():
        raise UserError(f"{where}: this is a folder; name a file in it")
    # The whole name, with its suffix: two stores in one folder never share their arrays, which gc removes.
    return Address(url, URL.create("sqlite", database=name), path.with_name(path.name + ".arrays"), path)


def _postgresql(url: str, parsed: URL, where: str) -> Address:
    rest = url.partition("://")[2]
    if rest.count("@") > 1 or "@" in rest.partition("?")[2]:
        raise UserError(f"{where}: an @ that is part of a password is written %40, a ? there %3F")
    if not parsed.database:
        raise UserError(f"{where}: name a database, such as postgresql://user@host/database")
    folder = parsed.query.get("arrays", f"runs/{Path(parsed.database).name}.arrays")
    if not isinstance(folder, str):
        raise UserError(f"{where}: give arrays=DIR once")
    query = {"connect_timeout": "10", **{name: value for name, value in parsed.query.items() if name != "arrays"}}
    return Address(url, parsed.set(drivername="postgresql+psycopg", query=query), Path(folder))
