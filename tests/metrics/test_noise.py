from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.metrics import fit_noise_variance, gaussian_nll

# The load of the machine decides how long an example takes, not the code under test.
PATIENT = settings(deadline=None, max_examples=60)


def test_without_variance_it_is_the_mean_squared_residual(rng: np.random.Generator) -> None:
    y, m = rng.normal(size=50), rng.normal(size=50)
    assert fit_noise_variance(y, m[None]) == pytest.approx(float(np.mean((y - m) ** 2)), rel=1e-14)
    same = np.repeat(m[None], 4, axis=0)
    assert fit_noise_variance(y, same) == pytest.approx(float(np.mean((y - m) ** 2)), rel=1e-12)


def test_equal_variances_have_a_closed_form(rng: np.random.Generator) -> None:
    # With one variance v for all rows the maximum is at mean squared residual minus v, or at 0 below that.
    y, m = rng.normal(0, 2, 200), np.zeros(200)
    draws = np.stack([m - 1, m, m + 1])
    assert fit_noise_variance(y, draws) == pytest.approx(float(np.mean(y**2)) - 1.0, rel=1e-7)
    assert fit_noise_variance(y, draws * 100) == 0.0


@pytest.mark.slow
@PATIENT
@given(seed=st.integers(0, 10_000), spread=st.floats(1e-3, 1e3), noise=st.floats(1e-3, 1e3))
def test_no_other_noise_is_more_likely(seed: int, spread: float, noise: float) -> None:
    rng = np.random.default_rng(seed)
    draws = rng.normal(0, spread, (5, 30)) * rng.gamma(0.5, size=30)
    y = draws.mean(axis=0) + rng.normal(0, noise, 30)
    fitted = fit_noise_variance(y, draws)
    mean, variance = draws.mean(axis=0), draws.var(axis=0, ddof=1)
    best = gaussian_nll(y, mean, variance + fitted)
    others = [0.0, *np.geomspace(1e-9, 1e7, 200), fitted * 0.999, fitted * 1.001]
    assert all(best <= gaussian_nll(y, mean, variance + other) + 1e-9 for other in others)


def test_stated_variance_counts(rng: np.random.Generator, oracle: Callable[[str], Any]) -> None:
    y, m = rng.normal(0, 2, 300), np.zeros(300)
    stated = np.full((2, 300), 1.5)
    assert fit_noise_variance(y, np.stack([m, m]), stated) == pytest.approx(float(np.mean(y**2)) - 1.5, rel=1e-7)
    assert fit_noise_variance(y, m[None], stated[:1]) == pytest.approx(float(np.mean(y**2)) - 1.5, rel=1e-7)


def test_perfect_predictions_leave_no_noise() -> None:
    y = np.arange(5.0)
    assert fit_noise_variance(y, np.stack([y, y])) == 0.0
    assert fit_noise_variance(y, np.stack([y - 1, y + 1])) == 0.0


def test_it_scales_with_the_square_of_the_unit(rng: np.random.Generator) -> None:
    draws = rng.normal(size=(10, 100)) * rng.gamma(1.0, size=100)
    y = draws.mean(axis=0) + rng.normal(0, 0.7, 100)
    assert fit_noise_variance(y * 30, draws * 30) == pytest.approx(900 * fit_noise_variance(y, draws), rel=1e-6)


@pytest.mark.parametrize(("large_residual", "low", "high"), [(15.0, 1e-7, 1e-5), (20.0, 5.0, 15.0)])
def test_of_two_maxima_the_higher_one_is_found(large_residual: float, low: float, high: float) -> None:
    # Rows of no variance and a squared residual of 1e-6 ask for little noise; rows of variance 1 and a large residual
    # ask for much. Both are local maxima of the likelihood, and the size of the large residual decides between them.
    centre = np.zeros(40)
    half = np.repeat([0.0, np.sqrt(0.5)], 20)
    y = np.repeat([1e-3, np.sqrt(large_residual)], 20)
    assert low < fit_noise_variance(y, np.stack([centre - half, centre + half])) < high
