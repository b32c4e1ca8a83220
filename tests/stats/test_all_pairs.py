"""All pairs at once give what one comparison at a time gives."""

import numpy as np
import pandas as pd
import pytest

from bench.stats import Measure, adjust_p_values, compare, compare_all_pairs, rank


@pytest.fixture
def frame() -> pd.DataFrame:
    random = np.random.default_rng(4)
    rows = [
        (dataset, seed, method, seed, "rmse", random.normal(place * 0.3, 1.0))
        for dataset in ("a", "b")
        for place, method in enumerate(("x", "y", "z"))
        for seed in range(8)
    ]
    return pd.DataFrame(rows, columns=["dataset", "split", "method", "seed", "metric", "value"])


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_pairings_are_those_of_compare(frame: pd.DataFrame, direction: str) -> None:
    frame.loc[3, "value"] = np.nan  # paired deletion
    measure = Measure("rmse", direction)  # type: ignore[arg-type]
    found = {one.dataset: one for one in compare_all_pairs(frame, [measure])}
    for a, b in (("x", "y"), ("y", "z"), ("z", "x")):
        for row in compare(frame, a, b, [measure]).rows:
            one = found[row.dataset]
            place = one.methods.index(a), one.methods.index(b)
            gain = row.difference if direction == "higher" else -row.difference
            assert one.pairs[place] == row.pairs
            assert one.gain[place] == pytest.approx(gain)
            assert one.p[place] == pytest.approx(row.p)
            assert one.wins[place] == pytest.approx(row.better_probability)


def test_a_run_that_diverged_loses_its_pair_and_leaves_the_mean(frame: pd.DataFrame) -> None:
    """x is below y in all 8 repeats; then it diverges in 3 of them, and y in one of these."""
    two = frame[(frame["dataset"] == "a") & frame["method"].isin(["x", "y"])].copy()
    two["value"] = two["seed"] + 0.1 * (two["method"] == "y")
    cells = two[["dataset", "split", "method", "seed"]].assign(status="ok")
    for method, seeds in (("x", (0, 1, 2)), ("y", (2,))):
        cells.loc[(cells["method"] == method) & cells["seed"].isin(seeds), "status"] = "diverged"
    kept = two[(cells["status"] == "ok").to_numpy()]
    (one,) = compare_all_pairs(kept, [Measure("rmse")], cells=cells)
    assert (one.pairs[0, 1], one.gain[0, 1]) == pytest.approx((5, 0.1))
    assert (one.wins[0, 1], one.wins[1, 0]) == pytest.approx((5 / 7, 2 / 7))  # where both diverged, nobody wins


def test_few_pairs_have_no_p_and_equal_ones_no_difference(frame: pd.DataFrame) -> None:
    (few,) = compare_all_pairs(frame[(frame["seed"] < 4) & (frame["dataset"] == "a")], [Measure("rmse")])
    assert np.isnan(few.p).all()
    (one,) = compare_all_pairs(frame[frame["dataset"] == "a"], [Measure("rmse")])
    assert np.diag(one.p).tolist() == [1.0] * 3
    assert (
        one.better(adjust_p_values(one.p, "holm"), 0.05) + one.better(adjust_p_values(one.p, "holm"), 0.05).T == 0
    ).all()


def test_the_same_difference_everywhere_is_decided_by_signs(frame: pd.DataFrame) -> None:
    two = frame[(frame["dataset"] == "a") & (frame["method"] == "x")]
    both = pd.concat([two, two.assign(method="y", value=two["value"] + 1.0)])
    (one,) = compare_all_pairs(both, [Measure("rmse")])
    (row,) = compare(both, "x", "y", [Measure("rmse")]).rows
    assert one.p[0, 1] == pytest.approx(row.p) == pytest.approx(2 / 2**8)


def test_a_ranking_without_intervals_has_the_same_numbers(frame: pd.DataFrame) -> None:
    whole, fast = rank(frame, Measure("rmse")), rank(frame, Measure("rmse"), intervals=False)
    assert [m.average_rank for m in whole.methods] == [m.average_rank for m in fast.methods]
    assert [m.score.value for m in whole.methods] == [m.score.value for m in fast.methods]
    assert [p.p for p in whole.pairs] == [p.p for p in fast.pairs]
    assert [p.improvement.value for p in whole.pairs] == pytest.approx([p.improvement.value for p in fast.pairs])
    assert all(np.isnan(m.score.low) for m in fast.methods)
