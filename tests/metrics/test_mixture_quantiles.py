"""Quantiles of mixtures against plain bisection, one row and level at a time, with scipy's distribution functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.metrics import Mixture, Normal, NormalInverseGamma, Points, Quantiles, RegressionPrediction
from bench.metrics.mixture import LEVELS
from bench.metrics.mixture_quantiles import SHORTFALL

Array = np.ndarray[Any, Any]
ROWS = 3


def _bisect(distribution: Callable[[float], float], low: float, high: float, level: float) -> float:
    """Return the smallest float of the bracket at which the distribution function reaches the level."""
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if distribution(middle) < level - SHORTFALL else (low, middle)
    return high


def _reference(parts: RegressionPrediction, levels: Array) -> Array:
    from scipy import stats

    each = parts.quantile(levels)
    low, high = np.nextafter(each.min(axis=1), -np.inf), each.max(axis=1)
    found = np.empty(low.shape)
    for row in range(parts.row_count):
        if isinstance(parts, Normal):
            frozen = stats.norm(parts.mean[:, row], parts.std[:, row])
        elif isinstance(parts, NormalInverseGamma):
            frozen = stats.t(parts.degrees[:, row], parts.mean[:, row], parts.scale[:, row])
        for k, level in enumerate(levels):
            found[k, row] = _bisect(lambda x: float(frozen.cdf(x).mean()), low[k, row], high[k, row], level)  # noqa: B023
    return found


@pytest.mark.parametrize("draws", [2, 7, 40])
@pytest.mark.parametrize("distance", [0.0, 1e-10, 1e-3, 1.0, 4.0])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_normals_with_one_or_many_widths(draws: int, distance: float, offset: float, rng: np.random.Generator) -> None:
    levels = LEVELS[[0, 6, 11, 18, 22]]
    mean = offset + distance * rng.normal(size=(draws, ROWS))
    for variance in (np.full(mean.shape, 0.7), rng.gamma(1.0, size=mean.shape) + 1e-3):
        parts = Normal(mean, noise_variance=variance)
        found, wanted = Mixture(parts).quantile(levels), _reference(parts, levels)
        # Where the density is small the distribution function's own rounding moves its quantile further.
        density = np.exp([Mixture(parts).log_density(at) for at in wanted])
        assert (np.abs(found - wanted) <= 1e-15 / density + 4e-16 * np.abs(wanted) + 1e-13).all()


@pytest.mark.parametrize("draws", [2, 7, 40])
@pytest.mark.parametrize("distance", [30.0, 1e4, 1e12, 1e200])
def test_draws_far_apart_have_the_left_end_of_a_plateau(draws: int, distance: float, rng: np.random.Generator) -> None:
    parts = Normal(distance * rng.normal(size=(draws, ROWS)), noise_variance=rng.gamma(0.3, size=(draws, ROWS)) + 1e-12)
    levels = LEVELS[[0, 4, 11, 19, 22]]
    found, wanted = Mixture(parts).quantile(levels), _reference(parts, levels)
    assert (np.abs(found - wanted) <= 1e-7 * parts.std.max(axis=0) + 1e-15 * np.abs(wanted)).all()


def test_draws_without_width_have_the_quantiles_of_the_sample(rng: np.random.Generator) -> None:
    draws = rng.normal(size=(20, ROWS))
    levels = np.array([0.01, 0.05, 0.3, 0.51, 0.99])
    for variance in (0.0, 5e-324):  # the root of the smallest number is far below the spacing of floats near 1
        found = Mixture(Points(draws).with_noise(variance)).quantile(levels)
        np.testing.assert_allclose(found, np.sort(draws, axis=0)[[0, 0, 5, 10, 19]], rtol=1e-14)


def test_some_draws_without_width(rng: np.random.Generator) -> None:
    variance = rng.gamma(1.0, size=(5, ROWS))
    variance[:2] = 0.0
    parts = Normal(rng.normal(size=(5, ROWS)), noise_variance=variance)
    found = Mixture(parts).quantile(LEVELS)
    reached = np.array([Mixture(parts).cdf(at + 1e-9) for at in found])
    missed = np.array([Mixture(parts).cdf(at - 1e-9) for at in found])
    assert (reached >= LEVELS[:, None] - 1e-8).all()
    assert (missed <= LEVELS[:, None] + 1e-8).all()


def test_student_distributions(rng: np.random.Generator) -> None:
    shape, levels = (4, ROWS), np.array([0.01, 0.3, 0.5, 0.99])
    nu, alpha, beta = rng.gamma(2.0, size=(3, *shape)) + 0.2
    parts = NormalInverseGamma(rng.normal(0, 3, size=shape), nu, alpha + 0.6, beta)
    np.testing.assert_allclose(Mixture(parts).quantile(levels), _reference(parts, levels), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("tails", ["flat", "exponential"])
@pytest.mark.parametrize("case", ["near", "far", "tied"])
def test_stated_quantiles(tails: Any, case: str, rng: np.random.Generator) -> None:
    values = np.sort(rng.normal(size=(4, ROWS, 5)), axis=-1)
    if case == "far":
        values += 50 * rng.normal(size=(4, ROWS, 1))
    if case == "tied":
        values = np.round(values * 2) / 2
    parts = Quantiles(np.array([0.05, 0.3, 0.5, 0.7, 0.95]), values, tails=tails)
    levels = LEVELS[[0, 3, 8, 11, 17, 22]]
    found, each = Mixture(parts).quantile(levels), parts.quantile(levels)
    low, high = np.nextafter(each.min(axis=1), -np.inf), each.max(axis=1)
    for row in range(ROWS):
        one = parts.rows(np.array([row]))
        for k, level in enumerate(levels):
            wanted = _bisect(lambda x: float(one.cdf(np.array([x])).mean()), low[k, row], high[k, row], level)  # noqa: B023
            # On an exponential tail of the density 1e-9, where a plateau begins, rounding moves the crossing.
            assert found[k, row] == pytest.approx(wanted, rel=1e-12, abs=1e-6 if case == "far" else 1e-12)


def test_infinite_quantiles_are_reached_by_their_own_levels() -> None:
    values = np.array([[[-np.inf, np.inf]], [[0.0, 1.0]]])
    parts = Quantiles(np.array([0.1, 0.9]), values, point=np.zeros((2, 1)))
    # F = 0.05 below 0, where the first draw's lower end is passed, and 0.1 at 0, the second draw's.
    found = Mixture(parts).quantile([0.04, 0.07, 0.3, 0.97])[:, 0]
    assert found[[0, 1, 3]].tolist() == [-np.inf, 0.0, np.inf]
    assert np.isnan(found[2])  # between its two infinities the first draw has no quantile


def test_order_and_number_of_levels_do_not_matter(rng: np.random.Generator) -> None:
    parts = Normal(rng.normal(size=(9, ROWS)), noise_variance=rng.gamma(2.0, size=(9, ROWS)))
    whole = Mixture(parts).quantile(LEVELS)
    shuffled = rng.permutation(LEVELS.size)
    np.testing.assert_allclose(Mixture(parts).quantile(LEVELS[shuffled]), whole[shuffled], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(Mixture(parts).quantile([0.5])[0], whole[11], rtol=1e-12, atol=1e-14)
