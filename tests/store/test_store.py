import math
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from bench.errors import UserError
from bench.spec.cell import Cell, Outcome
from bench.store.schema import content_hash
from bench.store.store import Store, SuiteRecord

CELL = Cell("k0", "toy", 0, "mc-dropout", 0, '{"seed": 0}')
OTHER = Cell("k1", "toy", 1, "mc-dropout", 1, "{}")
SUITE = SuiteRecord("tiny", "Tiny", "mc-dropout", ["rmse"], '{"title": "Tiny"}')
FACTS = {"python": "3", "code": "abc123-dirty"}


def values(store: Store) -> dict[tuple[str, str], Any]:
    return {(row["key"], row["metric"]): row["value"] for row in store.values("tiny")}


def test_what_is_saved_is_there_after_reopening(any_store: Store) -> None:
    numbers = {"rmse": 0.1, "nll": math.inf, "x": -math.inf, "undefined": math.nan}
    timing = {"seconds": 1.5, "cpu_seconds": 2.5, "started": 10.0, "finished": 12.0}
    outcome = Outcome("ok", metrics=numbers, training={"e": [3]}, timing=timing, environment=FACTS)
    any_store.want(SUITE, [CELL, OTHER])
    any_store.save([(CELL, outcome)], "tiny")
    any_store.close()
    again = Store(any_store.url, create=False)
    found = values(again)
    assert math.isnan(found.pop(("k0", "undefined")))
    assert found == {("k0", "rmse"): 0.1, ("k0", "nll"): math.inf, ("k0", "x"): -math.inf}
    rows = again.cells("tiny")
    assert [(r["key"], r["status"], r["seed"], r["split"]) for r in rows] == [("k0", "ok", 0, 0), ("k1", None, 1, 1)]
    hashed = content_hash(SUITE.content)
    expected = {
        "training": '{"e": [3]}',
        "environment": '{"code": "abc123-dirty", "python": "3"}',
        "code": "abc123",
        "dirty": True,
        "spec": CELL.spec,
        "suite_hash": hashed,
        "arrays": None,
        **timing,
    }
    assert {name: rows[0][name] for name in expected} == expected
    about = {"name": "tiny", "title": "Tiny", "baseline": "mc-dropout", "metrics": ["rmse"]}
    assert again.suites() == {"tiny": {**about, "content": SUITE.content, "hash": hashed}}
    again.close()


def test_numbers_survive_bit_for_bit(any_store: Store) -> None:
    source = np.random.default_rng(0)
    drawn = np.concatenate([source.normal(size=30) * 1e-7, [5e-324, 1.7976931348623157e308, 0.1 + 0.2]])
    numbers = {f"m{i:02}": float(v) for i, v in enumerate(drawn)}
    any_store.want(SUITE, [CELL])
    any_store.save([(CELL, Outcome("ok", metrics=numbers))])
    found = {metric: value.hex() for (_, metric), value in values(any_store).items()}
    assert found == {name: value.hex() for name, value in numbers.items()}
    any_store.want(SUITE, [OTHER])
    any_store.save([(OTHER, Outcome("ok", metrics={"zero": -0.0}))])
    assert math.copysign(1, values(any_store)["k1", "zero"]) == 1  # the one number that SQLite does not keep


def test_text_that_a_database_cannot_hold_is_spelled_out(any_store: Store) -> None:
    any_store.want(SUITE, [CELL])
    any_store.save([(CELL, Outcome("failed", "a\x00b \udcff ünï 模型"))])
    assert any_store.cells("tiny")[0]["message"] == "a\\x00b \\udcff ünï 模型"


def test_done_leaves_failed_cells_to_run_again(any_store: Store) -> None:
    cells = {status: Cell(status, "toy", 0, "m", 0, "{}") for status in ("ok", "diverged", "failed")}
    any_store.save((cell, Outcome(status, "why")) for status, cell in cells.items())  # type: ignore[arg-type]
    assert any_store.done([*cells, "never"]) == {"ok", "diverged"}
    assert any_store.done([]) == set()
    any_store.save([(cells["failed"], Outcome("ok", metrics={"rmse": 1.0}))])
    assert any_store.done(iter(cells)) == set(cells)


