"""Change points of values whose changes are known."""

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.stats

from bench.history.changes import ALPHA, Change, with_changes
from bench.history.points import points
from bench.history.series import Label, Series, Version
from bench.history.view import line_view
from bench.stats import t_interval
from bench.stats.tests import Array
from tests.fixtures.results import noisy


def series(
    values: Array, metric: str = "rmse", machines: int = 1, runs: tuple[tuple[float, ...], ...] | None = None
) -> Series:
    """Return a series of one run per version, unless the means of others are given."""
    versions = tuple(Version(f"c{number}", "", float(number), float(number)) for number in range(len(values)))
    own = tuple((float(mean),) for mean in np.nanmean(values, axis=1)) if runs is None else runs
    return Series(Label("s", "d", "m"), metric, versions, tuple(range(values.shape[1])), values, machines, own)


def changes(values: Array, metric: str = "rmse", machines: int = 1) -> Sequence[Change]:
    (line,) = with_changes([series(values, metric, machines)]).lines
    return line.changes


def test_intervals_of_points_stay_within_the_range_of_the_metric() -> None:
    values = np.array([[0.01, 0.3, 0.02]])
    (latency,), (nll,) = (points(series(values, metric), 0.95) for metric in ("latency_total", "nll"))
    low, high = t_interval(values[0])
    assert low < 0.0
    assert (nll.low, nll.high) == (low, high)
    assert (latency.low, latency.high) == (0.0, high)


def test_changes_are_found_where_they_are() -> None:
    found = changes(noisy([1.0, 1.0, 1.0, 1.5, 1.5, 0.8, 0.8]))
    assert [(change.at, change.better) for change in found] == [(3, False), (5, True)]
    assert [found[0].before, found[0].after] == pytest.approx([1.0, 1.5], abs=0.1)
    assert found[1].before == pytest.approx(found[0].after)


@pytest.mark.parametrize("before", range(1, 6))
@pytest.mark.parametrize("step", [0.3, -0.3])
def test_the_version_that_is_named_is_the_one_that_changed(before: int, step: float) -> None:
    """Wherever the step is, whatever the noise: a step that is cut elsewhere has the same t, and is not named."""
    for seed in range(20):
        generator = np.random.default_rng([seed, before])
        values = 1.0 + 0.1 * generator.normal(size=8) + np.repeat([0.0, step], [before, 6 - before])[:, None]
        for noise in (0.0, 0.02):
            shifted = values + noise * generator.normal(size=(6, 8))
            assert [change.at for change in changes(shifted)] == [before]
    with_own_noise = np.repeat(generator.normal(size=(2, 8)) * 0.05, [before, 6 - before], axis=0)
    assert [change.at for change in changes(values + with_own_noise)] == [before]


def test_in_noise_another_version_is_seldom_named() -> None:
    """Taking the place of the smallest p instead of the largest step names another one in every fourth history."""
    named = []
    for seed in range(150):
        generator, place = np.random.default_rng(seed), 1 + seed % 9
        step = np.repeat([0.0, 0.3], [place, 10 - place])[:, None]
        found = changes(1.0 + 0.1 * generator.normal(size=8) + 0.15 * generator.normal(size=(10, 8)) + step)
        named.append([change.at for change in found] == [place] if found else None)
    assert named.count(True) > 120
    assert named.count(False) < 15


def test_a_change_holds_between_its_neighbours() -> None:
    """The last version has no seed in common with the one before: what it shows belongs to the change before it."""
    values = np.full((4, 12), np.nan)
    seeds = 0.01 * np.random.default_rng(0).normal(size=(4, 12))
    for version, (some, level) in enumerate(
        ((slice(0, 6), 1.0), (slice(0, 12), 3.0), (slice(6, 12), 6.0), (slice(0, 6), 12.0))
    ):
        values[version, some] = level + seeds[version, some]
    first, second = changes(values)
    assert (first.at, second.at) == (1, 2)
    assert [first.before, first.after] == pytest.approx([1.0, 3.0], abs=0.02)
    assert [second.before, second.after] == pytest.approx([3.0, 9.0], abs=0.02)


@pytest.mark.parametrize("metric", ["accuracy", "r2"])
def test_better_follows_the_direction_of_the_metric(metric: str) -> None:
    (change,) = changes(noisy([0.2, 0.2, 0.9]), metric)
    assert change.better


def test_noise_drift_and_identical_values_are_no_change_points() -> None:
    same = noisy([1.0])
    assert not changes(noisy([1.0] * 8))
    assert not changes(np.repeat(same, 4, axis=0))
    assert not changes(same * (1.0 + 1e-6 * np.arange(6))[:, None])  # within the margin


