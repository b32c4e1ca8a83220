"""Stores of other versions, and databases that are no stores."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from bench.errors import UserError
from bench.plugins.files import PluginSource
from bench.store.schema import SCHEMA
from bench.store.status import status
from bench.store.store import Store
from bench.store.tables import schema
from tests.fixtures.banks import cell, filled, outcome


def sql(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        found = [connection.execute(statement, values).fetchall() for statement, values in statements]
        connection.commit()
    return found[-1] if found else []


def structure(path: Path) -> set[tuple[str, str]]:
    statement = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    return set(sql(path, (statement, ())))


def set_version(store: Store, version: int) -> None:
    store.database.write(lambda connection: connection.execute(text(f"UPDATE schema SET version = {version}")))


READ_ONLY = {"create": False, "writable": False}


@pytest.mark.parametrize("options", [{}, READ_ONLY])
def test_a_store_that_is_too_old_is_refused_and_left_alone(any_store: Store, options: dict[str, bool]) -> None:
    set_version(any_store, 1)
    with pytest.raises(UserError, match=r"older uqbench \(schema 1\), which this one cannot read; run"):
        Store(any_store.url, **options)
    assert any_store.database.rows(select(schema.c.version)) == [{"version": 1}]


def add_column(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE searches ADD COLUMN seconds FLOAT"))


@pytest.fixture
def next_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next version of uqbench, whose schema has one more column."""
    monkeypatch.setattr("bench.store.schema.SCHEMA", SCHEMA + 1)
    monkeypatch.setattr("bench.store.schema.MIGRATIONS", {SCHEMA: add_column})


@pytest.mark.usefixtures("next_schema")
def test_an_older_store_is_migrated_when_it_is_opened_for_writing(any_store: Store) -> None:
    set_version(any_store, SCHEMA)
    any_store.save_search("k", "{}")
    Store(any_store.url).close()
    assert any_store.database.rows(select(schema.c.version)) == [{"version": SCHEMA + 1}]
    assert any_store.database.rows(text("SELECT * FROM searches")) == [{"key": "k", "content": "{}", "seconds": None}]
    Store(any_store.url, **READ_ONLY).close()


@pytest.mark.usefixtures("next_schema")
def test_reading_an_older_store_names_the_command_and_changes_nothing(any_store: Store) -> None:
    set_version(any_store, SCHEMA)
    any_store.save_search("k", "{}")
    with pytest.raises(UserError, match=rf"older uqbench \(schema {SCHEMA}\); migrate it with 'uqbench gc --store"):
        Store(any_store.url, **READ_ONLY)
    assert any_store.database.rows(select(schema.c.version)) == [{"version": SCHEMA}]
    assert any_store.database.rows(text("SELECT * FROM searches")) == [{"key": "k", "content": "{}"}]


@pytest.mark.usefixtures("next_schema")
def test_a_crash_in_a_migration_loses_nothing(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(connection: Connection) -> None:
        add_column(connection)
        raise KeyboardInterrupt

    set_version(any_store, SCHEMA)
    any_store.save_search("k", "{}")
    with monkeypatch.context() as patch:
        patch.setattr("bench.store.schema.MIGRATIONS", {SCHEMA: crash})
        with pytest.raises(KeyboardInterrupt):
            Store(any_store.url)
    assert any_store.database.rows(select(schema.c.version)) == [{"version": SCHEMA}]
    assert any_store.database.rows(text("SELECT * FROM searches")) == [{"key": "k", "content": "{}"}]
    Store(any_store.url).close()
    assert any_store.database.rows(select(schema.c.version)) == [{"version": SCHEMA + 1}]


def test_a_store_of_schema_2_gets_the_table_of_plugins(any_store: Store) -> None:
    """Everything else stays as it was; the store then takes the sources of plug-ins."""
    any_store.save_search("k", "{}")
    any_store.database.write(lambda connection: connection.execute(text("DROP TABLE plugins")))
    set_version(any_store, 2)
    with pytest.raises(UserError, match=r"schema 2\); migrate it with 'uqbench gc --store"):
        Store(any_store.url, **READ_ONLY)
    migrated = Store(any_store.url)
    source = PluginSource("mine.py", b"# \xff\x00 as it is\n")
    migrated.save_plugins([source])
    migrated.close()
    again = Store(any_store.url, **READ_ONLY)
    assert again.plugins() == {source.hash: source}
    assert again.searches(["k"]) == {"k": "{}"}
    assert again.database.rows(select(schema.c.version)) == [{"version": SCHEMA}]
    again.close()


def test_a_store_of_schema_3_gets_the_tables_of_predictions(any_store: Store) -> None:
    """Results stay as they were; the store then takes predictions."""
    (kept,) = filled(any_store, 1)
    before = any_store.values("tiny")

    def drop(connection: Connection) -> None:
        for table in ("predictions", "rescored", "settings"):
            connection.execute(text(f"DROP TABLE {table}"))

    any_store.database.write(drop)
    set_version(any_store, 3)
    with pytest.raises(UserError, match=r"schema 3\); migrate it with 'uqbench gc --store"):
        Store(any_store.url, **READ_ONLY)
    migrated = Store(any_store.url)
    assert migrated.values("tiny") == before
    assert status(migrated).predictions.cells == 0
    migrated.save([(cell(5), outcome(kept))])
    assert status(migrated).predictions.cells == 1
    migrated.close()


def test_a_store_of_a_newer_version(any_store: Store) -> None:
    set_version(any_store, 99)
    for options in ({}, READ_ONLY):
        with pytest.raises(UserError, match=r"newer uqbench \(schema 99, this one knows 4\)"):
            Store(any_store.url, **options)


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    sql(path, ("CREATE TABLE precious (a)", ()))
    for options in ({}, READ_ONLY):
        with pytest.raises(UserError, match="not a uqbench store"):
            Store(str(path), **options)
    assert structure(path) == {("table", "precious")}


def test_an_empty_database_is_a_store_only_where_one_may_be_made(server: Any) -> None:
    url = server.new_url()
    with pytest.raises(UserError, match="no such store; create one with"):
        Store(url, create=False, writable=False)
    Store(url).close()
    Store(url, create=False, writable=False).close()


def test_what_a_new_store_says_of_itself(store: Store) -> None:
    store.close()
    assert store.path is not None
    assert sql(store.path, ("SELECT version FROM schema", ())) == [(SCHEMA,)]
    assert sql(store.path, ("PRAGMA journal_mode", ())) == [("wal",)]
