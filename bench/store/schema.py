"""The tables of a store, their version, and how an older store is brought up to date."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Float,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    inspect,
    select,
    text,
)
from sqlalchemy import insert as plain_insert

from bench.errors import UserError
from bench.store.arrays import ArrayFiles
from bench.store.database import Database

SCHEMA = 2
LONGEST_NAME = 200  # characters; PostgreSQL cannot index names of any length


class Number(TypeDecorator[float]):
    """A float that may be NaN: SQLite has none, so it is NULL in either database. Nor has it -0, which is 0 in both."""

    impl = Float(53)
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        """Return what is stored."""
        return None if value is None or math.isnan(value) else value + 0.0

    def process_result_value(self, value: Any, dialect: Dialect) -> float:
        """Return what was meant."""
        return math.nan if value is None else float(value)


def _name(name: str, **options: Any) -> Column[str]:
    return Column(name, Text, primary_key=True, **options)


def _whole(name: str) -> Column[int]:
    return Column(name, BigInteger, primary_key=True, autoincrement=False)


meta = MetaData()
schema = Table("schema", meta, Column("version", Integer, primary_key=True))
suites = Table(
    "suites",
    meta,
    _name("name"),
    Column("title", Text),
    Column("baseline", Text),
    Column("metrics", Text),
    Column("content", Text),
    Column("hash", Text),
)
wanted = Table(
    "wanted",
    meta,
    _name("suite"),
    _name("dataset"),
    _whole("split"),
    _name("method"),
    _whole("seed"),
    Column("key", Text, index=True),
)
remarks = Table(
    "remarks", meta, _name("suite"), _name("dataset"), _name("method"), _whole("number"), Column("text", Text)
)
environments = Table("environments", meta, _name("hash"), Column("content", Text))
cells = Table(
    "cells",
    meta,
    _name("key"),
    Column("spec", Text),
    Column("status", Text),
    Column("message", Text),
    Column("training", Text),
    Column("seconds", Float(53)),
    Column("cpu_seconds", Float(53)),
    Column("environment", Text),
    Column("code", Text),
    Column("dirty", Boolean),
    Column("suite_hash", Text),
    Column("arrays", Text, index=True),
    Column("started", Float(53)),
    Column("finished", Float(53)),
)
# Without a row number a metric lies beside the others of its cell, and is stored once rather than in an index too.
metrics = Table("metrics", meta, _name("key"), _name("metric"), Column("value", Number), sqlite_with_rowid=False)
searches = Table("searches", meta, _name("key"), Column("content", Text))
drivers = Table("drivers", meta, _name("name"), Column("since", Float(53)), Column("beat", Float(53)))
claims = Table("claims", meta, _name("key"), Column("owner", Text, index=True))


def content_hash(content: str | bytes) -> str:
    """Return the name of a content: equal contents have equal names."""
    content = content.encode() if isinstance(content, str) else content
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def split_code(environment: str) -> tuple[str, bool]:
    """Return the git commit that an environment names, and whether the code was changed since."""
    facts = json.loads(environment)
    described = str(facts.get("code", "")) if isinstance(facts, dict) else ""
    return described.removesuffix("-dirty"), described.endswith("-dirty")


def prepare(database: Database, files: ArrayFiles, *, create: bool) -> None:
    """Make the tables of a new store, bring an older one up to date, refuse what is neither."""
    shown = database.place.shown
    with database.reading() as connection:
        version = _version(connection, shown)
    if version == SCHEMA:
        return
    if version is None and not create:
        raise UserError(f"--store {shown}: no such store; make one with 'uqbench run SUITE --store {shown}'")
    if version is not None and version > SCHEMA:
        raise UserError(f"--store {shown}: written by a newer uqbench (schema {version}, this one knows {SCHEMA})")
    if not database.writable:
        raise UserError(
            f"--store {shown}: written by an older uqbench (schema {version}); "
            f"bring it up to date with 'uqbench gc --store {shown}'"
        )

    def work(connection: Connection) -> list[Path]:
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(7166)"))  # two may open a new store at once
        found = _version(connection, shown)
        if found is None:
            meta.create_all(connection)
            connection.execute(plain_insert(schema).values(version=SCHEMA))
        return _from_1(connection, files) if found == 1 else []

    for path in database.write(work):
        path.unlink(missing_ok=True)  # the same content has another name now, and the rows know it


def _version(connection: Connection, shown: str) -> int | None:
    known = inspect(connection).get_table_names()
    if not known:
        return None
    if not {"schema", "cells", "wanted"} <= set(known):
        raise UserError(f"--store {shown}: this database is not a uqbench store")
    return connection.execute(select(schema.c.version)).scalar()


def _from_1(connection: Connection, files: ArrayFiles) -> list[Path]:
    """Bring a store of schema 1 up to date; return the array files whose old names are not needed afterwards.

    Array files were named by their cell's key, in a folder whose name left the database's suffix out. Here they get
    their new names beside the old ones, so that a crash before the commit leaves the old store whole.
    """
    for name in ("content", "hash"):
        connection.execute(text(f"ALTER TABLE suites ADD COLUMN {name} TEXT"))
    for name in ("cells", "metrics"):
        connection.execute(text(f"ALTER TABLE {name} RENAME TO {name}_1"))
    meta.create_all(connection)
    connection.execute(text("INSERT INTO metrics (key, metric, value) SELECT key, metric, value FROM metrics_1"))
    connection.execute(
        text(
            "INSERT INTO cells (key, spec, status, message, training, suite_hash, finished) "
            "SELECT key, spec, status, message, training, '', finished FROM cells_1"
        )
    )
    for (content,) in connection.execute(text("SELECT DISTINCT environment FROM cells_1")).all():
        code, dirty = split_code(content or "{}")
        row = {"hash": content_hash(content or "{}"), "content": content or "{}"}
        connection.execute(plain_insert(environments).prefix_with("OR IGNORE"), [row])
        connection.execute(
            text(
                "UPDATE cells SET environment = :hash, code = :code, dirty = :dirty "
                "WHERE key IN (SELECT key FROM cells_1 WHERE environment IS :content)"
            ),
            {"hash": row["hash"], "code": code, "dirty": dirty, "content": content},
        )
    old = []
    for (key,) in connection.execute(text("SELECT key FROM cells_1")).all():
        path = files.of_schema_1(key)
        if path is not None:
            connection.execute(cells.update().where(cells.c.key == key).values(arrays=files.adopt(path)))
            old.append(path)
    files.sync()
    for name in ("cells_1", "metrics_1"):
        connection.execute(text(f"DROP TABLE {name}"))
    connection.execute(schema.update().values(version=SCHEMA))
    return old
