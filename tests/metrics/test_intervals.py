from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import (
    Intervals,
    coverage_probability,
    gaussian_intervals,
    level_of,
    mean_width,
    width_of,
    winkler_score,
)


def test_three_standard_deviations_as_in_the_paper() -> None:
    intervals = gaussian_intervals([0.0, 10.0], [1.0, 4.0])
    assert intervals.lower.tolist() == [-3.0, 4.0]
    assert intervals.upper.tolist() == [3.0, 16.0]
    assert mean_width(intervals) == 9.0
    assert coverage_probability([3.0, 16.5], intervals) == 0.5


def test_widths_and_levels_are_the_gaussian_ones() -> None:
    assert level_of(3.0) == pytest.approx(0.9973002039367398, abs=1e-15)
    assert width_of(0.95) == pytest.approx(1.959963984540054, abs=1e-12)
    assert level_of(width_of(0.8)) == pytest.approx(0.8, abs=1e-14)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99])
def test_winkler_score_equals_scoringrules(
    level: float, oracle: Callable[[str], Any], rng: np.random.Generator
) -> None:
    y, m, v = rng.normal(size=300), rng.normal(size=300), rng.gamma(1.0, size=300)
    bounds = gaussian_intervals(m, v, width_of(level))
    expected = oracle("scoringrules").interval_score(y, bounds.lower, bounds.upper, 1 - level)
    assert winkler_score(y, bounds, level) == pytest.approx(float(np.mean(expected)), rel=1e-12)


def test_winkler_score_is_least_for_the_true_interval(rng: np.random.Generator) -> None:
    y = rng.normal(size=100_000)
    zeros = np.zeros(y.size)
    scores = {v: winkler_score(y, gaussian_intervals(zeros, v, width_of(0.9)), 0.9) for v in (0.5, 1.0, 2.0)}
    assert min(scores, key=lambda v: scores[v]) == 1.0


def test_coverage_of_a_calibrated_forecast_is_its_level(rng: np.random.Generator) -> None:
    y = rng.normal(5, 2, 200_000)
    bounds = gaussian_intervals(np.full(y.size, 5.0), 4.0, width_of(0.9))
    assert coverage_probability(y, bounds) == pytest.approx(0.9, abs=0.003)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 95.0])
def test_a_level_outside_0_and_1_is_an_error(level: float) -> None:
    with pytest.raises(UserError, match="strictly between 0 and 1"):
        width_of(level)
    with pytest.raises(UserError, match="strictly between 0 and 1"):
        winkler_score([0.0], gaussian_intervals([0.0], [1.0]), level)


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan, np.inf])
def test_a_width_that_is_not_positive_is_an_error(width: float) -> None:
    with pytest.raises(UserError, match="must be positive"):
        gaussian_intervals([0.0], [1.0], width)


def test_bounds_the_wrong_way_round_are_an_error() -> None:
    with pytest.raises(UserError, match="below its lower bound"):
        coverage_probability([0.0], Intervals(np.array([1.0]), np.array([-1.0])))