def test_too_few_seeds_decide_nothing() -> None:
    assert not changes(noisy([1.0, 9.0], seeds=4))
    assert changes(noisy([1.0, 9.0], seeds=5))


def test_the_numbers_are_of_the_seeds_that_both_sides_have() -> None:
    """Seeds that only one version has, and that are harder, would turn an improvement into its opposite."""
    values = np.full((2, 12), np.nan)
    values[0, :6] = noisy([1.0], 6)
    values[1, :6] = values[0, :6] - 0.3
    values[1, 6:] = 50.0
    (change,) = changes(values)
    assert change.better
    assert change.after == pytest.approx(change.before - 0.3)


def test_infinite_values_are_left_out() -> None:
    values = noisy([1.0, 1.0, 2.0])
    values[0, 0] = np.inf
    (change,) = changes(values)
    assert change.at == 2
    assert np.isfinite(change.before)


def test_the_level_is_shared_by_all_places_of_all_lines() -> None:
    one, other = series(noisy([1.0] * 4)), series(noisy([1.0] * 3), "mae")
    found = with_changes([one, other, series(noisy([1.0]), "r2")])
    assert found.cuts == 3 + 2
    assert found.level == ALPHA / 5
    assert "5 places" in found.correction
    assert "1 %" in found.correction


def test_what_is_significant_alone_is_not_among_many() -> None:
    moved = 1.0 + np.stack([np.zeros(8), 0.4 + 0.2 * np.linspace(-1.5, 1.5, 8)])  # p is 0.001
    (alone,) = with_changes([series(moved)]).lines
    assert alone.changes
    crowd = with_changes([series(moved), *(series(noisy([1.0] * 101)) for _ in range(20))])
    assert alone.changes[0].p > crowd.level
    assert not crowd.lines[0].changes


def test_false_change_points_are_rare() -> None:
    """In 400 histories without a change, 1 % may have one: more than 10 have a chance of 3 in 1,000."""
    generator = np.random.default_rng(0)
    false = sum(bool(changes(1.0 + generator.normal(size=8) + 0.3 * generator.normal(size=(6, 8)))) for _ in range(400))
    assert false <= 10


TIME = "latency_total@T=10"


def test_times_of_several_machines_are_not_compared() -> None:
    values = noisy([1.0] * 4 + [5.0] * 4)
    assert changes(values, TIME)
    assert not changes(values, TIME, machines=2)
    assert changes(values, "rmse", machines=2)
    assert with_changes([series(values, TIME, machines=2)]).cuts == 0


def test_the_seeds_of_one_run_of_a_time_are_no_repeats() -> None:
    """A step that all seeds of a run share may be what else the machine did; in a metric that is no time it is not."""
    values = noisy([1.0, 1.0, 5.0])
    assert changes(values, "rmse")
    assert not changes(values, TIME)
    (line,) = with_changes([series(values, TIME)]).lines
    assert line_view(line, 0.95).note.startswith("3 runs: the times of one run share the noise of their machine")
    assert "tested by the means of runs" in with_changes([series(values, TIME)]).correction
    assert "runs" not in with_changes([series(values)]).correction


def test_repeated_runs_of_two_versions_show_a_change_of_times() -> None:
    values = noisy([1.0, 1.5])
    runs = ((0.98, 1.0, 1.01, 0.99), (1.5, 1.52, 1.49, 1.51))
    (line,) = with_changes([series(values, TIME, runs=runs)]).lines
    (change,) = line.changes
    theirs = scipy.stats.ttest_ind(*np.log(runs)).pvalue
    assert (change.at, change.better) == (1, False)
    assert change.p == pytest.approx(theirs)
    assert (change.before, change.after) == pytest.approx((np.mean(runs[0]), np.mean(runs[1])))
    assert line_view(line, 0.95).note == ""


def test_five_runs_are_too_few_and_the_last_of_many_may_be_alone() -> None:
    few = noisy([1.0, 1.0, 1.0, 1.0, 9.0])
    assert not changes(few, TIME)
    (change,) = changes(noisy([1.0] * 9 + [9.0]), TIME)
    assert change.at == 9


def test_noise_that_the_values_of_a_run_share_gives_few_false_changes_of_times() -> None:
    """By seeds, as other metrics are tested, nearly every history of such times has one."""
    generator = np.random.default_rng(4)
    found = dict.fromkeys((TIME, "rmse"), 0)
    for _ in range(200):
        values = 10.0 * np.exp(0.3 * generator.normal(size=(10, 1)) + 0.01 * generator.normal(size=(10, 8)))
        for metric in found:
            found[metric] += bool(changes(values, metric))
    assert found[TIME] <= 6
    assert found["rmse"] > 150
