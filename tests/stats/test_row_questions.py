"""Row-level questions against closed forms and what was planted."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.errors import UserError
from bench.stats import RowTable, compare_rows, disputed_rows, hardest_rows, row_frame, row_tables

ROWS = 400


def cells(*keys: tuple[str, int, str, int]) -> pd.DataFrame:
    frame = pd.DataFrame(keys, columns=["dataset", "split", "method", "seed"])
    return frame.assign(key=["".join(map(str, key)) for key in keys], status="ok")


def table(observed: Any, stored: dict[str, Any]) -> RowTable:
    """The table of one test set and one seed, from the means of each method."""
    frame = cells(*(("d", 0, method, 0) for method in stored))
    read = {f"d0{method}0": {"observed": observed, "mean": mean} for method, mean in stored.items()}
    (found,) = row_tables(frame, read.get)
    return found


def test_the_interval_of_a_difference_is_that_of_a_paired_test(rng: np.random.Generator) -> None:
    observed, shared = rng.normal(size=ROWS), rng.normal(size=ROWS)
    means = {"a": observed + shared + 0.1 * rng.normal(size=ROWS), "b": observed + shared, "c": observed + 2 * shared}
    found = compare_rows(table(observed, means), "b", np.random.default_rng(0)).to_dict("records")
    for method in ("a", "c"):
        difference = np.abs(means[method] - observed) - np.abs(shared)
        (row,) = (r for r in found if r["method"] == method and r["loss"] == "absolute_error")
        assert row["difference"] == pytest.approx(difference.mean())
        low, high = scipy.stats.t.interval(0.95, ROWS - 1, difference.mean(), scipy.stats.sem(difference))
        assert (row["low"], row["high"]) == pytest.approx((low, high), abs=0.1 * (high - low))
    assert [r["low"] > 0 for r in found if r["method"] == "c"] == [True, True]
    with pytest.raises(UserError, match="unknown method 'd'"):
        compare_rows(table(observed, means), "d", np.random.default_rng(0))


def probabilities(labels: Any, wrong: Any) -> Any:
    """Probabilities of 0.8 for the label, or for the other class where a method is wrong."""
    chosen = np.where(wrong, 1 - labels, labels)
    return np.where(np.arange(2) == chosen[:, None], 0.8, 0.2)


def test_mcnemar_is_exact_on_the_rows_that_one_method_gets_wrong(rng: np.random.Generator) -> None:
    labels = rng.integers(0, 2, ROWS)
    wrong = {"a": np.arange(ROWS) < 30, "b": (np.arange(ROWS) >= 20) & (np.arange(ROWS) < 24), "c": np.arange(ROWS) < 4}
    stored = {method: probabilities(labels, own) for method, own in wrong.items()}
    found = compare_rows(table(labels, stored), "b", np.random.default_rng(0))
    a, c = found[found["loss"] == "class_error"].to_dict("records")
    assert (a["method"], a["only_method"], a["only_baseline"]) == ("a", 26, 0)
    assert a["p"] == pytest.approx(scipy.stats.binomtest(0, 26).pvalue)
    assert (c["method"], c["only_method"], c["only_baseline"], c["p"]) == ("c", 4, 4, 1.0)
    assert a["p_adjusted"] == pytest.approx(2 * a["p"])
    assert found[found["loss"] != "class_error"]["p"].isna().all()


def test_planted_hard_and_disputed_rows_are_found(rng: np.random.Generator) -> None:
    observed = rng.normal(size=ROWS)
    one, two = observed + 0.01 * rng.normal(size=ROWS), observed + 0.01 * rng.normal(size=ROWS)
    one[7], two[7] = observed[7] + 5, observed[7] + 5  # hard for both
    one[9], two[9] = observed[9] + 1, observed[9] - 1  # hard, and disputed
    found = table(observed, {"one": one, "two": two})
    hard = hardest_rows(found, 3)
    assert hard["row"].tolist()[:2] == [7, 9]
    assert hard["loss"].tolist()[0] == pytest.approx(25.0, rel=0.02)
    assert disputed_rows(found, 1)["row"].tolist() == [9]
    labels = rng.integers(0, 2, ROWS)
    wrong = np.arange(ROWS) == 11
    classes = table(labels, {m: probabilities(labels, wrong & (m == "a")) for m in "abc"})
    assert disputed_rows(classes, 1)["row"].tolist() == [11]
    assert disputed_rows(classes, 1)["disagreement"].tolist() == pytest.approx([1 / 3])


def test_seeds_are_averaged_and_other_rows_are_left_out(rng: np.random.Generator) -> None:
    observed = rng.normal(size=ROWS)
    frame = cells(("d", 0, "a", 0), ("d", 0, "a", 1), ("d", 0, "b", 0), ("d", 1, "a", 2), ("d", 1, "lost", 2))
    stored = {
        "d0a0": {"observed": observed, "mean": observed + 1},
        "d0a1": {"observed": observed, "mean": observed + 3},
        "d0b0": {"observed": observed[::-1].copy(), "mean": observed},
        "d1a2": {"observed": observed, "mean": observed},
    }
    first, second = row_tables(frame, stored.get)
    assert list(first.methods) == list(second.methods) == ["a"]
    np.testing.assert_allclose(first.losses["squared_error"], 5.0)
    np.testing.assert_allclose(first.predicted[0], observed + 2)
    rows = row_frame([first, second])
    assert len(rows) == 2 * ROWS
    assert rows.groupby("split")["squared_error"].mean().tolist() == pytest.approx([5.0, 0.0])
    assert compare_rows(first, "a", np.random.default_rng(0)).empty
    with pytest.raises(UserError, match="no predictions are stored"):
        row_frame([])
