import math
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from bench.errors import UserError
from bench.spec.cell import Cell, Outcome
from bench.store.merge import Conflict, merge
from bench.store.store import Store, SuiteRecord

EVIL = ("../../out", "/etc/passwd", "<script>alert(1)</script>", "'; DROP TABLE cells; --", "=1+1", "名前")


def cell(number: int, dataset: str = "toy", method: str = "m") -> Cell:
    return Cell(f"{number:032x}", dataset, number, method, number, f'{{"seed": {number}}}')


def suite(name: str = "tiny", title: str = "Tiny") -> SuiteRecord:
    return SuiteRecord(name, title, None, ["rmse"], f'{{"title": "{title}"}}')


def everything(store: Store) -> dict[str, Any]:
    """What a store holds, in a form that can be compared."""
    names = ("suites", "wanted", "remarks", "environments", "cells", "metrics", "searches", "claims", "drivers")
    with store.database.reading() as connection:
        rows = {name: sorted(map(repr, connection.execute(text(f"SELECT * FROM {name}")))) for name in names}
    folder = store.arrays.folder
    return rows | {"files": {p.name: p.read_bytes() for p in folder.iterdir()} if folder.is_dir() else {}}


def filled(store: Store, numbers: range, value: float = 1.0) -> Store:
    cells = [cell(number) for number in numbers]
    store.want(suite(), cells)
    store.save(
        (
            (
                c,
                Outcome(
                    "ok",
                    metrics={"rmse": value, "nll": math.inf, "none": math.nan},
                    arrays={"mean": np.arange(float(c.seed))},
                    environment={"code": "abc-dirty", "n": c.seed % 2},
                    timing={"seconds": 2.0, "finished": 5.0},
                ),
            )
            for c in cells
        ),
        "tiny",
    )
    return store


def test_everything_comes_over_and_a_second_time_nothing(new_store: Any, store: Store) -> None:
    there, here = filled(store, range(6)), filled(new_store(), range(3))
    there.remark("tiny", "toy", "", ["a", "b"])
    there.want(suite("other"), [cell(5)])
    there.save_search("s", "{}")
    foreign = Store(there.url, create=False, writable=False)
    done = merge(here, foreign)
    assert (done.added, done.replaced, done.same, done.arrays, done.conflicts) == (3, 0, 3, 3, [])
    assert (done.suites, done.wanted) == (1, 4)
    for name in ("tiny", "other"):
        assert here.cells(name) == there.cells(name)
        assert list(map(repr, here.values(name))) == list(map(repr, there.values(name)))
        assert here.remarks(name) == there.remarks(name)
    assert here.suites() == there.suites()
    assert here.searches(["s"]) == {"s": "{}"}
    for number in range(6):
        arrays = here.load_arrays(cell(number).key)
        assert arrays is not None
        assert len(arrays["mean"]) == number
    before = everything(here)
    again = merge(here, foreign)
    assert (again.added, again.same, again.arrays, again.suites, again.wanted) == (0, 6, 0, 0, 0)
    assert everything(here) == before
    assert before["drivers"] == []
    foreign.close()


def test_other_values_are_a_conflict_and_stay(new_store: Any, store: Store) -> None:
    there, here = filled(store, range(3), 1.0), new_store()
    here.save([(cell(0), Outcome("ok", metrics={"rmse": 1.5, "nll": math.inf, "none": math.nan, "more": 2.0}))])
    here.save([(cell(1), Outcome("diverged", metrics={"rmse": 1.0, "nll": math.inf, "none": math.nan}))])
    here.save_search("s", "1")
    there.save_search("s", "2")
    done = merge(here, there)
    assert done.conflicts == [
        Conflict(cell(0).key, "more", 2.0, None),
        Conflict(cell(0).key, "rmse", 1.5, 1.0),
        Conflict(cell(1).key, "status", "diverged", "ok"),
        Conflict("s", "search", "1", "2"),
    ]
    assert done.added == 1
    values = {(row["key"], row["metric"]): row["value"] for row in here.values("tiny")}
    assert values[cell(0).key, "rmse"] == 1.5
    assert here.load_arrays(cell(0).key) is None
    assert here.searches(["s"]) == {"s": "1"}


def test_a_failure_gives_way_to_a_result_and_never_the_other_way(new_store: Any, store: Store) -> None:
    here, there = new_store(), store
    here.save([(cell(0), Outcome("failed", "here")), (cell(1), Outcome("ok")), (cell(2), Outcome("failed", "here"))])
    there.save([(cell(0), Outcome("ok", metrics={"rmse": 1.0})), (cell(1), Outcome("failed", "there"))])
    there.save([(cell(2), Outcome("failed", "there")), (cell(3), Outcome("failed", "there"))])
    here.want(suite(), [cell(number) for number in range(4)])
    done = merge(here, there)
    assert (done.added, done.replaced, done.same, done.conflicts) == (1, 1, 2, [])
    rows = here.cells("tiny")
    assert [(row["status"], row["message"]) for row in rows] == [
        ("ok", ""),
        ("ok", ""),
        ("failed", "here"),
        ("failed", "there"),
    ]


