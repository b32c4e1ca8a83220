"""A gate that looks several times: what it measures, what it settles, and its error rate."""

from collections.abc import Collection

import numpy as np
import pytest
import scipy.stats

from bench.gate.decide import gate
from bench.gate.environment_diff import differences, same_machine
from bench.gate.output import gate_lines
from bench.gate.values import Measured, Place
from bench.gate.verdicts import Rules
from tests.fixtures.gate import ENVIRONMENT, baseline, measured, spread

SAME, NOISY, WORSE = ("toy", "same"), ("toy", "noisy"), ("wine", "worse")


class Measure:
    """Gives what there is, and remembers what was asked."""

    def __init__(self, all_: Measured) -> None:
        self.all_ = all_
        self.asked: list[tuple[int, set[Place] | None]] = []

    def __call__(self, seeds: int, places: Collection[Place] | None) -> Measured:
        self.asked.append((seeds, None if places is None else set(places)))
        return self.all_.first(seeds)


def test_more_seeds_are_measured_only_where_a_question_is_open() -> None:
    generator = np.random.default_rng(0)
    before = {place: {"rmse": generator.normal(1.0, 0.1, 20)} for place in (SAME, NOISY, WORSE)}
    after = {
        SAME: before[SAME],
        NOISY: {"rmse": generator.normal(1.0, 0.1, 20)},
        WORSE: {"rmse": before[WORSE]["rmse"] + generator.normal(0.5, 0.01, 20)},
    }
    measure = Measure(measured(after))
    made = gate(baseline(measured(before)), measure, Rules(), looks=(3, 6, 12, 20))
    assert measure.asked == [(3, None), (6, {NOISY, WORSE}), (12, {NOISY}), (20, {NOISY})]
    verdicts = {row.place: (row.verdict, row.pairs) for row in made.rows}
    assert verdicts == {SAME: ("identical", 3), WORSE: ("regressed", 6), NOISY: ("inconclusive", 20)}


def test_an_unchanged_suite_is_settled_at_the_first_look() -> None:
    values = {place: {"rmse": spread(1.0, 0.1)} for place in (SAME, NOISY)}
    measure = Measure(measured(values))
    made = gate(baseline(measured(values)), measure, Rules(), looks=(3, 6, 10))
    assert measure.asked == [(3, None)]
    assert made.identical
    assert made.values == 6


def test_only_a_baseline_of_few_seeds_is_judged_by_its_range() -> None:
    """A first look at three seeds goes on: what they show may be gone at ten."""
    before = spread(1.0, 0.1)
    after = before + np.where(np.arange(10) < 3, 5.0, np.where(np.arange(10) < 6, -5.0, 0.0))
    few = gate(
        baseline(measured({NOISY: {"rmse": before[:4]}})),
        Measure(measured({NOISY: {"rmse": before[:4] + 5.0}})),
        Rules(),
    )
    assert [row.verdict for row in few.rows] == ["regressed"]
    measure = Measure(measured({NOISY: {"rmse": after}}))
    many = gate(baseline(measured({NOISY: {"rmse": before}})), measure, Rules(), looks=(3, 6, 10))
    assert [row.verdict for row in many.rows] == ["inconclusive"]
    assert len(measure.asked) == 3


@pytest.mark.parametrize("looks", [(), (3, 6, 10)])
def test_seeds_that_were_infinite_before_leave_few_and_these_are_judged_by_their_range(looks: tuple[int, ...]) -> None:
    """Ten seeds of which four are finite: a change a hundred times their range was inconclusive, and passed."""
    before = np.array([1.0, np.inf, 1.1, np.inf, np.inf, np.inf, 1.2, np.inf, 1.05, np.inf])
    for change, verdict in ((20.0, "regressed"), (0.1, "inconclusive")):
        made = gate(
            baseline(measured({NOISY: {"nll": before}})),
            Measure(measured({NOISY: {"nll": before + change}})),
            Rules(),
            looks=looks,
        )
        assert [(row.verdict, row.pairs) for row in made.rows] == [(verdict, 4)]


