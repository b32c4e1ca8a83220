"""Grids of values and counts of cells, against pandas' own pivot and plain counting."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bench.errors import UserError
from bench.spec.spec import read_spec
from bench.stats import CellCounts, Measure, Repetition, compare, compare_each
from bench.stats.pairing import grids, pair_repeats

Results = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]
VALUES = {
    ("b", "two"): [1.0, 2.0, 3.0, 4.0, 5.0, 6.5],
    ("b", "one"): [1.5, np.nan, 2.5, 4.5, 5.0, 7.0],
    ("b", "three"): [2.0, 2.1, 3.2, 4.1, np.inf, 6.0],
    ("a", "two"): [1.0, 1.1, 1.3, 1.2, 1.4, 1.0],
    ("a", "three"): [1.0, "diverged", 1.3, None, 1.2, "failed"],
}


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1.0, random_state=0, ignore_index=True)


def test_a_grid_is_the_pivot_of_its_dataset_and_metric(results: Results) -> None:
    frame = pd.concat([results(VALUES)[0], results(VALUES, "mae", same_rows=False)[0]], ignore_index=True)
    frame["value"] += np.arange(len(frame))  # the two metrics differ
    made = grids(shuffled(frame), ["rmse", "mae"])
    assert [(grid.dataset, grid.metric) for grid in made] == [("a", "rmse"), ("a", "mae"), ("b", "rmse"), ("b", "mae")]
    for grid in made:
        own = frame[(frame["dataset"] == grid.dataset) & (frame["metric"] == grid.metric)]
        table = own.pivot(index=["split", "seed"], columns="method", values="value")
        assert list(grid.methods) == list(table.columns)
        np.testing.assert_array_equal(grid.values, table.to_numpy(dtype=float))
        np.testing.assert_array_equal(grid.splits, table.index.get_level_values("split"))
        stored = own.assign(there=True).pivot(index=["split", "seed"], columns="method", values="there").notna()
        np.testing.assert_array_equal(grid.present, stored.to_numpy())


def test_methods_are_columns_also_without_a_value_and_repeats_of_others_go(results: Results) -> None:
    frame, _ = results({("d", "x"): [1.0, 2.0, None], ("d", "y"): [None, 4.0, 5.0]})
    (grid,) = grids(frame, ["rmse"], ["z", "y", "x"])
    assert grid.methods == ("z", "y", "x")
    assert grid.values.shape == (3, 3)
    assert not grid.present[:, 0].any()
    np.testing.assert_array_equal(grid.of(["y"]).values, [[4.0], [5.0]])
    assert grids(frame, ["mae"]) == []


def test_two_values_of_one_repeat_are_refused(results: Results) -> None:
    frame, _ = results({("d", "x"): [1.0], ("d", "y"): [2.0]})
    with pytest.raises(UserError, match="rmse: several values of one dataset, split, method and seed"):
        grids(pd.concat([frame, frame]), ["rmse"])


def test_counts_tell_what_became_of_cells(results: Results) -> None:
    counts = CellCounts.of(results(VALUES)[1])
    assert counts.states("a")["three"] == Counter({"ok": 3, "diverged": 1, "failed": 1, "not run": 1})
    assert counts.methods() == {"one", "two", "three"}
    assert counts.states("c") == {}
    assert counts.only(["one"]).methods() == {"one"}
    assert CellCounts.of(counts) is counts


def other_data(cells: pd.DataFrame) -> str:
    return replace(read_spec(cells["spec"].iloc[0]), data="another version").text


def test_data_that_differs_between_other_methods_is_no_overlap_of_these(results: Results) -> None:
    frame, cells = results({("d", "x"): [1.0, 2.0], ("d", "y"): [2.0, 3.0], ("d", "z"): [2.0, 2.0]})
    cells.loc[cells["method"] == "z", "spec"] = other_data(cells)
    counts = CellCounts.of(cells)
    assert counts.rows_differ("d") is True
    assert counts.only(["x", "y"]).rows_differ("d") is False
    assert CellCounts.of(cells.drop(columns="spec")).rows_differ("d") is None
    assert pair_repeats(frame, Measure("rmse"), ["x", "y"], counts)[0].repetition.kind == "splits"
    own = pair_repeats(frame, Measure("rmse"), ["x", "y"], counts.only(["x", "y"]))[0]
    assert own.repetition == Repetition("seeds", declared=False)


@pytest.mark.parametrize("same_rows", [True, False])
def test_all_compared_at_once_are_the_comparisons_of_each_pair(results: Results, same_rows: bool) -> None:
    frame, cells = results(VALUES, same_rows=same_rows)
    cells.loc[cells["method"] == "one", "spec"] = other_data(cells)
    for method in ("one", "three"):
        (comparison,) = compare_each(shuffled(frame), [method], "two", [Measure("rmse")], cells=cells)
        both = [method, "two"]
        own, own_cells = (table[table["method"].isin(both)] for table in (frame, cells))
        alone = compare(own, method, "two", [Measure("rmse")], cells=own_cells)
        # repr: what is not there is NaN, which equals nothing
        assert repr(comparison) == repr(alone)
        assert len(comparison.rows) == 2
