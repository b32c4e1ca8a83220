"""Stores of other versions, and databases that are no stores."""

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.store.schema import SCHEMA, content_hash
from bench.store.store import Store

# What schema 1 made, word for word.
SCHEMA_1 = """
CREATE TABLE schema (version INTEGER NOT NULL, PRIMARY KEY (version));
CREATE TABLE suites (name VARCHAR(200) NOT NULL, title TEXT, baseline TEXT, metrics TEXT, PRIMARY KEY (name));
CREATE TABLE wanted (suite VARCHAR(200) NOT NULL, dataset VARCHAR(200) NOT NULL, split INTEGER NOT NULL,
    method VARCHAR(200) NOT NULL, seed INTEGER NOT NULL, "key" VARCHAR(64),
    PRIMARY KEY (suite, dataset, split, method, seed));
CREATE INDEX ix_wanted_key ON wanted ("key");
CREATE TABLE remarks (suite VARCHAR(200) NOT NULL, dataset VARCHAR(200) NOT NULL, method VARCHAR(200) NOT NULL,
    number INTEGER NOT NULL, text TEXT, PRIMARY KEY (suite, dataset, method, number));
CREATE TABLE cells ("key" VARCHAR(64) NOT NULL, spec TEXT, status VARCHAR(20), message TEXT, training TEXT,
    environment TEXT, finished FLOAT, PRIMARY KEY ("key"));
CREATE TABLE metrics ("key" VARCHAR(64) NOT NULL, metric VARCHAR(100) NOT NULL, value FLOAT,
    PRIMARY KEY ("key", metric));
INSERT INTO schema VALUES (1);
INSERT INTO suites VALUES ('tiny', 'Tiny', 'base', '["rmse"]');
INSERT INTO remarks VALUES ('tiny', 'toy', '', 0, 'a remark');
"""
KEYS = [f"{number:032x}" for number in range(4)]
ENVIRONMENT = '{"code": "0123456789ab-dirty", "python": "3.11"}'