def test_done_of_more_keys_than_one_query_takes(store: Store) -> None:
    cells = [Cell(f"k{i}", "toy", i, "m", i, "{}") for i in range(600)]
    store.save((cell, Outcome("ok")) for cell in cells)
    assert len(store.done([cell.key for cell in cells] + [f"other{i}" for i in range(3000)])) == 600


def test_the_first_result_stays_and_a_failure_gives_way(any_store: Store) -> None:
    any_store.want(SUITE, [CELL, OTHER])
    any_store.save([(CELL, Outcome("failed", "first", metrics={"left": 1.0}))])
    any_store.save([(CELL, Outcome("failed", "second"))])
    assert (any_store.cells("tiny")[0]["message"], values(any_store)) == ("second", {})
    any_store.save([(CELL, Outcome("diverged", "third", metrics={"rmse": 1.0, "mae": 1.0}))])
    for late in (Outcome("ok", metrics={"rmse": 2.0, "new": 1.0}), Outcome("failed", "late")):
        any_store.save([(CELL, late), (OTHER, Outcome("ok", metrics={"rmse": 5.0}))])
    row = any_store.cells("tiny")[0]
    assert (row["status"], row["message"]) == ("diverged", "third")
    assert values(any_store) == {("k0", "rmse"): 1.0, ("k0", "mae"): 1.0, ("k1", "rmse"): 5.0}


def test_one_key_twice_in_a_group(any_store: Store) -> None:
    any_store.want(SUITE, [CELL])
    tries = (Outcome("failed", "no"), Outcome("ok", metrics={"rmse": 1.0}), Outcome("ok", metrics={"rmse": 2.0}))
    any_store.save((CELL, outcome) for outcome in tries)
    assert values(any_store) == {("k0", "rmse"): 1.0}


def test_a_group_is_saved_whole_or_not_at_all(any_store: Store) -> None:
    any_store.want(SUITE, [CELL, OTHER])
    bad: Any = "\udcff"  # the name of the second cell's metric is no text that either database takes
    with pytest.raises((UserError, UnicodeEncodeError)):
        any_store.save(
            [(CELL, Outcome("ok", metrics={"rmse": 1.0})), (OTHER, Outcome("ok", metrics={"rmse": 1.0, bad: 1.0}))]
        )
    assert values(any_store) == {}
    assert [row["status"] for row in any_store.cells("tiny")] == [None, None]
    assert any_store.done(["k0", "k1"]) == set()


def test_arrays_that_cannot_be_written_leave_nothing_behind(store: Store) -> None:
    store.want(SUITE, [CELL])
    strange = np.array([object()])  # would need pickle
    with pytest.raises(ValueError, match="allow_pickle=False"):
        store.save([(CELL, Outcome("ok", metrics={"rmse": 1.0}, arrays={"mean": strange}))])
    assert values(store) == {}
    assert not store.arrays.folder.exists()


def test_arrays_come_back_and_equal_ones_are_stored_once(any_store: Store) -> None:
    arrays = {"mean": np.arange(3.0), "variance": np.array([np.nan, 0.0, np.inf])}
    any_store.save([(CELL, Outcome("ok", arrays=arrays)), (OTHER, Outcome("ok", arrays=dict(arrays)))])
    for key in ("k0", "k1"):
        loaded = any_store.load_arrays(key)
        assert loaded is not None
        for name, array in arrays.items():
            np.testing.assert_array_equal(loaded[name], array)
    assert any_store.load_arrays("k2") is None
    (file,) = any_store.arrays.folder.iterdir()
    assert file.name == f"{content_hash(file.read_bytes())}.npz"


def test_a_suite_that_wants_other_cells_of_a_method_lets_its_old_ones_go(any_store: Store) -> None:
    any_store.want(SUITE, [CELL, OTHER, Cell("k2", "toy", 0, "deterministic", 0, "{}")])
    any_store.want(SUITE, [Cell("new", "toy", 0, "mc-dropout", 0, "{}")])
    assert [row["key"] for row in any_store.cells("tiny")] == ["k2", "new"]
    any_store.want(SuiteRecord("other", "Other", None, [], "{}"), [CELL])
    assert [row["key"] for row in any_store.cells("other")] == ["k0"]  # the same cell may be in two suites


