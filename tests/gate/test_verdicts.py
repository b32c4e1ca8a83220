"""Verdicts on numbers whose truth is known."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from bench.gate.verdicts import MetricComparison, Rules, Verdict, compare, decide
from bench.metrics import catalogue
from bench.metrics.margins import read_margins
from bench.stats.tests import Array
from tests.fixtures.gate import measured, spread

PLACE = ("toy", "m")


def judged(metric: str, before: Array, after: Array, rules: Rules = Rules()) -> MetricComparison:  # noqa: B008
    (row,) = decided({metric: before}, {metric: after}, rules)
    return row


def decided(before: dict[str, Array], after: dict[str, Array], rules: Rules = Rules()) -> list[MetricComparison]:  # noqa: B008
    rows = compare(measured({PLACE: before}), measured({PLACE: after}), rules)
    return decide(rows, rules.alpha, rules.equivalence_alpha)


@pytest.mark.parametrize(
    ("metric", "change", "verdict"),
    [
        ("rmse", 1.0, "regressed"),
        ("rmse", -1.0, "improved"),
        ("accuracy", 0.1, "improved"),
        ("accuracy", -0.1, "regressed"),
        ("nll", 0.5, "regressed"),
        ("nll", -0.5, "improved"),
    ],
)
def test_the_declared_direction_decides(metric: str, change: float, verdict: Verdict) -> None:
    before = spread(0.5, 0.05)
    row = judged(metric, before, before + change * (1 + 0.1 * spread(0, 1)))
    assert row.verdict == verdict
    assert row.difference == pytest.approx(change)
    assert row.pairs == 10


def test_a_signed_metric_may_cross_zero() -> None:
    before = spread(0.001, 0.3)
    assert judged("nll", before, before + 0.001 * spread(1, 0.1)).verdict == "equivalent"
    assert judged("nll", before, before + 0.1 * spread(1, 0.1)).verdict == "regressed"


def test_a_metric_with_a_target_is_judged_by_its_distance() -> None:
    before = spread(0.90, 0.002)
    assert judged("picp", before, before + 0.05 * spread(1, 0.1)).verdict == "improved"
    assert judged("picp", before, before - 0.05 * spread(1, 0.1)).verdict == "regressed"
    over = np.full(10, 0.9973) + 0.05 * spread(1, 0.1)
    assert judged("picp", np.full(10, 0.9973), over).verdict == "regressed"


def test_equal_bits_are_identical_and_need_no_pairs() -> None:
    before = spread(1.0, 0.1, seeds=3)
    row = judged("rmse", before, before.copy())
    assert (row.verdict, row.pairs) == ("identical", 3)
    assert math.isnan(row.p_worse)
    assert judged("rmse", spread(1.0, 0.1), np.nextafter(spread(1.0, 0.1), 2.0)).verdict == "equivalent"


def test_few_pairs_are_inconclusive_however_large_the_change() -> None:
    before = spread(1.0, 0.1, seeds=4)
    row = judged("rmse", before, before + 5)
    assert row.verdict == "inconclusive"
    assert "at least 5 are needed" in row.note


def test_noise_is_inconclusive_and_says_what_it_could_have_seen() -> None:
    before, after = np.random.default_rng(3).normal(1, 0.2, (2, 10))
    row = judged("rmse", before, after)
    assert row.verdict == "inconclusive"
    assert "10 pairs would have shown 0." in row.note
    wider = judged("rmse", before, after, Rules(margins=read_margins({"rmse": row.margin + 0.1}, catalogue(), "")))
    seen = [float(one.note.removeprefix("10 pairs would have shown ").split()[0]) for one in (row, wider)]
    assert seen[1] - seen[0] == pytest.approx(0.1, abs=0.002)  # a change is detected beyond the margin


def test_the_same_change_in_every_pair_is_no_noise() -> None:
    before = spread(1.0, 0.1)
    assert judged("rmse", before, before + 0.5).verdict == "regressed"
    assert judged("rmse", before, before - 0.5).verdict == "improved"
    within = judged("rmse", before, before + 0.004)  # the margin is 0.005
    assert (within.verdict, within.p_worse) == ("equivalent", 1.0)


def test_a_real_change_within_the_margin_is_equivalent() -> None:
    before = spread(1.0, 0.1)
    after = before + 0.01 * spread(1, 0.05)
    rules = Rules(margins=read_margins({"rmse": 0.05}, catalogue(), ""))
    row = judged("rmse", before, after, rules)
    assert (row.verdict, row.note) == ("equivalent", "worse, within the margin")
    assert judged("rmse", before, after).verdict == "regressed"  # 0.5 % is the default


def test_a_real_change_as_large_as_the_margin_is_said_to_be_perhaps_within_it() -> None:
    before = spread(1.0, 0.1)
    row = judged("rmse", before, before + 0.005 * spread(1, 0.1))
    assert (row.verdict, row.note) == ("inconclusive", "worse, but perhaps within the margin 0.005")


def test_p_values_are_scipys_and_corrected_by_holm() -> None:
    generator = np.random.default_rng(1)
    before = {name: generator.normal(1, 0.1, 10) for name in ("crps", "mae", "rmse")}
    after = {name: row + generator.normal(0.05, 0.1, 10) for name, row in before.items()}
    rows = decided(before, after)
    moved = {name: after[name] - before[name] for name in before}
    p = [scipy.stats.ttest_1samp(moved[r.metric], r.margin, alternative="greater").pvalue for r in rows]
    assert rows[-1].margin == pytest.approx(0.005 * before["rmse"].mean())
    assert [row.p_worse for row in rows] == pytest.approx(p)
    assert min(row.p_worse_adjusted for row in rows) == pytest.approx(3 * min(p))
    for row in rows:
        below = scipy.stats.ttest_1samp(moved[row.metric], row.margin, alternative="less").pvalue
        above = scipy.stats.ttest_1samp(moved[row.metric], -row.margin, alternative="greater").pvalue
        assert row.p_equivalent == pytest.approx(max(below, above))


@pytest.mark.parametrize(("settled", "verdict"), [("equivalent", "inconclusive"), ("regressed", "regressed")])
def test_what_was_settled_at_an_earlier_look_stays_in_the_family(settled: Verdict, verdict: Verdict) -> None:
    """Holm's factor is 2 beside a hypothesis that was not rejected, 1 beside one that was."""
    generator = np.random.default_rng(2)
    before = generator.normal(1, 0.1, 10)
    (row,) = compare(
        measured({PLACE: {"rmse": before}}),
        measured({PLACE: {"rmse": before + generator.normal(0.1, 0.1, 10)}}),
        Rules(),
    )
    alpha, earlier = 1.5 * row.p_worse, replace(row, metric="mae", verdict=settled)
    assert [one.verdict for one in decide([row], alpha, 0.05)] == ["regressed"]
    assert [one.verdict for one in decide([row], alpha, 0.05, [earlier])] == [verdict]


