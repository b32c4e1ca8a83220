"""Verdicts and guardrails of a comparison: every unusual input has a defined answer and a message."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.errors import UserError
from bench.stats import (
    DatasetComparison,
    Margin,
    Measure,
    Settings,
    compare,
    compare_each,
    detectable_difference,
    holm,
    pairs_needed,
    t_test,
)
from bench.stats.tests import Array
from bench.stats.text import comparison_lines

Results = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]
RMSE = Measure("rmse")


def noise(size: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=size)


@pytest.fixture
def one(results: Results) -> Callable[..., DatasetComparison]:
    """Compare two lists of numbers on one dataset."""

    def call(
        a: Array | list[float | str | None],
        b: Array | list[float | str | None],
        measure: Measure = RMSE,
        settings: Settings = Settings(),
        *,
        same_rows: bool = True,
    ) -> DatasetComparison:
        frame, cells = results({("d", "a"): list(a), ("d", "b"): list(b)}, measure.name, same_rows=same_rows)
        (row,) = compare(frame, "a", "b", [measure], cells=cells, settings=settings).rows
        return row

    return call


def test_every_verdict(one: Callable[..., DatasetComparison]) -> None:
    base = noise(20)
    assert one(base - 1.0 + 0.1 * noise(20, 1), base).verdict == "better"
    assert one(base + 1.0 + 0.1 * noise(20, 1), base).verdict == "worse"
    assert one(base + 0.01 * noise(20, 1), base).verdict == "equivalent"
    assert one(noise(7, 1), noise(7, 2)).verdict == "inconclusive"


def test_the_direction_is_the_metrics(one: Callable[..., DatasetComparison]) -> None:
    low, high = 0.90 + 0.001 * noise(10), 0.96 + 0.001 * noise(10, 1)
    assert one(low, high, Measure("loss", "lower")).verdict == "better"
    assert one(low, high, Measure("accuracy", "higher")).verdict == "worse"
    assert one(low, high, Measure("coverage", "target", 0.90)).verdict == "better"
    assert one(low, high, Measure("coverage", "target", 0.95)).verdict == "worse"
    higher = one(low, high, Measure("accuracy", "higher"))
    assert higher.difference == pytest.approx(-0.06, abs=0.002)  # A - B in the metric's own unit
    assert higher.interval is not None
    assert higher.interval.low < higher.difference < higher.interval.high < 0.0
    assert higher.better_probability == 0.0


def test_signed_metrics_are_compared_by_difference(one: Callable[..., DatasetComparison]) -> None:
    """A shift of both methods, even across zero, changes nothing."""
    a, b = noise(8), noise(8, 1)
    here, there = one(a - 3.0, b - 3.0), one(a + 100.0, b + 100.0)
    assert (here.p, here.difference, here.margin) == pytest.approx((there.p, there.difference, there.margin))


def test_the_numbers_of_a_row(one: Callable[..., DatasetComparison]) -> None:
    a, b = noise(12), noise(12, 1) + 0.5
    row = one(a, b)
    assert row.p == pytest.approx(scipy.stats.ttest_rel(a, b).pvalue)
    assert row.decided_by == "paired t"
    assert (row.mean_a, row.mean_b, row.difference) == pytest.approx((a.mean(), b.mean(), (a - b).mean()))
    assert row.wilcoxon_p == pytest.approx(scipy.stats.wilcoxon(a, b).pvalue)
    assert row.margin == pytest.approx(0.5 * math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2))
    assert row.pairs_for_margin == pairs_needed(row.margin, float((a - b).std(ddof=1)), estimated_from=12)
    assert row.detectable > 0.0
    for inner in (row.bootstrap_interval, row.t_interval):
        assert inner is not None
        assert row.interval is not None
        assert row.interval.low <= inner.low < inner.high <= row.interval.high


def test_different_splits_get_the_corrected_test(one: Callable[..., DatasetComparison]) -> None:
    a, b = noise(10), noise(10, 1)
    row = one(a, b, same_rows=False)
    assert (row.test_share, row.decided_by) == (0.1, "corrected resampled t")
    assert row.p == pytest.approx(float(t_test(a - b, 0.1)))
    assert math.isnan(row.permutation_p)
    independent = one(a, b, settings=Settings(test_share=0.0), same_rows=False)
    assert independent.p == pytest.approx(scipy.stats.ttest_rel(a, b).pvalue)
    assert independent.p < row.p


def test_without_cells_different_split_numbers_are_overlapping_splits(results: Results) -> None:
    frame, _ = results({("d", "a"): list(noise(6)), ("d", "b"): list(noise(6, 1))}, same_rows=False)
    assert compare(frame, "a", "b", [RMSE]).rows[0].test_share == 0.1


def test_too_few_pairs(one: Callable[..., DatasetComparison]) -> None:
    row = one([1.0, 1.1, 1.2, 1.3], [5.0, 5.1, 5.3, 5.2])
    assert row.verdict == "inconclusive"
    assert math.isnan(row.p)
    assert row.messages == ("4 pairs: too few for a verdict, at least 5 are needed",)


def test_five_pairs_are_told_what_a_permutation_test_can_say(one: Callable[..., DatasetComparison]) -> None:
    row = one(noise(5), noise(5, 1) + 9.0)
    assert row.permutation_p == 0.0625
    assert "5 pairs: no permutation p below 0.0625; use at least 6" in row.messages
    assert not one(noise(6), noise(6, 1)).messages


def test_all_ties_are_equivalent(one: Callable[..., DatasetComparison]) -> None:
    row = one(noise(6), noise(6))
    assert (row.verdict, row.p, row.difference) == ("equivalent", 1.0, 0.0)
    assert "all 6 pairs are equal" in row.messages


@pytest.mark.parametrize(("pairs", "verdict"), [(5, "inconclusive"), (8, "worse")])
def test_the_same_difference_in_every_pair(pairs: int, verdict: str, one: Callable[..., DatasetComparison]) -> None:
    """No variance, so no t: the sign pattern decides, and five signs are not enough."""
    row = one(np.full(pairs, 1.5), np.full(pairs, 1.0))
    assert (row.verdict, row.decided_by, row.p) == (verdict, "permutation test", 2.0 ** (1 - pairs))
    assert "no variance" in row.messages[0]
    assert (row.detectable, row.pairs_for_margin) == (math.inf if pairs == 5 else 0.0, 6)


def test_lost_cells_are_counted_and_said_to_flatter(one: Callable[..., DatasetComparison]) -> None:
    a = [*noise(6), "diverged", None, 1.0, math.inf]
    b = [*noise(6, 1), 1.0, 1.0, "failed", 1.0]
    row = one(a, b)
    assert row.pairs == 6
    assert str({lost.method: lost for lost in row.lost}["a"]) == "a: 1 diverged, 1 not run, 1 not finite"
    told = " | ".join(row.messages)
    assert "b: 1 failed" in told
    assert "4 of 10 repeats are missing for some method and were left out (paired deletion)" in told
    assert "which favours a" in told


def test_unequal_seeds_are_paired_and_said(one: Callable[..., DatasetComparison]) -> None:
    a, b = noise(9), noise(6, 1)
    row = one(a, b)
    assert row.pairs == 6
    assert row.mean_a == pytest.approx(a[:6].mean())
    assert "3 of 9 repeats are missing for some method and were left out (paired deletion)" in row.messages


def test_no_pair_at_all(one: Callable[..., DatasetComparison]) -> None:
    row = one([1.0] * 5, ["diverged"] * 5)
    assert (row.pairs, row.verdict) == (0, "inconclusive")
    assert row.messages[0] == "b: 5 diverged"


def test_the_family_is_all_tests_of_the_call(results: Results) -> None:
    values = {("d1", "a"): noise(8), ("d1", "b"): noise(8, 1) + 2, ("d2", "a"): noise(8, 2), ("d2", "b"): noise(8, 3)}
    frame, cells = results(values)
    frame = pd.concat([frame, frame.assign(metric="mae", value=frame["value"] ** 3)])
    found = compare(frame, "a", "b", [RMSE, Measure("mae")], cells=cells)
    assert found.family == "Holm over 4 tests (2 datasets, 2 metrics)"
    smallest = min(found.rows, key=lambda row: row.p)
    assert smallest.p_adjusted == pytest.approx(4 * smallest.p)
    other = compare(frame, "a", "b", [RMSE, Measure("mae")], cells=cells, settings=Settings(correction="bh"))
    assert other.family.startswith("Benjamini-Hochberg over 4")


def test_over_datasets(results: Results) -> None:
    values = {}
    for n in range(8):
        base = noise(6, n)
        values[f"d{n}", "b"] = base
        values[f"d{n}", "a"] = base - 0.5 - 0.1 * n + 0.05 * noise(6, 100 + n)
    (across,) = compare(*_split(results(values))).across
    assert (across.verdict, across.datasets, across.better) == ("better", 8, 8)
    assert across.p == pytest.approx(2 / 2**8)
    assert across.posterior.below > 0.95
    assert across.improvement.value > 0.5
    assert not across.standardised
    scaled = {place: list(1000.0 ** (place[0] == "d3") * np.asarray(v)) for place, v in values.items()}
    (across,) = compare(*_split(results(scaled))).across
    assert across.standardised
    assert "scales differ more than 10 times" in across.messages[0]
    assert across.verdict == "better"


def test_three_datasets_could_have_seen_nothing(results: Results) -> None:
    values = {(f"d{n}", m): noise(6, n) + (m == "b") for n in range(3) for m in ("a", "b")}
    values = {place: v + 0.01 * noise(6, 50 + i) for i, (place, v) in enumerate(values.items())}
    (across,) = compare(*_split(results(values))).across
    assert across.verdict == "inconclusive"
    assert math.isinf(across.detectable)
    assert "a verdict needs at least 6" in across.messages[0]


def _split(made: tuple[pd.DataFrame, pd.DataFrame]) -> tuple[pd.DataFrame, str, str, list[Measure]]:
    return made[0], "a", "b", [RMSE]


def test_mistakes_are_told(results: Results) -> None:
    frame, cells = results({("d", "one"): noise(5), ("d", "two"): noise(5, 1)})
    with pytest.raises(UserError, match=r"unknown method 'tow'; did you mean two\?"):
        compare(frame, "one", "tow", [RMSE], cells=cells)
    with pytest.raises(UserError, match="one is compared with itself"):
        compare(frame, "one", "one", [RMSE])
    with pytest.raises(UserError, match="no results in common by nll"):
        compare(frame, "one", "two", [Measure("nll")])
    with pytest.raises(UserError, match="several values of one dataset"):
        compare(pd.concat([frame, frame]), "one", "two", [RMSE])


@pytest.mark.parametrize(("text", "margin"), [("0.5sd", Margin(0.5, True)), ("0.01", Margin(0.01, False))])
def test_margins_are_read(text: str, margin: Margin) -> None:
    assert Margin.read(text) == margin


@pytest.mark.parametrize("text", ["sd", "-1", "0", "nan", "1 %"])
def test_a_margin_that_is_none(text: str) -> None:
    with pytest.raises(UserError, match="expected a number"):
        Margin.read(text)


def test_an_absolute_margin_is_in_the_metrics_unit(one: Callable[..., DatasetComparison]) -> None:
    settings = replace(Settings(), margin=Margin(0.25, relative=False))
    assert one(100 * noise(8), 100 * noise(8, 1), settings=settings).margin == 0.25


def test_the_same_seed_gives_the_same_numbers(one: Callable[..., DatasetComparison]) -> None:
    assert one(noise(20), noise(20, 1)) == one(noise(20), noise(20, 1))


def test_skew_outliers_and_failures_are_told_beside_the_verdict(one: Callable[..., DatasetComparison]) -> None:
    base, d = noise(20), 0.1 * noise(20, 1) - 0.05
    d[:2] = 50.0, 60.0
    row = one(base + d, base)
    assert row.verdict == "inconclusive"
    (note,) = (message for message in row.messages if "sign test" in message)
    p = scipy.stats.binomtest(int((d < 0).sum()), 20).pvalue
    assert row.sign_p == row.sign_p_adjusted == pytest.approx(p)
    assert f"p = {p:.3g}" in note
    assert "2 of 20 differences are outliers" in note
    assert "skewed" in note
    assert f"A is better in {100 * (d < 0).mean():.0f} % of the pairs" in note
    overlapping = one(base + d, base, same_rows=False)
    assert math.isnan(overlapping.sign_p)
    assert any("no sign test" in message for message in overlapping.messages)
    assert not any("may not hold" in message for message in one(base + 0.1 * noise(20, 1), base).messages)
    lost = one([*(base[:19] + 0.1 * noise(19, 1)), "diverged"], base)
    assert any(message.startswith("1 run diverged or became infinite: not in the mean") for message in lost.messages)
    broken = one([*(base[:19] + 0.1 * noise(19, 1)), "failed"], base)
    assert any(message.startswith("1 run failed with an error: not among the pairs") for message in broken.messages)


def test_sign_tests_are_corrected_for_the_family_too(results: Results) -> None:
    base = noise(10)
    d = np.r_[-np.linspace(0.1, 0.2, 9), 30.0]
    values = {(name, method): base + shift for name in "xyz" for method, shift in (("a", d), ("b", 0.0))}
    frame, cells = results({place: list(numbers) for place, numbers in values.items()}, "rmse", same_rows=True)
    found = compare(frame, "a", "b", [RMSE], cells=cells).rows
    p = scipy.stats.binomtest(9, 10).pvalue
    assert [row.sign_p_adjusted for row in found] == pytest.approx([3 * p] * 3)


@pytest.mark.parametrize(("same_rows", "margin"), [(True, 1.5), (False, 3.0)])
def test_plans_are_for_the_margin_and_not_for_the_observed_difference(
    results: Results, same_rows: bool, margin: float
) -> None:
    needed = []
    for shift in (0.9, 1.2):
        place = {("d", "a"): list(2 * noise(8) + shift), ("d", "b"): list(2 * noise(8, 1))}
        frame, cells = results(place, "rmse", same_rows=same_rows)
        found = compare(frame, "a", "b", [RMSE], cells=cells, settings=Settings(margin=Margin(margin, relative=False)))
        (row,) = found.rows
        assert row.verdict == "inconclusive"
        text = " ".join(" ".join(comparison_lines(found)).split())
        words = "" if same_rows else " different splits, if the dataset has as many"
        assert f"the margin {margin:g} needs {row.pairs_for_margin}{words}" in text
        assert "observed difference" not in text
        needed.append(row.pairs_for_margin)
    assert needed[0] == needed[1] is not None  # the differences vary alike; how large their mean is plays no part


@pytest.mark.parametrize(("existing", "possible"), [(9, False), (400, True)])
def test_a_plan_ends_at_the_splits_that_exist(results: Results, existing: int, possible: bool) -> None:
    place = {("d", "a"): list(2 * noise(8) + 0.9), ("d", "b"): list(2 * noise(8, 1))}
    frame, cells = results(place, "rmse", same_rows=False, repeats=("splits", 0.05), split_count=existing)
    found = compare(frame, "a", "b", [RMSE], cells=cells, settings=Settings(margin=Margin(2.2, relative=False)))
    (row,) = found.rows
    assert (row.verdict, row.plan_is_possible) == ("inconclusive", possible)
    assert row.pairs_for_margin is not None
    assert (row.pairs_for_margin > existing) is not possible
    d = np.array(place["d", "a"]) - np.array(place["d", "b"])
    reach = detectable_difference(float(d.std(ddof=1)), existing, test_share=0.05, estimated_from=8)
    assert row.detectable_at_most == pytest.approx(reach)
    text = " ".join(" ".join(comparison_lines(found)).split())
    if possible:
        assert f"needs {row.pairs_for_margin} different splits of the {existing} that the dataset has" in text
    else:
        assert f"needs {row.pairs_for_margin} splits; the dataset has {existing}, which can detect {reach:.4g}" in text


def test_seeds_on_one_split_are_as_many_as_are_asked_for(results: Results) -> None:
    place = {("d", "a"): list(2 * noise(8) + 0.9), ("d", "b"): list(2 * noise(8, 1))}
    frame, cells = results(place, "rmse", repeats=("seeds", 0.1), split_count=9)
    (row,) = compare(frame, "a", "b", [RMSE], cells=cells).rows
    assert row.split_count is None
    assert row.plan_is_possible


@pytest.mark.parametrize("difficulty", [0.0, 50.0])
def test_margins_do_not_grow_with_the_difficulty_of_splits(results: Results, difficulty: float) -> None:
    hard, a, b = difficulty * noise(40), noise(40, 1), noise(40, 2)
    values = {("d", "a"): list(hard + a), ("d", "b"): list(hard + b)}
    frame, cells = results(values, same_rows=False, repeats=("splits", 0.1))
    (row,) = compare(frame, "a", "b", [RMSE], cells=cells).rows
    assert row.margin == pytest.approx(0.5 * np.std(a - b, ddof=1) / np.sqrt(2))
    assert row.standardised == pytest.approx(row.difference / (2 * row.margin))


def test_several_methods_against_one_are_one_family(results: Results) -> None:
    methods = ["m0", "m1", "m2"]
    values = {(d, m): list(noise(9, n) + 0.8 * n) for d in ("x", "y") for n, m in enumerate([*methods, "base"])}
    frame, cells = results(values)
    frame = pd.concat([frame, frame.assign(metric="nll")])
    found = compare_each(frame, methods, "base", [RMSE, Measure("nll")], cells=cells)
    rows = [row for one in found for row in one.rows]
    p = [row.p for row in rows]
    assert [row.p_adjusted for row in rows] == pytest.approx(holm(p).tolist())
    assert {one.family for one in found} == {"Holm over 12 tests (3 methods, 2 datasets, 2 metrics)"}
    over = [one for comparison in found for one in comparison.across]
    assert [one.p_adjusted for one in over] == pytest.approx(holm([one.p for one in over]).tolist())
    alone = compare(frame, "m0", "base", [RMSE], cells=cells).rows[0]
    assert alone.interval == rows[0].interval  # intervals are not corrected: they do not depend on the family
    assert alone.detectable < rows[0].detectable  # plans do: a larger family needs a larger difference
