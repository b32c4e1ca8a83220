import math
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import cli
from bench.errors import UserError
from bench.plan import Cell
from bench.store import DEFAULT_URL, Outcome, Store

CELL = Cell("k0", "toy", 0, "mc-dropout", 0, "{}")
OTHER = Cell("k1", "toy", 1, "mc-dropout", 1, "{}")
FACTS = {"python": "3"}


def want(store: Store, *cells: Cell) -> None:
    store.want("tiny", "Tiny", "mc-dropout", ["rmse"], cells)


def values(store: Store) -> dict[tuple[str, str], Any]:
    return {(row["key"], row["metric"]): row["value"] for row in store.values("tiny")}


def test_what_is_saved_is_there_after_reopening(store: Store) -> None:
    want(store, CELL, OTHER)
    store.save(CELL, Outcome("ok", metrics={"rmse": 0.1, "nll": math.inf, "x": -math.inf}, training={"e": [3]}), FACTS)
    store.close()
    again = Store(store.url, create=False)
    assert values(again) == {("k0", "rmse"): 0.1, ("k0", "nll"): math.inf, ("k0", "x"): -math.inf}
    rows = again.cells("tiny")
    assert [(r["key"], r["status"], r["seed"], r["split"]) for r in rows] == [("k0", "ok", 0, 0), ("k1", None, 1, 1)]
    assert rows[0]["training"] == '{"e": [3]}'
    assert rows[0]["environment"] == '{"python": "3"}'
    assert again.suites() == {"tiny": {"name": "tiny", "title": "Tiny", "baseline": "mc-dropout", "metrics": ["rmse"]}}


def test_numbers_survive_bit_for_bit(store: Store) -> None:
    numbers = {f"m{i}": float(v) for i, v in enumerate(np.random.default_rng(0).normal(size=50) * 1e-7)}
    want(store, CELL)
    store.save(CELL, Outcome("ok", metrics=numbers), FACTS)
    assert {metric: value for (_, metric), value in values(store).items()} == numbers


def test_done_leaves_failed_cells_to_run_again(store: Store) -> None:
    cells = {status: Cell(status, "toy", 0, "m", 0, "{}") for status in ("ok", "diverged", "failed")}
    for status, cell in cells.items():
        store.save(cell, Outcome(status, "why"), FACTS)  # type: ignore[arg-type]
    assert store.done([*cells, "never"]) == {"ok", "diverged"}
    assert store.done([]) == set()
    store.save(cells["failed"], Outcome("ok", metrics={"rmse": 1.0}), FACTS)
    assert store.done(cells) == set(cells)


def test_saving_again_replaces(store: Store) -> None:
    want(store, CELL)
    store.save(CELL, Outcome("ok", metrics={"rmse": 1.0, "mae": 1.0}), FACTS)
    store.save(CELL, Outcome("ok", metrics={"rmse": 2.0}), FACTS)
    assert values(store) == {("k0", "rmse"): 2.0}
    assert len(store.cells("tiny")) == 1


def test_a_cell_is_saved_whole_or_not_at_all(store: Store) -> None:
    want(store, CELL)
    store.save(CELL, Outcome("ok", metrics={"rmse": 1.0}), FACTS)
    bad: Any = {"mae": 3.0, "rmse": object()}  # the second value cannot be stored
    with pytest.raises(UserError):
        store.save(CELL, Outcome("diverged", metrics=bad), FACTS)
    assert values(store) == {("k0", "rmse"): 1.0}
    assert store.cells("tiny")[0]["status"] == "ok"


def test_arrays_that_cannot_be_written_leave_nothing_behind(store: Store) -> None:
    want(store, CELL)
    strange = np.array([object()])  # would need pickle
    with pytest.raises(ValueError, match="allow_pickle=False"):
        store.save(CELL, Outcome("ok", metrics={"rmse": 1.0}, arrays={"mean": strange}), FACTS)
    assert values(store) == {}
    assert list(store.arrays.iterdir()) == []


def test_arrays_come_back_and_hold_no_code(store: Store) -> None:
    arrays = {"mean": np.arange(3.0), "variance": np.array([np.nan, 0.0, np.inf])}
    store.save(CELL, Outcome("ok", arrays=arrays), FACTS)
    loaded = store.load_arrays("k0")
    assert loaded is not None
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name], array)
    assert store.load_arrays("k1") is None
    np.savez(store.arrays / "evil.npz", mean=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        store.load_arrays("evil")


def test_a_suite_that_wants_other_cells_of_a_method_lets_its_old_ones_go(store: Store) -> None:
    want(store, CELL, OTHER, Cell("k2", "toy", 0, "deterministic", 0, "{}"))
    want(store, Cell("new", "toy", 0, "mc-dropout", 0, "{}"))
    assert [row["key"] for row in store.cells("tiny")] == ["k2", "new"]
    store.want("other", "Other", None, [], [CELL])
    assert [row["key"] for row in store.cells("other")] == ["k0"]  # the same cell may be in two suites


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table precious (a)")
    connection.close()
    with pytest.raises(UserError, match="not a uqbench store"):
        Store(str(path))
    with sqlite3.connect(path) as connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("precious",)]
    connection.close()


def test_a_store_of_a_newer_version(store: Store) -> None:
    store.close()
    with sqlite3.connect(store.path) as connection:
        connection.execute("update schema set version = 99")
    connection.close()
    with pytest.raises(UserError, match=r"newer uqbench \(schema 99"):
        Store(store.url)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("these are my notes, they are not a database " * 100, "utf-8")
    before = path.read_bytes()
    with pytest.raises(UserError, match="file is not a database"):
        Store(str(path))
    assert path.read_bytes() == before


def test_a_corrupt_store(store: Store) -> None:
    want(store, *(Cell(f"k{i}", "toy", i, "m", i, "{}") for i in range(200)))
    store.close()
    content = bytearray(store.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store.path.write_bytes(content)
    with pytest.raises(UserError, match="malformed"):
        Store(store.url).cells("tiny")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://host/db", "expected an SQLite file"),
        ("foo://bar", "expected an SQLite file"),
        ("sqlite://", "expected an SQLite file"),
        ("sqlite:///:memory:", "expected an SQLite file"),
        (":memory:", "expected an SQLite file"),
        ("", "expected an SQLite file"),
        ("://", "not a store"),
        ("sqlite://host:port/x", "not a store"),
        ("/proc/nowhere/store.db", "No such file or directory"),
        ("/dev/null/store.db", "Not a directory|File exists"),
        ("/", "this is a folder"),
        (".", "this is a folder"),
    ],
)
def test_places_that_cannot_be_a_store(url: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason) as caught:
        Store(url)
    assert "\n" not in str(caught.value)
    assert "--store" in str(caught.value)


def test_reading_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such store; make one with"):
        Store(str(tmp_path / "runs" / "gone.db"), create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["plain.db", "with space.db", "what?.db", "a%20b.db", "ünï.db"])
def test_a_path_is_taken_as_it_is(name: str, tmp_path: Path) -> None:
    Store(str(tmp_path / name)).close()
    assert (tmp_path / name).is_file()


def test_many_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    def write(number: int) -> None:
        store = Store(str(tmp_path / "new.db"))
        cell = Cell(f"k{number}", "toy", 0, f"m{number}", 0, "{}")
        store.want("tiny", "Tiny", None, [], [cell])
        store.save(cell, Outcome("ok", metrics={"m": 1.0}), FACTS)
        store.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    assert len(Store(str(tmp_path / "new.db")).values("tiny")) == 24


def test_the_command_line_and_the_store_agree_on_the_default() -> None:
    assert cli.STORE == DEFAULT_URL