def test_every_look_has_its_part_of_the_level_and_one_without_tests_has_none() -> None:
    """Looks at 5 and 10 seeds have half of the level each; one at 3 seeds, too few for a test, has none of it."""
    generator = np.random.default_rng(4)
    before = generator.normal(1.0, 0.1, 10)
    after = before + generator.normal(0.1, 0.1, 10)
    margin = 0.005 * before[:5].mean()
    p = scipy.stats.ttest_1samp((after - before)[:5], margin, alternative="greater").pvalue
    for alpha, looks in ((p / 0.75, 2), (p / 0.45, 1)):
        measure = Measure(measured({NOISY: {"rmse": after}}))
        gate(baseline(measured({NOISY: {"rmse": before}})), measure, Rules(alpha=alpha), looks=(5, 10))
        assert len(measure.asked) == looks
    p = scipy.stats.ttest_1samp(after - before, 0.005 * before.mean(), alternative="greater").pvalue
    measure = Measure(measured({NOISY: {"rmse": after}}))
    made = gate(baseline(measured({NOISY: {"rmse": before}})), measure, Rules(alpha=p / 0.9), looks=(3, 10))
    assert [row.verdict for row in made.rows] == ["regressed"]


@pytest.mark.slow
def test_looking_often_keeps_the_level() -> None:
    """The same studies tested at every look without spending would fail more often than the level says."""
    generator = np.random.default_rng(1)
    names = ("rmse", "mae", "crps")
    alarms = 0
    for _ in range(150):
        before, after = ({NOISY: {name: generator.normal(1.0, 0.1, 20) for name in names}} for _ in range(2))
        made = gate(baseline(measured(before)), Measure(measured(after)), Rules(alpha=0.2), looks=(5, 10, 15, 20))
        alarms += bool(made.failing())
    assert 0 < alarms <= 41  # 20 % are 30; above 41 it is 1 % likely


@pytest.mark.parametrize(("now", "verdict"), [(9.0, "not compared"), (np.inf, "regressed"), (np.nan, "missing")])
def test_times_of_another_machine_are_not_compared_but_must_be_there(now: float, verdict: str) -> None:
    then = measured({NOISY: {"latency_total@T=10": np.ones(10)}})
    elsewhere = {**ENVIRONMENT, "cpu": "Other CPU"}
    values = np.where(np.arange(10) == 3, now, 1.0)
    made = gate(
        baseline(then), Measure(measured({NOISY: {"latency_total@T=10": values}}, environment=elsewhere)), Rules()
    )
    assert [row.verdict for row in made.rows] == [verdict]


@pytest.mark.parametrize(("fact", "same"), [("cpu", False), ("threads", False), ("torch", True), ("pandas", True)])
def test_times_need_the_same_machine(fact: str, same: bool) -> None:
    assert same_machine(ENVIRONMENT, {**ENVIRONMENT, fact: "other"}) is same


def test_what_differs_is_told_and_what_makes_no_numbers_is_not() -> None:
    assert differences(ENVIRONMENT, {**ENVIRONMENT, "torch": "3.0", "seaborn": "9"}) == [
        "torch: 2.13.0 in the baseline, now 3.0"
    ]


def test_a_changed_plug_in_is_named() -> None:
    values = {SAME: {"rmse": spread(1.0, 0.1)}}
    before = {"method mine": "aaaa", "metric bias": "cccc", "dataset old": "eeee"}
    after = {"method mine": "bbbb", "metric bias": "cccc", "dataset new": "package foo 1.0"}
    made = gate(baseline(measured(values, plugins=before)), Measure(measured(values, plugins=after)), Rules())
    assert made.plugins == (
        "dataset new: not in the baseline, now package foo 1.0",
        "dataset old: eeee in the baseline, not used now",
        "method mine changed: aaaa in the baseline, now bbbb",
    )
    assert "plug-in: method mine changed: aaaa in the baseline, now bbbb" in list(gate_lines(made))
    unrecorded = gate(baseline(measured(values)), Measure(measured(values, plugins={"method mine": "bbbb"})), Rules())
    assert unrecorded.plugins == ("method mine: not recorded in the baseline, now bbbb",)
