import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.metrics import (
    gaussian_nll,
    gaussian_nll_rows,
    mean_absolute_error,
    r_squared,
    root_mean_squared_error,
    sharpness,
    standardised_log_loss,
)

Oracle = Callable[[str], Any]


def test_point_errors_equal_scikit_learn(oracle: Oracle, rng: np.random.Generator) -> None:
    metrics = oracle("sklearn.metrics")
    y, m = rng.normal(10, 3, 500), rng.normal(10, 3, 500)
    assert root_mean_squared_error(y, m) == pytest.approx(metrics.root_mean_squared_error(y, m), rel=1e-13)
    assert mean_absolute_error(y, m) == pytest.approx(metrics.mean_absolute_error(y, m), rel=1e-13)
    assert r_squared(y, m) == pytest.approx(metrics.r2_score(y, m), rel=1e-13)


def test_sums_are_float64_for_float32_input() -> None:
    # In float32 the mean of a million squares of 0.1 is off in the fifth digit.
    y = np.zeros(1_000_000, dtype=np.float32)
    m = np.full(1_000_000, 0.1, dtype=np.float32)
    assert root_mean_squared_error(y, m) == pytest.approx(float(np.float32(0.1)), rel=1e-12)


def test_gaussian_nll_equals_scipy_and_uncertainty_toolbox(oracle: Oracle, rng: np.random.Generator) -> None:
    y, m, v = rng.normal(size=300), rng.normal(size=300), rng.gamma(2.0, size=300)
    expected = -oracle("scipy.stats").norm.logpdf(y, m, np.sqrt(v))
    np.testing.assert_allclose(gaussian_nll_rows(y, m, v), expected, rtol=1e-12)
    toolbox = oracle("uncertainty_toolbox.metrics_scoring_rule").nll_gaussian(m, np.sqrt(v), y)
    assert gaussian_nll(y, m, v) == pytest.approx(toolbox, rel=1e-12)


def test_gaussian_nll_is_infinite_without_variance_and_is_not_clipped() -> None:
    rows = gaussian_nll_rows([1.0, 1.0, 1.0], [1.0, 2.0, 2.0], [0.0, 0.0, 1e-12])
    assert rows[:2].tolist() == [math.inf, math.inf]
    assert rows[2] == pytest.approx(0.5 * (math.log(2 * math.pi * 1e-12) + 1e12))
    assert gaussian_nll_rows([1.0], [2.0], [1e-310])[0] == math.inf


def test_rasmussen_williams_is_zero_for_the_trivial_forecast_and_negative_for_a_better_one(
    rng: np.random.Generator,
) -> None:
    y = rng.normal(5, 2, 400)
    trivial = standardised_log_loss(y, np.full(400, 5.0), np.full(400, 4.0), 5.0, 4.0)
    assert trivial == pytest.approx(0.0, abs=1e-15)
    assert standardised_log_loss(y, y + rng.normal(0, 0.1, 400), 0.01, 5.0, 4.0) < -1
    assert math.isnan(standardised_log_loss(y, y, 1.0, 5.0, 0.0))


def test_sharpness_equals_uncertainty_toolbox(oracle: Oracle, rng: np.random.Generator) -> None:
    v = rng.gamma(2.0, size=100)
    expected = oracle("uncertainty_toolbox.metrics_calibration").sharpness(np.sqrt(v))
    assert sharpness(v) == pytest.approx(expected, rel=1e-12)
    assert sharpness([4.0, 4.0]) == 2.0
