import os
import time
from pathlib import Path

import numpy as np
import pytest

from bench.errors import UserError
from bench.spec.cell import Cell, Outcome
from bench.store.arrays import GRACE
from bench.store.gc import Cleaned, clean
from bench.store.store import Store, SuiteRecord, new_owner
from bench.training.checkpoints import folder_of

SUITE = SuiteRecord("tiny", "Tiny", None, [], "{}")
CELLS = [Cell(f"{number:032x}", "toy", number, "m", number, "{}") for number in range(4)]


def fill(store: Store) -> None:
    """Four results, of which the suite wants two; the other two have the same arrays."""
    store.want(SUITE, CELLS[:2])
    for cell in CELLS:
        arrays = {"mean": np.full(50, float(cell.seed % 2))}
        facts = {"wanted": cell.seed < 2}
        store.save([(cell, Outcome("ok", metrics={"rmse": 1.0}, arrays=arrays, environment=facts))])


def stray(store: Store, name: str, age: float = 0.0) -> Path:
    path = store.arrays.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 10)
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_only_files_that_nobody_refers_to_go(any_store: Store) -> None:
    fill(any_store)
    kept = set(any_store.arrays.folder.iterdir())
    lost = [stray(any_store, "a" * 32 + ".npz"), stray(any_store, ".old.part", GRACE + 1)]
    others = {stray(any_store, ".young.part"), stray(any_store, "notes.txt", 2 * GRACE), stray(any_store, "mine.npz")}
    expected = Cleaned(results=0, array_files=1, temporary_files=1, bytes=20)
    assert clean(any_store, dry_run=True) == expected
    assert all(path.exists() for path in lost)
    assert clean(any_store) == expected
    assert set(any_store.arrays.folder.iterdir()) == kept | others
    assert all(any_store.load_arrays(cell.key) is not None for cell in CELLS)
    assert clean(any_store) == Cleaned(0, 0, 0, 0)


def test_results_that_no_suite_wants_go_with_their_files_when_asked(any_store: Store) -> None:
    fill(any_store)
    before = {path.name for path in any_store.arrays.folder.iterdir()}
    assert clean(any_store, unwanted=True, dry_run=True).results == 2
    assert any_store.done(cell.key for cell in CELLS) == {cell.key for cell in CELLS}
    cleaned = clean(any_store, unwanted=True)
    assert (cleaned.results, cleaned.array_files) == (2, 0)  # their arrays are also those of cells that stay
    assert {path.name for path in any_store.arrays.folder.iterdir()} == before
    assert any_store.done(cell.key for cell in CELLS) == {cell.key for cell in CELLS[:2]}
    assert len(any_store.values("tiny")) == 2
    any_store.forget("tiny")
    assert clean(any_store, unwanted=True).array_files == len(before)
    assert list(any_store.arrays.folder.iterdir()) == []


def test_files_that_may_be_waiting_for_their_row_stay(store: Store) -> None:
    fill(store)
    young, old = stray(store, "a" * 32 + ".npz"), stray(store, "b" * 32 + ".npz", GRACE + 1)
    owner = new_owner()
    store.lease(["x"], owner)
    assert clean(store).array_files == 1
    assert (young.exists(), old.exists()) == (True, False)
    with pytest.raises(UserError, match="is working on this store"):
        clean(store, unwanted=True)
    assert store.done([CELLS[3].key])
    store.release(owner)
    assert clean(store).array_files == 1
    assert not young.exists()


def test_a_store_without_arrays(store: Store) -> None:
    assert clean(store) == Cleaned(0, 0, 0, 0)


def test_checkpoints_go_when_asked_and_nobody_trains(store: Store) -> None:
    fill(store)
    folder = folder_of(store.arrays.folder) / ("c" * 24)
    folder.mkdir(parents=True)
    (folder / "one.safetensors").write_bytes(b"x" * 7)
    assert clean(store) == Cleaned(0, 0, 0, 0)
    owner = new_owner()
    store.lease(["x"], owner)
    with pytest.raises(UserError, match=r"--checkpoints: .* is working on this store"):
        clean(store, checkpoints=True)
    store.release(owner)
    assert clean(store, checkpoints=True, dry_run=True) == Cleaned(0, 0, 0, 7, 1)
    assert folder.is_dir()
    assert clean(store, checkpoints=True) == Cleaned(0, 0, 0, 7, 1)
    assert not folder.exists()
