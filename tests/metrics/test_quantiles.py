from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import pit_histogram, pit_values, quantile_calibration_error, quantile_curve


def test_pit_equals_the_normal_distribution_function(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    y, m, v = rng.normal(size=100), rng.normal(size=100), rng.gamma(1.0, size=100)
    expected = oracle("scipy.stats").norm.cdf(y, m, np.sqrt(v))
    np.testing.assert_allclose(pit_values(y, m, v), expected, rtol=1e-12)


def test_pit_of_no_variance_is_a_step() -> None:
    assert pit_values([0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0])
def test_calibration_error_equals_uncertainty_toolbox(
    factor: float, oracle: Callable[[str], Any], rng: np.random.Generator
) -> None:
    m, s = rng.normal(size=1000), rng.gamma(2.0, size=1000)
    y = rng.normal(m, s)
    toolbox = oracle("uncertainty_toolbox.metrics_calibration")
    theirs = toolbox.mean_absolute_calibration_error(m, factor * s, y, vectorized=True, prop_type="quantile")
    ours = quantile_calibration_error(pit_values(y, m, (factor * s) ** 2))
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_histogram_is_flat_when_calibrated_and_a_bowl_when_too_sure(rng: np.random.Generator) -> None:
    y, m = rng.normal(size=100_000), np.zeros(100_000)
    flat = pit_histogram(pit_values(y, m, 1.0))
    assert flat.edges.size == 11
    np.testing.assert_allclose(flat.density, 1.0, atol=0.05)
    bowl = pit_histogram(pit_values(y, m, 0.1)).density
    assert bowl[0] > 2
    assert bowl[-1] > 2
    assert bowl[4] < 0.6


def test_curve_counts_rows_at_most_at_each_level() -> None:
    curve = quantile_curve([0.0, 0.5, 0.5, 1.0], levels=3)
    assert curve.expected.tolist() == [0.0, 0.5, 1.0]
    assert curve.observed.tolist() == [0.25, 0.75, 1.0]


def test_bad_parameters_are_errors() -> None:
    with pytest.raises(UserError, match="between 0 and 1"):
        pit_histogram([1.5])
    with pytest.raises(UserError, match="bins"):
        pit_histogram([0.5], bins=0)
    with pytest.raises(UserError, match="levels"):
        quantile_curve([0.5], levels=1)