def test_a_suite_in_both_is_united_and_ours_comes_first(store: Store, tmp_path: Path) -> None:
    there = Store(str(tmp_path / "there.db"))
    store.want(suite(title="Ours"), [cell(0), cell(1)])
    store.remark("tiny", "toy", "", ["ours"])
    there.want(suite(title="Theirs"), [Cell("f" * 32, "toy", 0, "m", 0, "{}"), cell(7)])
    there.remark("tiny", "toy", "", ["theirs", "theirs too"])
    there.remark("tiny", "toy", "m", ["new"])
    merge(store, there)
    assert store.suites()["tiny"]["title"] == "Ours"
    assert [row["key"] for row in store.cells("tiny")] == [cell(number).key for number in (0, 1, 7)]
    assert [row["text"] for row in store.remarks("tiny")] == ["ours", "new"]


@pytest.mark.parametrize("name", EVIL)
def test_names_of_a_foreign_store_are_only_text(name: str, new_store: Any, tmp_path: Path) -> None:
    place = tmp_path / "inner" / "deep"
    there = Store(str(place / "there.db"))
    foreign = cell(1, name, name)
    there.want(suite(name, name * 1000), [foreign])
    there.save([(foreign, Outcome("ok", name * 10_000, metrics={"rmse": 1.0}, arrays={"mean": np.arange(2.0)}))], name)
    here = new_store()
    before = {path for path in tmp_path.rglob("*") if ".arrays" not in str(path)}
    merge(here, there)
    assert here.cells(name) == there.cells(name)
    assert here.load_arrays(foreign.key) is not None
    after = {path for path in tmp_path.rglob("*") if ".arrays" not in str(path)}
    assert {path for path in after - before if not path.name.endswith(("-wal", "-shm"))} == set()


def test_files_of_a_foreign_store_are_taken_only_where_they_are_what_they_say(store: Store, tmp_path: Path) -> None:
    there = filled(Store(str(tmp_path / "there.db")), range(1, 3))
    secret = tmp_path / "secret.npz"
    np.savez(secret, mean=np.arange(9.0))
    update = text("UPDATE cells SET arrays = :name WHERE key = :key")
    for name in ("../secret", str(secret.with_suffix(""))):
        there.database.write(methodcaller("execute", update, {"name": name, "key": cell(1).key}))
        merge(Store(str(tmp_path / f"{len(name)}.db")), there)
    merge(store, there)
    assert store.load_arrays(cell(1).key) is None
    assert store.load_arrays(cell(2).key) is not None
    damaged = there.arrays.folder / f"{'0' * 32}.npz"
    damaged.write_bytes(secret.read_bytes())
    there.database.write(lambda connection: connection.execute(update, {"name": "0" * 32, "key": cell(1).key}))
    fresh = Store(str(tmp_path / "fresh.db"))
    done = merge(fresh, there)  # everything but the file
    (skipped,) = done.skipped
    assert (skipped.key, skipped.file) == (cell(1).key, "0" * 32)
    assert "its content does not match its name" in skipped.reason
    assert (done.added, done.arrays) == (2, 1)
    assert fresh.load_arrays(cell(1).key) is None
    assert repr(fresh.values("tiny")) == repr(there.values("tiny"))


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE cells SET status = 'great'", "has the status 'great'"),
        ("UPDATE cells SET status = NULL", "has the status 'None'"),
        ("UPDATE cells SET message = x'ff00'", "is not text but bytes"),
        ("UPDATE cells SET seconds = 'long'", "not a number"),
        ("UPDATE metrics SET value = 'high'", "not a number"),
        ("UPDATE wanted SET seed = 'x'", "not a number"),
        ("UPDATE wanted SET dataset = printf('%.*c', 300, 'x')", "at most 200 characters"),
        ("UPDATE suites SET name = printf('%.*c', 5000000, 'x')", "at most 200 characters"),
        ("UPDATE metrics SET metric = x'00' WHERE metric = 'rmse'", "is not text but bytes"),
        ("UPDATE wanted SET dataset = 'a' || char(10) || 'b'", "U.000A cannot be printed"),
        ("UPDATE wanted SET method = char(27) || '[2J'", "U.001B cannot be printed"),
        ("UPDATE suites SET name = 'a' || char(8238) || 'b'", "U.202E cannot be printed"),
        ("UPDATE metrics SET metric = 'rmse ' WHERE metric = 'rmse'", "nor ends with a blank"),
        ("UPDATE cells SET key = printf('%.*c', 300, 'x')", "at most 200 characters"),
        ("UPDATE environments SET content = 'no json'", "malformed"),
    ],
)
def test_rows_that_no_store_of_ours_could_hold(statement: str, reason: str, store: Store, tmp_path: Path) -> None:
    there = filled(Store(str(tmp_path / "there.db")), range(1))
    there.database.write(lambda connection: connection.execute(text(statement)))
    with pytest.raises(UserError, match=reason) as caught:
        merge(store, there)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert store.drivers() == []


def test_a_store_merged_with_itself(store: Store) -> None:
    filled(store, range(4))
    before = everything(store)
    done = merge(store, Store(store.url, create=False, writable=False))
    assert (done.added, done.same, done.conflicts) == (0, 4, [])
    assert everything(store) == before


def test_a_lost_array_file_comes_back(store: Store, tmp_path: Path) -> None:
    there = filled(Store(str(tmp_path / "there.db")), range(2, 3))
    filled(store, range(2, 3))
    (file,) = store.arrays.folder.iterdir()
    file.unlink()
    assert merge(store, there).arrays == 1
    assert store.load_arrays(cell(2).key) is not None
