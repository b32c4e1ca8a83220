import math

import numpy as np
import pandas as pd
import pytest

from bench.spec.cell import Cell, Outcome
from bench.store.results import FrameCache, StoredResults
from bench.store.store import Store, SuiteRecord

NLL = {("mc-dropout", 0): 1.5, ("mc-dropout", 1): -0.25, ("other", 0): 4.0, ("other", 1): math.inf, ("third", 0): 0.5}


def fill(store: Store, numbers: dict[tuple[str, int], float], baseline: str | None) -> StoredResults:
    cells = {place: Cell("/".join(map(str, place)), "toy", place[1], place[0], place[1], "{}") for place in numbers}
    store.want(SuiteRecord("tiny", "Tiny", baseline, ["msll"], "{}"), cells.values())
    store.save((cell, Outcome("ok", metrics={"nll_mc": numbers[place], "rmse": 1.0})) for place, cell in cells.items())
    return StoredResults(store, "tiny")


def metric(results: StoredResults, name: str) -> dict[tuple[str, int], float]:
    rows = results.frame[results.frame["metric"] == name]
    places = zip(rows["method"], rows["split"], strict=True)
    return {(str(m), int(s)): float(v) for (m, s), v in zip(places, rows["value"], strict=True)}


def test_msll_is_the_difference_to_the_baseline_on_the_same_split(store: Store) -> None:
    results = fill(store, NLL, "mc-dropout")
    expected = {place: value - NLL["mc-dropout", place[1]] for place, value in NLL.items()}
    assert metric(results, "msll") == expected
    assert expected["mc-dropout", 0] == 0
    assert metric(results, "nll_mc") == NLL  # what is stored is not touched
    keys = results.frame.set_index(["method", "split", "metric"])["key"]
    assert keys["other", 0, "msll"] == "other/0"


@pytest.mark.parametrize("baseline", [None, "mc-dropout"])
def test_without_the_baseline_there_is_no_msll(baseline: str | None, store: Store) -> None:
    numbers = {("other", 0): 1.0}
    assert metric(fill(store, numbers, baseline), "msll") == {}


def test_a_split_without_the_baseline_has_no_msll(store: Store) -> None:
    numbers = {place: value for place, value in NLL.items() if place != ("mc-dropout", 1)}
    assert set(metric(fill(store, numbers, "mc-dropout"), "msll")) == {("mc-dropout", 0), ("other", 0), ("third", 0)}


def test_no_difference_to_an_infinite_baseline(store: Store) -> None:
    numbers = {("mc-dropout", 0): math.inf, ("other", 0): 1.0}
    assert metric(fill(store, numbers, "mc-dropout"), "msll") == {}


def test_nothing_stored_is_an_empty_frame_with_the_same_columns(store: Store) -> None:
    store.want(SuiteRecord("tiny", "Tiny", "mc-dropout", [], "{}"), [])
    results = StoredResults(store, "tiny")
    assert results.frame.empty
    assert list(results.frame.columns) == ["suite", "dataset", "split", "method", "seed", "key", "metric", "value"]
    assert results.cells.empty
    assert results.failures.empty


def test_failures_tell_their_reason_in_one_line(store: Store) -> None:
    cells = [Cell(f"k{i}", "toy", i, "m", i, "{}") for i in range(4)]
    store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), cells)
    outcomes = (Outcome("failed", "ValueError: bad\n\nTraceback ..."), Outcome("diverged", "not finite"), Outcome("ok"))
    store.save(zip(cells, outcomes, strict=False))
    results = StoredResults(store, "tiny")
    told = results.failures[["seed", "status", "message"]].to_numpy().tolist()
    assert told == [[0, "failed", "ValueError: bad"], [1, "diverged", "not finite"]]
    assert results.cells["status"].isna().tolist() == [False, False, False, True]


def test_the_time_of_a_cell_whose_networks_had_been_kept_is_no_cost(store: Store) -> None:
    """An ensemble whose five networks were there already took 7 s, and one network that was trained 140 s."""
    cells = [Cell(f"k{seed}", "toy", seed, "m", seed, "{}") for seed in range(2)]
    store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), cells)
    timing = {"seconds": 3.0, "cpu_seconds": 2.0}
    records: list[dict[str, object]] = [{"epochs": [16]}, {"epochs": [16], "stored_networks": 1}]
    store.save((cell, Outcome("ok", training=t, timing=timing)) for cell, t in zip(cells, records, strict=True))
    found = StoredResults(store, "tiny").cells.sort_values("key")[["seconds", "cpu_seconds"]]
    np.testing.assert_array_equal(found.to_numpy(), [[3.0, 2.0], [np.nan, np.nan]])


def test_curves(store: Store) -> None:
    cell = Cell("k", "toy", 0, "m", 0, "{}")
    arrays = {"observed": np.arange(3.0), "mean": np.ones(3), "variance": np.zeros(3), "inspect/a": np.ones(2)}
    store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), [cell])
    store.save([(cell, Outcome("ok", arrays=arrays))])
    results = StoredResults(store, "tiny")
    curves = results.curves("k")
    assert curves is not None
    np.testing.assert_array_equal(curves.observed, arrays["observed"])
    assert curves.x is None
    np.testing.assert_array_equal(results.arrays("k")["inspect/a"], arrays["inspect/a"])
    assert results.arrays("none") == {}
    assert results.curves("none") is None


def test_the_frame_is_in_a_fixed_order(store: Store) -> None:
    frame = fill(store, NLL, "mc-dropout").frame
    ordered = frame.sort_values(["suite", "dataset", "split", "method", "seed", "metric"], ignore_index=True)
    pd.testing.assert_frame_equal(frame, ordered)


def test_the_frame_of_some_metrics_is_a_part_of_the_whole_one(store: Store) -> None:
    results = fill(store, NLL, "mc-dropout")
    for names in (["rmse"], ["msll", "nll_mc"], []):
        whole = results.frame[results.frame["metric"].isin(names)].reset_index(drop=True)
        pd.testing.assert_frame_equal(results.frame_of(names), whole)
    assert results.columns.methods() == results.frame.groupby("metric")["method"].agg(set).to_dict()
    assert results.columns.datasets() == list(results.frame["dataset"].unique())


def test_frames_of_large_suites_are_made_again_and_others_are_kept() -> None:
    made: list[str] = []

    def frame(name: str) -> pd.DataFrame:
        def make() -> pd.DataFrame:
            made.append(name)
            return pd.DataFrame({"value": np.arange(60.0), "suite": name})

        return cache.get(name, 60, make)

    cache = FrameCache(most_rows=130)
    assert frame("a") is frame("a")
    assert frame("b")["suite"].unique() == ["b"]
    assert frame("a")["suite"].unique() == ["a"]
    frame("c")  # instead of b, which was used before a
    frame("a")
    assert made == ["a", "b", "c"]
    frame("b")
    cache.forget("b")
    frame("b")
    assert made == ["a", "b", "c", "b", "b"]
    larger = FrameCache(most_rows=10)
    assert len(larger.get("one", 60, lambda: pd.DataFrame({"value": np.arange(60.0)}))) == 60


def test_what_is_forgotten_is_read_again(store: Store) -> None:
    results = fill(store, NLL, "mc-dropout")
    frame, cells = results.frame, results.cells
    assert results.frame is frame
    results.forget()
    assert results.frame is not frame
    pd.testing.assert_frame_equal(results.frame, frame)
    pd.testing.assert_frame_equal(results.cells, cells)