def test_what_is_identical_does_not_weaken_the_others() -> None:
    before = {name: spread(1.0, 0.1) for name in ("rmse", "mae", "crps", "nll")}
    after = {**before, "rmse": before["rmse"] + 0.3 * spread(1, 0.5)}
    rows = {row.metric: row for row in decided(before, after)}
    assert rows["rmse"].p_worse_adjusted == rows["rmse"].p_worse
    assert rows["mae"].verdict == "identical"


def test_missing_and_new_things_are_named() -> None:
    then = measured({PLACE: {"rmse": spread(1, 0.1), "mae": spread(1, 0.1)}, ("toy", "gone"): {"rmse": spread(1, 0.1)}})
    now = measured(
        {PLACE: {"rmse": spread(1, 0.1), "crps": spread(1, 0.1)}, ("toy", "fresh"): {"rmse": spread(1, 0.1)}}
    )
    found = {(row.method, row.metric): row.verdict for row in compare(then, now, Rules())}
    assert found == {
        ("gone", "runs"): "missing",
        ("m", "mae"): "missing",
        ("m", "rmse"): "identical",
        ("m", "crps"): "new",
        ("fresh", "all metrics"): "new",
    }


def test_why_something_is_missing_is_told() -> None:
    then = measured({PLACE: {"rmse": spread(1, 0.1)}, ("wine", "m"): {"rmse": spread(1, 0.1)}})
    now = measured({PLACE: {"rmse": spread(1, 0.1)}}, remarks={("wine", ""): "could not run: no file"})
    rows = [row for row in compare(then, now, Rules()) if row.verdict == "missing"]
    assert [(row.dataset, row.note) for row in rows] == [("wine", "could not run: no file")]