def sql(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        found = [connection.execute(statement, values).fetchall() for statement, values in statements]
        connection.commit()
    return found[-1] if found else []


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store as schema 1 left it: three results, one with arrays, and a cell that never ran."""
    path = tmp_path / "old.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(SCHEMA_1)
    rows: list[tuple[str, tuple[Any, ...]]] = []
    for number, key in enumerate(KEYS):
        rows.append(("INSERT INTO wanted VALUES ('tiny', 'toy', ?, 'm', ?, ?)", (number, number, key)))
    for number, (key, status) in enumerate(zip(KEYS, ("ok", "diverged", "failed"), strict=False)):
        environment = ENVIRONMENT if number < 2 else '{"code": "ffff"}'
        values = (key, '{"seed": 0}', status, f"why {number}", '{"epochs": [1]}', environment, 100.0 + number)
        rows.append(("INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", values))
    rows.append(("INSERT INTO metrics VALUES (?, 'rmse', 0.1)", (KEYS[0],)))
    rows.append(("INSERT INTO metrics VALUES (?, 'nll', ?)", (KEYS[0], float("inf"))))
    sql(path, *rows)
    (tmp_path / "old.arrays").mkdir()
    np.savez_compressed(tmp_path / "old.arrays" / f"{KEYS[0]}.npz", mean=np.arange(5.0))
    return path


def check(store: Store) -> None:
    rows = store.cells("tiny")
    assert [row["status"] for row in rows] == ["ok", "diverged", "failed", None]
    assert [row["message"] for row in rows[:3]] == ["why 0", "why 1", "why 2"]
    assert [(row["code"], row["dirty"]) for row in rows[:3]] == [("0123456789ab", True)] * 2 + [("ffff", False)]
    assert [row["environment"] for row in rows[:2]] == [ENVIRONMENT] * 2
    assert [row["finished"] for row in rows[:3]] == [100.0, 101.0, 102.0]
    assert [row["seconds"] for row in rows[:3]] == [None] * 3
    assert {row["metric"]: row["value"] for row in store.values("tiny")} == {"rmse": 0.1, "nll": float("inf")}
    assert store.remarks("tiny") == [{"dataset": "toy", "method": "", "text": "a remark"}]
    assert store.suites()["tiny"]["baseline"] == "base"
    arrays = store.load_arrays(KEYS[0])
    assert arrays is not None
    np.testing.assert_array_equal(arrays["mean"], np.arange(5.0))
    assert store.load_arrays(KEYS[1]) is None


def structure(path: Path) -> set[tuple[str, str]]:
    statement = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    return set(sql(path, (statement, ())))


def test_a_store_of_schema_1_is_brought_up_to_date(old: Path, tmp_path: Path) -> None:
    store = Store(str(old))
    check(store)
    store.close()
    assert sql(old, ("SELECT version FROM schema", ())) == [(SCHEMA,)]
    (file,) = (tmp_path / "old.db.arrays").iterdir()
    assert file.stem == content_hash(file.read_bytes())
    assert list((tmp_path / "old.arrays").iterdir()) == []
    assert len(sql(old, ("SELECT * FROM environments", ()))) == 2  # each one once
    again = Store(str(old), create=False, writable=False)
    check(again)
    again.close()
    Store(str(tmp_path / "new.db")).close()
    assert structure(old) == structure(tmp_path / "new.db")


def test_reading_an_old_store_names_the_command_and_changes_nothing(old: Path) -> None:
    before = sql(old, ("SELECT * FROM cells", ()))
    with pytest.raises(UserError, match=r"older uqbench \(schema 1\); .*'uqbench gc --store"):
        Store(str(old), create=False, writable=False)
    assert sql(old, ("SELECT version FROM schema", ())) == [(1,)]
    assert sql(old, ("SELECT * FROM cells", ())) == before


@pytest.mark.parametrize("step", ["adopt", "sync"])
def test_a_crash_in_the_middle_loses_nothing(
    step: str, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"bench.store.arrays.ArrayFiles.{step}", crash)
        with pytest.raises(KeyboardInterrupt):
            Store(str(old))
    assert sql(old, ("SELECT version FROM schema", ())) == [(1,)]
    assert len(sql(old, ("SELECT environment FROM cells", ()))) == 3  # the old tables are back
    assert (tmp_path / "old.arrays" / f"{KEYS[0]}.npz").is_file()
    store = Store(str(old))
    check(store)
    store.close()


def test_a_crash_after_the_commit_loses_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(path: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", crash)
        with pytest.raises(KeyboardInterrupt):
            Store(str(old))
    store = Store(str(old))
    check(store)
    store.close()


def test_no_key_of_an_old_store_leads_out_of_its_folder(old: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.npz"
    np.savez(secret, mean=np.arange(2.0))
    row = ("../secret", "{}", "ok", "", "{}", "{}", 1.0)
    sql(old, ("INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", row))
    store = Store(str(old))
    assert store.load_arrays("../secret") is None
    assert secret.is_file()
    store.close()


def test_a_store_of_a_newer_version(any_store: Store) -> None:
    from sqlalchemy import text

    any_store.database.write(lambda connection: connection.execute(text("UPDATE schema SET version = 99")))
    for options in ({}, {"create": False, "writable": False}):
        with pytest.raises(UserError, match=r"newer uqbench \(schema 99, this one knows 2\)"):
            Store(any_store.url, **options)


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    sql(path, ("CREATE TABLE precious (a)", ()))
    for options in ({}, {"create": False, "writable": False}):
        with pytest.raises(UserError, match="not a uqbench store"):
            Store(str(path), **options)
    assert structure(path) == {("table", "precious")}


def test_an_empty_database_is_a_store_only_where_one_may_be_made(server: Any) -> None:
    url = server.new_url()
    with pytest.raises(UserError, match="no such store; make one with"):
        Store(url, create=False, writable=False)
    Store(url).close()
    Store(url, create=False, writable=False).close()


def test_what_a_new_store_says_of_itself(store: Store) -> None:
    store.close()
    assert store.path is not None
    assert sql(store.path, ("SELECT version FROM schema", ())) == [(SCHEMA,)]
    assert sql(store.path, ("PRAGMA journal_mode", ())) == [("wal",)]
