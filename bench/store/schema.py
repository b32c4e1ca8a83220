"""The version of a store's tables, and the migration of older stores."""

import hashlib
import json
from collections.abc import Callable, Mapping

from sqlalchemy import Connection, insert, inspect, select, text

from bench.errors import UserError
from bench.store.database import Database
from bench.store.tables import meta, plugins, predictions, rescored, schema, settings

SCHEMA = 4


class NoStoreError(UserError):
    """There is no store at an address yet."""

    def __init__(self, address: str) -> None:
        super().__init__(f"--store {address}: no such store; create one with 'uqbench run SUITE --store {address}'")


def _add_plugins(connection: Connection) -> None:
    """From 2 to 3: the sources of plug-in files."""
    plugins.create(connection, checkfirst=True)


def _add_bank(connection: Connection) -> None:
    """From 3 to 4: stored predictions, the values computed from them, and the settings of a store."""
    for table in (predictions, rescored, settings):
        table.create(connection, checkfirst=True)


# By the schema of the store: the function that changes its tables to the next schema. Each runs in one transaction with
# the others. Stores older than the first one cannot be read.
MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {2: _add_plugins, 3: _add_bank}


def content_hash(content: str | bytes) -> str:
    """Return the hash of a text or file content."""
    content = content.encode() if isinstance(content, str) else content
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def split_code(environment: str) -> tuple[str, bool]:
    """Return the git commit that an environment names, and whether the code was changed since."""
    facts = json.loads(environment)
    described = str(facts.get("code", "")) if isinstance(facts, dict) else ""
    return described.removesuffix("-dirty"), described.endswith("-dirty")


def prepare(database: Database, *, create: bool) -> None:
    """Create the tables of a new store or migrate an older one; raise UserError for any other database."""
    where = f"--store {database.address.without_password}"
    with database.reading() as connection:
        version = _version(connection, where)
    if version == SCHEMA:
        return
    if version is None and not create:
        raise NoStoreError(database.address.without_password)
    if version is not None and version > SCHEMA:
        raise UserError(f"{where}: written by a newer uqbench (schema {version}, this one knows {SCHEMA})")
    if version is not None and any(step not in MIGRATIONS for step in range(version, SCHEMA)):
        old = f"written by an older uqbench (schema {version}), which this one cannot read"
        raise UserError(f"{where}: {old}; run the suites again into a new store")
    if not database.writable:
        command = f"uqbench gc --store {database.address.without_password}"
        raise UserError(f"{where}: written by an older uqbench (schema {version}); migrate it with '{command}'")

    def work(connection: Connection) -> None:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(7166)"))  # two may open a new store at once
        found = _version(connection, where)  # another process may have been faster
        if found is None:
            meta.create_all(connection)
            connection.execute(insert(schema).values(version=SCHEMA))
            return
        for step in range(found, SCHEMA):
            MIGRATIONS[step](connection)
        connection.execute(schema.update().values(version=SCHEMA))

    database.write(work)


def _version(connection: Connection, where: str) -> int | None:
    known = inspect(connection).get_table_names()
    if not known:
        return None
    if not {"schema", "cells", "wanted"} <= set(known):
        raise UserError(f"{where}: this database is not a uqbench store")
    return connection.execute(select(schema.c.version)).scalar()