@pytest.mark.parametrize(
    ("about", "note"),
    [
        ({"remarks": {("wine", "m"): "could not run: needs classes"}}, "could not run: needs classes"),
        (
            {"lost": {("wine", "m"): {"diverged": (0, 1, 2), "failed": (3,)}}},
            "3 of 10 seeds diverged, 1 of 10 seeds failed",
        ),
        ({}, "not in the suite any more"),
    ],
)
def test_a_method_without_any_value_is_missing_with_the_reason(about: dict[str, object], note: str) -> None:
    then = measured({PLACE: {"rmse": spread(1, 0.1)}, ("wine", "m"): {"rmse": spread(1, 0.1)}})
    rows = compare(then, measured({PLACE: {"rmse": spread(1, 0.1)}}, **about), Rules())
    assert [(row.dataset, row.note) for row in rows if row.verdict == "missing"] == [("wine", note)]


def test_a_metric_that_is_not_declared_any_more_is_missing() -> None:
    row = judged("no_such_metric", spread(1, 0.1), spread(1, 0.1))
    assert (row.verdict, row.note) == ("missing", "no metric of this name is declared any more")


@given(st.integers(0, 10_000), st.floats(0.01, 3.0), st.sampled_from(["rmse", "accuracy", "nll", "picp"]))
def test_exchanging_the_sides_exchanges_the_verdicts(seed: int, shift: float, metric: str) -> None:
    generator = np.random.default_rng(seed)
    before, after = generator.normal(0.5, 0.1, 10), generator.normal(0.5 + 0.1 * shift, 0.05, 10)
    rules = Rules(margins=read_margins({metric: 0.01}, catalogue(), ""))
    mirror = {"regressed": "improved", "improved": "regressed"}
    there, back = judged(metric, before, after, rules), judged(metric, after, before, rules)
    assert back.verdict == mirror.get(there.verdict, there.verdict)
    assert back.difference == pytest.approx(-there.difference)


def test_other_seeds_without_a_change_raise_no_alarm_beyond_the_level() -> None:
    """Pairs that nothing ties: 120 gates of 10 comparisons each."""
    generator = np.random.default_rng(0)
    names = [name for name, metric in catalogue().items() if metric.direction == "lower" and not metric.signed][:10]
    rules = Rules(alpha=0.2)
    alarms = 0
    for _ in range(120):
        before, after = ({name: generator.gamma(20, 0.05, 10) for name in names} for _ in range(2))
        alarms += any(row.verdict == "regressed" for row in decided(before, after, rules))
    assert 0 < alarms <= 35  # 20 % are 24; above 35 it is 1 % likely


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_a_true_change_up_to_the_margin_is_regressed_no_more_often_than_the_level(share: float) -> None:
    generator = np.random.default_rng(int(10 * share))
    rules = Rules(alpha=0.05, margins=read_margins({"rmse": 0.02}, catalogue(), ""))
    called = 0
    for _ in range(400):
        before = generator.normal(1, 0.1, 10)
        called += (
            judged("rmse", before, before + generator.normal(0.02 * share, 0.01, 10), rules).verdict == "regressed"
        )
    assert called <= 32  # 5 % are 20; above 32 it is 0.5 % likely


@pytest.mark.parametrize("seeds", [1, 3, 10])
@pytest.mark.parametrize(
    ("value", "verdict"), [(math.inf, "regressed"), (-math.inf, "regressed"), (math.nan, "missing")]
)
def test_a_value_that_is_no_number_any_more_fails(seeds: int, value: float, verdict: Verdict) -> None:
    before = spread(1.0, 0.1)
    after = before.copy()
    after[:seeds] = value
    row = judged("rmse", before, after)
    assert row.verdict == verdict
    assert f"at {seeds} of 10 seeds where the baseline" in row.note


