"""Stored predictions: within their budget, read as they were, known to gc, check, merge and export."""

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from bench.errors import UserError
from bench.spec.cell import Outcome, from_bytes, to_bytes
from bench.store.arrays import DamagedArraysError
from bench.store.bank import DEFAULT_BUDGET, FULL, kept_files, load_predictions, read_bytes, set_budget, usage
from bench.store.check import check, repair
from bench.store.export_predictions import write_predictions
from bench.store.gc import clean
from bench.store.lookup import describe
from bench.store.merge import merge
from bench.store.results import StoredResults
from bench.store.status import status
from bench.store.store import Store
from tests.fixtures.banks import cell, filled, outcome, predicted
from tests.fixtures.stores import NewStore


def test_what_is_stored_is_read_again(any_store: Store) -> None:
    """Moments of the stored predictions equal those that were stored at run time."""
    made = filled(any_store)
    for number, kept in enumerate(made):
        again = load_predictions(any_store, cell(number).key)
        assert again is not None
        assert again.precision == "16 bits"
        arrays = any_store.load_arrays(cell(number).key)
        assert arrays is not None
        np.testing.assert_allclose(again.test.mean, arrays["mean"], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(again.test.variance, arrays["variance"], rtol=1e-4)
        assert again.test.noise_variance == kept.test.noise_variance
        assert again.validation is not None
        part = load_predictions(any_store, cell(number).key, validation=False)
        assert part is not None
        assert part.validation is None
        np.testing.assert_array_equal(part.test.draws, again.test.draws)
    assert load_predictions(any_store, "nothing") is None
    found = describe(any_store, cell(0).key)["predictions"]
    assert (found["precision"], found["reason"], found["task"]) == ("16 bits", "", "regression")


def test_predictions_travel_between_processes() -> None:
    sent = outcome(predicted())
    assert from_bytes(to_bytes(sent)).predictions == sent.predictions
    assert from_bytes(to_bytes(Outcome("ok"))).predictions == b""


def test_a_full_budget_keeps_the_moments(any_store: Store) -> None:
    assert status(any_store).predictions.budget == DEFAULT_BUDGET
    size = len(outcome(predicted(0)).predictions)
    set_budget(any_store, int(1.5 * size))
    filled(any_store)
    found = status(any_store).predictions
    assert (found.cells, found.left_out, found.budget) == (1, 2, int(1.5 * size))
    assert 0 < found.bytes <= found.budget
    assert all(any_store.load_arrays(cell(number).key) for number in range(3))
    assert describe(any_store, cell(2).key)["predictions"]["reason"] == FULL
    set_budget(any_store, 10**9)
    any_store.save([(cell(7), outcome(predicted(7)))])
    assert status(any_store).predictions.cells == 2


@pytest.mark.parametrize(("given", "size"), [("0", 0), ("500MB", 5 * 10**8), (" 1.5 gb ", 15 * 10**8), ("7", 7)])
def test_sizes_are_read(given: str, size: int) -> None:
    assert read_bytes(given) == size


@pytest.mark.parametrize("given", ["", "-1", "10 parsec", "1e9", "9999999TB", "GB"])
def test_what_is_no_size_is_refused(given: str) -> None:
    with pytest.raises(UserError, match="10GB"):
        read_bytes(given)


def test_gc_keeps_predictions_and_removes_them_on_request(any_store: Store) -> None:
    filled(any_store)
    assert clean(any_store).array_files == 0
    assert clean(any_store, predictions=True, dry_run=True).predictions == 3
    assert len(kept_files(any_store)) == 3
    removed = clean(any_store, predictions=True)
    assert (removed.predictions, removed.array_files, removed.results) == (3, 3, 0)
    assert kept_files(any_store) == {}
    assert len(any_store.values("tiny")) > 0
    assert any_store.load_arrays(cell(0).key)
    any_store.save([(cell(9), outcome(predicted(9)))])  # of no suite
    assert clean(any_store, unwanted=True).array_files == 2
    assert kept_files(any_store) == {}


def test_check_finds_lost_and_damaged_predictions_and_a_repair_forgets_them(any_store: Store) -> None:
    filled(any_store)
    files = {key: row["file"] for key, row in kept_files(any_store).items()}
    lost, damaged = (any_store.arrays.path(files[cell(number).key]) for number in (0, 1))
    assert lost is not None
    assert damaged is not None
    lost.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedArraysError):
        load_predictions(any_store, cell(1).key)
    found = check(any_store)
    assert found.predictions == 3
    assert {(fault.key, fault.fault, fault.what) for fault in found.faults} == {
        (cell(0).key, "lost", "predictions"),
        (cell(1).key, "damaged", "predictions"),
    }
    repair(any_store, found)
    assert check(any_store).faults == ()
    assert set(kept_files(any_store)) == {cell(2).key}
    assert any_store.done(cell(number).key for number in range(3)) == {cell(number).key for number in range(3)}


def test_a_merge_copies_predictions_also_of_cells_that_lack_them(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    filled(other)
    one.save([(cell(0), outcome(predicted(0)))])
    clean(one, predictions=True)
    path = other.arrays.path(str(kept_files(other)[cell(2).key]["file"]))
    assert path is not None
    path.write_bytes(b"not what its name says")
    done = merge(one, other)
    assert (done.added, done.same, done.predictions) == (2, 1, 2)
    assert [skipped.key for skipped in done.skipped] == [cell(2).key]
    assert not done.conflicts
    assert set(kept_files(one)) == {cell(0).key, cell(1).key}
    again = load_predictions(one, cell(0).key)
    assert again is not None
    np.testing.assert_allclose(again.test.mean, predicted(0).test.mean, rtol=1e-4, atol=1e-6)
    assert merge(one, other).predictions == 0


def test_a_merge_keeps_the_budget(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    filled(other)
    set_budget(one, 0)
    done = merge(one, other)
    assert (done.added, done.predictions, done.predictions_left_out) == (3, 0, 3)
    with one.database.reading() as connection:
        assert usage(connection).left_out == 3


def test_exported_predictions_are_plain_arrays(store: Store, tmp_path: Path) -> None:
    (made, *_) = filled(store)
    assert write_predictions(store, None, tmp_path / "out") == 3
    lines = (tmp_path / "out" / "index.csv").read_text("utf-8").splitlines()
    assert lines[0] == "suite,dataset,split,method,seed,key,precision,file"
    assert lines[1] == f"tiny,toy,0,m,0,{cell(0).key},16 bits,{cell(0).key}.npz"
    with np.load(tmp_path / "out" / f"{cell(0).key}.npz", allow_pickle=False) as arrays:
        assert sorted(arrays.files) == [
            "noise_variance",
            "test.observed",
            "test.values",
            "validation.observed",
            "validation.values",
        ]
        np.testing.assert_allclose(arrays["test.values"], made.test.draws, rtol=1e-3, atol=1e-4)


def test_reports_read_all_predictions(store: Store) -> None:
    filled(store)
    results = StoredResults(store, "tiny")
    kept = results.kept(cell(0).key)
    assert kept is not None
    assert kept.test.draws.shape == (12, 20)
    assert results.rescored.empty


def test_rows_of_a_foreign_store_name_no_other_file(any_store: Store) -> None:
    filled(any_store)
    any_store.database.write(lambda c: c.execute(text("UPDATE predictions SET file = '../../etc/passwd'")))
    assert load_predictions(any_store, cell(0).key) is None
    assert {fault.fault for fault in check(any_store).faults} == {"lost"}
