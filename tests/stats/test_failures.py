"""Runs that diverged count as losses where a test can count them, and are told beside the verdict."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.stats import Comparison, Measure, Settings, compare, compare_all_pairs, sign_test, trimmed_mean, trimmed_test
from bench.stats.failures import failures_as_losses, share_of_wins

Results = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]
Values = list[float | str | None]
RMSE = Measure("rmse")
RNG = np.random.default_rng(4)
BASE = RNG.normal(size=12)
D = 0.1 + 0.5 * RNG.normal(size=12)


@pytest.fixture
def compared(results: Results) -> Callable[..., Comparison]:
    """Compare two methods on one dataset; all pairs at once have the same share of wins."""

    def call(a: Values, b: Values, measure: Measure = RMSE, splits: int | None = None, **declared: Any) -> Comparison:
        frame, cells = results({("d", "a"): a, ("d", "b"): b}, measure.name, **declared)
        if splits is not None:
            frame, cells = (one.assign(split=one["seed"] % splits) for one in (frame, cells))
        found = compare(frame, "a", "b", [measure], cells=cells)
        (table,) = compare_all_pairs(frame, [measure], cells=cells)
        if table.methods == ("a", "b") and not np.isnan(found.rows[0].better_probability):
            assert table.wins[0, 1] == pytest.approx(found.rows[0].better_probability)
            assert table.wins[1, 0] == pytest.approx(1.0 - table.wins[0, 1])
        return found

    return call


def test_a_run_that_diverged_loses_its_pair(compared: Callable[..., Comparison]) -> None:
    """Once against a run that ended well; where both diverged, nobody wins; one that was not run says nothing."""
    infinite = float("inf")
    a: Values = [*(BASE + D), "diverged", 0.0, "diverged", "diverged", infinite, "failed", infinite, infinite]
    b: Values = [*BASE, 0.0, "diverged", "diverged", None, 0.0, 0.0, "diverged", None]
    (row,) = compared(a, b).rows
    d = np.r_[D, np.inf, -np.inf, np.inf]
    assert (row.pairs, row.failures) == (12, 3)
    assert row.difference == pytest.approx(D.mean())
    assert row.sign_p == pytest.approx(scipy.stats.binomtest(int((d < 0).sum()), 15).pvalue)
    assert row.better_probability == pytest.approx((d < 0).mean())
    ranks = scipy.stats.rankdata(np.abs(d))
    assert row.wilcoxon_p == pytest.approx(scipy.stats.wilcoxon(np.sign(d) * ranks).pvalue)
    (note,) = (message for message in row.messages if "losses in these tests" in message)
    assert note.startswith(
        "3 runs diverged or became infinite: not in the mean, but losses in these tests; 1 run failed"
    )
    assert f"A is better in {100 * (d < 0).mean():.0f} % of the pairs" in note


def test_the_trimmed_mean_counts_failures_as_far_away(compared: Callable[..., Comparison]) -> None:
    """As far as anything: the size of what is trimmed away does not matter."""
    (row,) = compared([*(BASE + D), "diverged"], [*BASE, 0.0]).rows
    for far in (10.0, 1e9):
        assert row.trimmed_difference == pytest.approx(scipy.stats.trim_mean(np.r_[D, far], 0.2))
        theirs = scipy.stats.ttest_ind(np.r_[D, far], np.zeros(13), equal_var=False, trim=0.2).pvalue
        assert row.trimmed_p == row.trimmed_p_adjusted == pytest.approx(theirs)
    (note,) = (message for message in row.messages if "Yuen" in message)
    assert f"Yuen's test of the 20 % trimmed mean: A - B = {row.trimmed_difference:.4g}, p = {theirs:.3g}" in note
    higher = Measure("rmse", "higher")
    (turned,) = compared([*(-BASE - D), "diverged"], [*-BASE, 0.0], higher).rows
    assert turned.trimmed_difference == pytest.approx(-row.trimmed_difference)
    assert turned.better_probability == row.better_probability


def test_more_failures_than_are_trimmed_have_no_trimmed_mean(compared: Callable[..., Comparison]) -> None:
    (row,) = compared([*(BASE + D), *["diverged"] * 6], [*BASE, *[0.0] * 6]).rows
    assert np.isnan(row.trimmed_p)
    assert np.isnan(float(trimmed_mean([np.inf] * 6 + [1.0] * 12)))


def test_a_method_that_mostly_diverges_is_worse_by_its_signs_although_no_mean_can_be_tested(
    compared: Callable[..., Comparison],
) -> None:
    for left in (0, 3):
        (row,) = compared([*BASE[:left], *["diverged"] * 9], [*(BASE[:left] + 1.0), *[0.0] * 9]).rows
        assert np.isnan(row.p)
        assert row.verdict == "inconclusive"
        p = scipy.stats.binomtest(left, 9 + left).pvalue
        assert row.sign_p == pytest.approx(p)
        assert any(f"p = {p:.3g} after the same correction" in message for message in row.messages), row.messages


def test_overlapping_splits_have_no_sign_test_but_a_corrected_trimmed_mean(compared: Callable[..., Comparison]) -> None:
    declared = {"same_rows": False, "repeats": ("splits", 0.25)}
    (row,) = compared([*(BASE + D), "diverged"], [*BASE, 0.0], **declared).rows
    assert np.isnan(row.sign_p)
    assert row.trimmed_p == pytest.approx(float(trimmed_test(np.r_[D, np.inf], 0.25)))
    few: Values = [*BASE[:3], *["diverged"] * 9]
    assert np.isnan(compared(few, [*BASE[:3], *[0.0] * 9], **declared).rows[0].sign_p)
    note = row.messages[-1]
    assert "no sign test, as pairs of overlapping splits are not independent" in note
    assert "Yuen's test" in note


def test_strong_skew_is_not_promised_to_the_trimmed_mean(compared: Callable[..., Comparison]) -> None:
    skewed = np.exp(2.0 * np.linspace(-1.5, 1.5, 12))
    (row,) = compared(list(BASE + skewed), list(BASE)).rows
    assert "no promise under such skew: up to 8 % false positives" in row.messages[-1]
    (few,) = compared(list(BASE[:9] + np.r_[D[:8], 50.0]), list(BASE[:9])).rows
    assert np.isnan(few.trimmed_p)
    assert "Yuen's test of the trimmed mean needs 10 pairs" in few.messages[-1]


def test_on_shared_splits_the_method_with_more_failures_loses_the_split() -> None:
    pairs, lost = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 2, 3])
    failed = np.array([[True, True, False, False, True, False], [False, False, True, True, True, True]])
    found = failures_as_losses(np.array([0.5, -0.5, 2.0]), failed, (pairs, lost))
    # Split 0: A failed once more; 1: both once, their other runs decide; 2: B once more; 3: B alone.
    np.testing.assert_array_equal(found, [np.inf, -0.5, -np.inf, -np.inf])
    both = np.array([[True], [True]])
    np.testing.assert_array_equal(failures_as_losses(np.array([0.5]), both, (np.zeros(1), np.ones(1))), [0.5])


def test_shared_splits_in_a_comparison(compared: Callable[..., Comparison]) -> None:
    a: Values = [*(BASE + D), *["diverged"] * 2, *(BASE[:4] + D[:4])]
    b: Values = [*BASE, 0.0, 0.0, *BASE[:4]]
    (row,) = compared(a, b, splits=6, same_rows=False, repeats=("independent", 0.1)).rows
    means = [np.r_[D[s], D[s + 6], [] if s < 2 else D[s - 2]].mean() for s in range(6)]
    d = np.array([np.inf, np.inf, *means[2:]])  # seeds 12 and 13 are on splits 0 and 1
    assert row.pairs == 6
    assert row.difference == pytest.approx(np.mean(means))
    assert row.sign_p == pytest.approx(float(sign_test(d)))
    assert row.better_probability == pytest.approx(share_of_wins(d))


def test_trimmed_tests_are_corrected_for_the_family_too(results: Results) -> None:
    values = {(name, m): list(BASE + shift) for name in "xyz" for m, shift in (("a", D), ("b", 0.0))}
    frame, cells = results(values)
    found = compare(frame, "a", "b", [RMSE], cells=cells, settings=Settings()).rows
    assert [row.trimmed_p_adjusted for row in found] == pytest.approx([min(1.0, 3 * found[0].trimmed_p)] * 3)


def test_no_differences_have_no_share_of_wins() -> None:
    assert np.isnan(share_of_wins(np.empty(0)))


@pytest.mark.parametrize(
    ("shift", "a_lost", "b_lost", "verdict"),
    [
        (-1.0, 0, 0, "better"),
        (-1.0, 2, 0, "inconclusive"),
        (-1.0, 2, 2, "better"),
        (-1.0, 0, 2, "better"),
        (1.0, 2, 0, "worse"),
        (1.0, 0, 2, "inconclusive"),
        (0.0, 0, 0, "equivalent"),
        (0.0, 2, 0, "inconclusive"),
        (0.0, 0, 2, "inconclusive"),
    ],
)
def test_no_verdict_favours_the_method_that_diverged_more_often(
    compared: Callable[..., Comparison], results: Results, shift: float, a_lost: int, b_lost: int, verdict: str
) -> None:
    a: Values = [*(BASE + shift + 0.01 * D), *["diverged"] * a_lost, *[0.0] * b_lost]
    b: Values = [*BASE, *[0.0] * a_lost, *["diverged"] * b_lost]
    (row,) = compared(a, b).rows
    assert (row.verdict, row.more_failures) == (verdict, a_lost - b_lost)
    favoured = [message for message in row.messages if "no verdict favours it" in message]
    loser = "A diverged or became infinite in 2 more than B" if a_lost > b_lost else "B diverged"
    assert len(favoured) == (verdict == "inconclusive")
    assert all(loser in message for message in favoured)
    frame, cells = results({("d", "a"): a, ("d", "b"): b})
    (table,) = compare_all_pairs(frame, [RMSE], cells=cells)
    found = table.better(table.p, 0.05)
    assert found[0, 1] == -found[1, 0] == {"better": 1.0, "worse": -1.0}.get(verdict, 0.0)


@pytest.mark.parametrize(("lost", "verdict"), [(0, "better"), (1, "inconclusive"), (9, "inconclusive")])
def test_nor_does_one_over_datasets(results: Results, lost: int, verdict: str) -> None:
    """A is better on eight datasets; on the first it diverged once, or so often that no pair is left to be tested."""
    values: dict[tuple[str, str], Values] = {}
    for n in range(8):
        values[f"d{n}", "a"] = [
            *["diverged"] * (lost if n == 0 else 0),
            *(BASE - 1.0 + 0.1 * D)[lost if n == 0 else 0 :],
        ]
        values[f"d{n}", "b"] = list(BASE)
    frame, cells = results(values)
    (across,) = compare(frame, "a", "b", [RMSE], cells=cells).across
    assert (across.verdict, across.more_failures) == (verdict, lost)
    assert any("no verdict favours it" in message for message in across.messages) == bool(lost)