def test_forgetting_and_remarks(any_store: Store) -> None:
    any_store.want(SUITE, [CELL])
    any_store.save([(CELL, Outcome("ok"))])
    any_store.remark("tiny", "toy", "", ["old"])
    any_store.remark("tiny", "toy", "", ["first", "second"])
    told = [(row["dataset"], row["method"], row["text"]) for row in any_store.remarks("tiny")]
    assert told == [("toy", "", "first"), ("toy", "", "second")]
    any_store.forget("tiny")
    assert any_store.remarks("tiny") == any_store.cells("tiny") == []
    assert any_store.done(["k0"]) == {"k0"}


def test_failed_cells_can_be_had_back(any_store: Store) -> None:
    other = SuiteRecord("other", "Other", None, [], "{}")
    any_store.want(SUITE, [CELL, OTHER])
    any_store.want(other, [OTHER])
    any_store.save([(CELL, Outcome("ok")), (OTHER, Outcome("failed", "x"))])
    assert any_store.failed() == any_store.failed("other") == any_store.failed("tiny") == [OTHER]
    assert any_store.failed("none") == []


def test_a_search_is_kept_once(any_store: Store) -> None:
    assert any_store.searches(["k", "l"]) == {}
    any_store.save_search("k", '{"best": 1}')
    any_store.save_search("k", '{"best": 2}')
    any_store.save_search("l", '{"best": 3}')
    # More keys than one query takes.
    assert any_store.searches(["k", "l", *map(str, range(5000))]) == {"k": '{"best": 1}', "l": '{"best": 3}'}


def test_names_too_long_for_an_index_are_refused_by_both(any_store: Store) -> None:
    with pytest.raises(UserError, match="at most 200"):
        any_store.want(SUITE, [Cell("k", "d" * 201, 0, "m", 0, "{}")])
    any_store.want(SUITE, [Cell("k", "d" * 200, 0, "m", 2**62, "{}")])
    assert any_store.cells("tiny")[0]["seed"] == 2**62


def test_a_store_for_reading_writes_nothing(any_store: Store) -> None:
    any_store.want(SUITE, [CELL])
    reader = Store(any_store.url, create=False, writable=False)
    assert [row["key"] for row in reader.cells("tiny")] == ["k0"]
    with pytest.raises(UserError, match="reading only"):
        reader.save([(CELL, Outcome("ok"))])
    with pytest.raises(UserError, match="reading only"):
        reader.forget("tiny")
    with reader.database.reading() as connection, pytest.raises(DBAPIError, match=r"read.?only"):
        connection.execute(text("DELETE FROM wanted"))  # not even past our own check
    reader.close()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("foo://bar", "expected an SQLite file"),
        ("mysql://host/db", "expected an SQLite file"),
        ("sqlite://", "expected an SQLite file"),
        ("sqlite:///:memory:", "expected an SQLite file"),
        (":memory:", "expected an SQLite file"),
        ("", "expected an SQLite file"),
        ("postgresql://host", "name a database"),
        ("postgresql://host/db?arrays=a&arrays=b", "arrays=DIR once"),
        ("://", "not a store"),
        ("sqlite://host:port/x", "not a store"),
        ("sqlite://host/x.db", "three slashes"),
        ("sqlite:///runs/what?.db", "given as a path"),
        ("sqlite:///runs/a%20b.db", "given as a path"),
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


def test_postgresql_without_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UserError, match=r"pip install 'uqbench\[postgres\]'"):
        Store("postgresql://user@host/db")


def test_reading_makes_no_store(tmp_path: Path) -> None:
    for writable in (True, False):
        with pytest.raises(UserError, match="no such store; create one with"):
            Store(str(tmp_path / "runs" / "gone.db"), create=False, writable=writable)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["plain.db", "with space.db", "what?.db", "a%20b.db", "ünï.db", "plain"])
def test_a_path_is_taken_as_it_is(name: str, tmp_path: Path) -> None:
    for options in ({}, {"create": False, "writable": False}):
        with Store(str(tmp_path / name), **options) as store:
            Store(store.url, create=False).close()
    assert (tmp_path / name).is_file()
    assert {path.name.removesuffix("-wal").removesuffix("-shm") for path in tmp_path.iterdir()} == {name}


def test_many_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    def write(number: int) -> None:
        store = Store(str(tmp_path / "new.db"))
        cell = Cell(f"k{number}", "toy", 0, f"m{number}", 0, "{}")
        store.want(SUITE, [cell])
        store.save([(cell, Outcome("ok", metrics={"m": 1.0}))])
        store.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    assert len(Store(str(tmp_path / "new.db")).values("tiny")) == 24