def test_infinite_values_hide_no_missing_ones() -> None:
    before = spread(1.0, 0.1)
    row = judged("rmse", before, np.array([math.inf, math.nan, math.nan, *before[3:]]))
    assert row.verdict == "regressed"
    assert row.note.startswith("infinite at 1 of 10 seeds where the baseline is finite, and 2 have none; ")


def test_what_was_infinite_before_may_stay_so() -> None:
    before = spread(1.0, 0.1)
    before[3] = math.inf
    assert judged("nll", before, before.copy()).verdict == "identical"
    moved = before + 1e-6 * spread(1, 0.1)
    assert judged("nll", before, moved).verdict == "equivalent"
    assert judged("nll", before, np.where(np.isinf(before), 1.0, moved)).verdict == "equivalent"


def test_one_seed_that_is_far_worse_is_named() -> None:
    before = spread(1.0, 0.1)
    after = before + 0.001 * spread(0, 1)
    after[6] = 100.0
    row = judged("rmse", before, after)
    assert row.verdict == "regressed"
    assert "1 outlier among 10 seeds (number 6): worse by up to 98.9, " in row.note
    better = judged("rmse", after, before)
    assert better.verdict != "regressed"


@pytest.mark.parametrize(
    ("change", "others", "margin", "outlier"),
    [
        (3.1, 0.0, 0.01, True),  # the range of the baseline is 1
        (2.9, 0.0, 0.01, False),
        (3.1, 0.0, 3.5, False),
        (3.1, 0.3, 0.01, True),
        (3.1, 0.32, 0.01, False),  # a change of all seeds, which a test judges
        (100.0, 5.0, 0.01, True),  # others may improve by much
    ],
)
def test_an_outlier_is_beyond_margin_range_and_the_change_of_the_others(
    change: float, others: float, margin: float, outlier: bool
) -> None:
    before = np.array([math.inf, *np.linspace(1.0, 2.0, 10)])
    after = before.copy()
    after[6] += change
    after[3] -= others
    row = judged("rmse", before, after, Rules(margins=read_margins({"rmse": margin}, catalogue(), "")))
    assert (row.verdict == "regressed", "1 outlier among 10 seeds (number 6)" in row.note) == (outlier, outlier)


@pytest.mark.parametrize(("change", "verdict"), [(2.0, "regressed"), (0.2, "inconclusive"), (-2.0, "inconclusive")])
def test_too_few_seeds_for_a_test_are_judged_by_the_range_of_the_baseline(change: float, verdict: Verdict) -> None:
    before = np.array([1.0, 1.1, 1.2, 1.05])
    row = judged("rmse", before, before + change, Rules(last_look=True))
    assert row.verdict == verdict
    assert "4 pairs: too few for a test" in row.note
    assert judged("rmse", before, before + change).verdict == "inconclusive"  # a first look goes on instead


def test_few_seeds_regress_beyond_the_margin_only_and_two_never() -> None:
    same = np.ones(4)  # a range of 0: any change is beyond three of them
    assert judged("rmse", same, same + 0.004, Rules(last_look=True)).verdict == "inconclusive"
    assert judged("rmse", same, same + 0.006, Rules(last_look=True)).verdict == "regressed"
    assert judged("rmse", same[:3], same[:3] + 5.0, Rules(last_look=True)).verdict == "regressed"
    assert judged("rmse", same[:2], same[:2] + 5.0, Rules(last_look=True)).verdict == "inconclusive"


def test_the_range_of_few_seeds_is_that_of_distances_to_a_target() -> None:
    """Values on both sides of PICP's target 0.9973, all equally far from it."""
    before = np.array([0.9946, 1.0, 0.9946, 1.0])
    row = judged("picp", before, np.full(4, 0.9840), Rules(last_look=True))
    assert row.margin < row.worse_by < 3 * np.ptp(before)
    assert row.verdict == "regressed"
