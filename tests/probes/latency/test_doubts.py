"""Statistics of repeats against scipy and closed forms, and the doubts."""

import numpy as np
import pytest
from scipy import stats

from bench.probes.latency.doubts import doubts_of_machine, doubts_of_series, drift, ratio, spread, statistics


def test_statistics_are_those_of_scipy() -> None:
    times = np.random.default_rng(1).gamma(20, 1, 15)
    found = statistics(times)
    low, high = stats.t.interval(0.95, 14, loc=times.mean(), scale=stats.sem(times))
    assert (found.mean, found.mean_low, found.mean_high) == pytest.approx((times.mean(), low, high))
    assert (found.median, found.p90, found.p99) == pytest.approx(tuple(np.percentile(times, [50, 90, 99])))
    assert (found.minimum, found.maximum, found.repeats) == (times.min(), times.max(), 15)


def test_an_outlier_moves_the_mean_and_not_the_median() -> None:
    found = statistics([1.0] * 9 + [100.0])
    assert found.median == 1.0
    assert found.mean == pytest.approx(10.9)


def test_the_interval_of_a_mean_ends_at_zero_as_times_do() -> None:
    times = [1.0] * 9 + [100.0]  # Student's interval starts at -11.5
    found = statistics(times)
    low, high = stats.t.interval(0.95, 9, loc=np.mean(times), scale=stats.sem(times))
    assert low < -11.0
    assert (found.mean_low, found.mean_high) == pytest.approx((0.0, high))


def test_one_repeat_has_no_interval() -> None:
    assert statistics([2.0]).to_json()["mean_low"] is None


def test_a_ratio_of_series_that_slow_down_together_is_certain() -> None:
    machine = np.array([1.0, 1.0, 3.0, 1.0, 2.0, 1.0, 5.0, 1.0, 1.0, 2.0])  # what the rounds suffered, both alike
    value, low, high = ratio(4.0 * machine, machine, np.random.default_rng(0))
    assert value == low == high == 4.0


def test_the_interval_of_a_ratio_covers_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    covered = []
    for _ in range(200):
        a, b = random.lognormal(np.log(6), 0.1, 20), random.lognormal(np.log(2), 0.1, 20)
        _, low, high = ratio(a, b, random)
        covered.append(low <= 3 <= high)
    assert 0.88 <= np.mean(covered) <= 1.0


def test_spread_is_the_distance_of_the_quartiles() -> None:
    assert spread(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == pytest.approx(2 / 3)


def test_a_noisy_series_is_flagged_and_a_calm_one_with_an_outlier_is_not() -> None:
    random = np.random.default_rng(0)
    calm = np.append(10 + 0.1 * random.random(9), 50.0)
    noisy = 10 + 10 * random.random(10)
    assert doubts_of_series({"T=1": calm}) == []
    (doubt,) = doubts_of_series({"T=1": calm, "T=10": noisy})
    assert "in 1 of 2 series, most in T=10" in doubt


def test_a_warm_up_without_end_is_flagged() -> None:
    assert "T=10" in doubts_of_series({}, ["T=10"])[0]


def test_the_machine_is_doubted_for_its_load_its_neighbours_and_its_drift() -> None:
    flat = [np.full(9, 2.0), np.full(9, 30.0)]
    slower = [np.linspace(1, 1.5, 9), np.linspace(20, 30, 9)]
    assert doubts_of_machine(0.2, 2, 0.02, flat) == []
    assert doubts_of_machine(None, 2, None, []) == []
    assert ["loaded" in text for text in doubts_of_machine(1.8, 2, 0.0, flat)] == [True]
    assert "40%" in doubts_of_machine(0.0, 2, 0.4, flat)[0]
    assert "slower" in doubts_of_machine(0.0, 2, 0.0, slower)[0]
    assert drift(slower) > 0.2 > abs(drift(flat))
    assert doubts_of_machine(0.0, 2, 0.0, flat, "too hot") == ["too hot"]
