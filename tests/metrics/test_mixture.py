"""The equal mixture of T predictions against closed forms, quadrature and scoringrules."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import Mixture, Normal, NormalInverseGamma, NormalMixture, Points, Quantiles, RegressionPrediction

LEVELS = np.array([0.001, 0.025, 0.5, 0.9, 0.999])
KINDS = ("far", "near", "narrow", "many", "evidential", "flat", "exponential", "nested")


def _parts(kind: str, rng: np.random.Generator) -> RegressionPrediction:
    shape = (80, 12) if kind == "many" else (4, 12)
    if kind == "evidential":
        nu, alpha, beta = rng.gamma(2.0, size=(3, *shape)) + 0.2
        return NormalInverseGamma(rng.normal(0, 3, size=shape), nu, alpha + 1, beta)
    if kind in ("flat", "exponential"):
        values = np.sort(rng.normal(size=(*shape, 3)), axis=-1)
        return Quantiles(np.array([0.1, 0.5, 0.9]), values, tails=kind)  # type: ignore[arg-type]
    if kind == "nested":
        return NormalMixture(rng.normal(0, 3, size=(*shape, 3)), rng.gamma(2.0, size=(*shape, 3)))
    distance = {"far": 30.0, "near": 0.3, "narrow": 1e5, "many": 2.0}[kind]
    return Normal(rng.normal(0, distance, size=shape), noise_variance=rng.gamma(2.0, size=shape))


def _integral(parts: RegressionPrediction, y: np.ndarray[Any, Any], row: int) -> float:
    """CRPS by its definition, integral of (F - [x >= y])^2, over pieces between many quantiles of every draw."""
    one = parts.rows(np.array([row]))
    levels = np.concatenate(
        [10.0 ** np.arange(-11.0, -1), np.linspace(0.02, 0.98, 40), 1 - 10.0 ** np.arange(-2.0, -12, -1)]
    )
    edges = np.unique(np.concatenate([one.quantile(levels).ravel(), [y[row]]]))
    points, weights = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for low, high in pairwise(edges):
        x = (low + high) / 2 + (high - low) / 2 * points
        f = one.cdf(x[:, None]).mean(axis=-2)[:, 0]
        total += float((high - low) / 2 * weights @ np.square(f - (x >= y[row])))
    return total


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "many"])
def test_crps_is_the_integral_that_defines_it(
    kind: str, oracle: Callable[[str], Any], rng: np.random.Generator
) -> None:
    parts = _parts(kind, rng)
    y = rng.normal(0, 2, size=parts.row_count)
    ours = Mixture(parts).crps(y)
    for row in range(3):
        assert ours[row] == pytest.approx(_integral(parts, y, row), rel=1e-5), row


@pytest.mark.parametrize("kind", KINDS)
def test_crps_of_a_row_does_not_depend_on_the_others(kind: str, rng: np.random.Generator) -> None:
    parts = _parts(kind, rng)
    y = rng.normal(0, 2, size=parts.row_count)
    alone = [float(Mixture(parts.rows(np.array([row]))).crps(y[row : row + 1])[0]) for row in range(parts.row_count)]
    np.testing.assert_allclose(Mixture(parts).crps(y), alone, rtol=1e-8)


def test_crps_is_missing_only_where_a_quantile_is_infinite(rng: np.random.Generator) -> None:
    values = np.sort(rng.normal(size=(3, 5, 2)), axis=-1)
    values[1, 2, 1] = np.inf
    parts = Quantiles(np.array([0.1, 0.9]), values, point=np.zeros((3, 5)))
    scores = Mixture(parts).crps(np.zeros(5))
    assert np.isnan(scores).tolist() == [False, False, True, False, False]
    np.testing.assert_allclose(scores[:2], Mixture(parts.rows(slice(0, 2))).crps(np.zeros(2)), rtol=1e-12)


def test_crps_of_normals_equals_scoringrules(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    for kind in ("far", "near", "narrow", "many"):
        parts = _parts(kind, rng)
        assert isinstance(parts, Normal)
        y = rng.normal(0, 2, size=parts.row_count)
        theirs = oracle("scoringrules").crps_mixnorm(y, parts.mean.T, parts.std.T)
        np.testing.assert_allclose(Mixture(parts).crps(y), theirs, rtol=1e-8, atol=1e-10)


def test_crps_without_width_is_that_of_the_sample(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    draws, y = rng.normal(size=(6, 10)), rng.normal(size=10)
    theirs = oracle("scoringrules").crps_ensemble(y, draws.T, estimator="nrg")
    np.testing.assert_allclose(Mixture(Points(draws).with_noise(0.0)).crps(y), theirs, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_invert_the_distribution_function(kind: str, rng: np.random.Generator) -> None:
    parts = _parts(kind, rng)
    inner = LEVELS if kind != "flat" else np.array([0.2, 0.5, 0.85])
    found = Mixture(parts).quantile(inner)
    for level, at in zip(inner, found, strict=True):
        step = 1e-9 * np.abs(at) + 1e-9
        assert (Mixture(parts).cdf(at - step) <= level + 1e-9).all()
        assert (Mixture(parts).cdf(at + step) >= level - 2e-9).all()
    assert (np.diff(found, axis=0) >= 0).all()


def test_density_is_the_mean_of_the_parts_and_does_not_underflow(
    oracle: Callable[[str], Any], rng: np.random.Generator
) -> None:
    parts = _parts("near", rng)
    assert isinstance(parts, Normal)
    y = rng.normal(size=parts.row_count)
    direct = oracle("scipy.stats").norm(parts.mean, parts.std).pdf(y).mean(axis=0)
    np.testing.assert_allclose(np.exp(Mixture(parts).log_density(y)), direct, rtol=1e-10)
    far = Mixture(Points(np.array([[0.0], [1.0]])).with_noise(1.0)).log_density([100.0])
    assert far[0] == pytest.approx(-(99.0**2) / 2 - np.log(np.sqrt(2 * np.pi)) - np.log(2), rel=1e-12)


def test_two_equal_draws_are_one(rng: np.random.Generator) -> None:
    for kind in KINDS:
        one = _parts(kind, rng).draws(1)
        two = one._map(lambda values: np.concatenate([values, values]))
        y = rng.normal(size=one.row_count)
        np.testing.assert_allclose(Mixture(two).crps(y), Mixture(one).crps(y), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(Mixture(two).quantile([0.2, 0.6]), Mixture(one).quantile([0.2, 0.6]), rtol=1e-12)


def test_a_mixture_of_points_is_refused() -> None:
    with pytest.raises(UserError, match="points have none without"):
        Mixture(Points(np.zeros((2, 3))))
    with pytest.raises(UserError, match="strictly between 0 and 1"):
        Mixture(Points(np.zeros((2, 3))).with_noise(1.0)).quantile([0.5, 1.0])


def test_closed_form_and_sampled_evidential_regression_agree(rng: np.random.Generator) -> None:
    count, shape = 3_000, (1, 3)
    nu, alpha, beta = np.full((3, *shape), 2.0) + np.arange(3)
    exact = NormalInverseGamma(np.zeros(shape), nu, alpha, beta)
    variance = 1 / rng.gamma(alpha, 1 / beta, size=(count, 3))
    sampled = Normal(rng.normal(0.0, np.sqrt(variance / nu)), noise_variance=variance)
    y = np.array([-1.0, 0.3, 2.0])
    for name in ("log_density", "cdf", "crps"):
        closed, drawn = (getattr(Mixture(one), name)(y) for one in (exact, sampled))
        np.testing.assert_allclose(drawn, closed, atol=0.05, err_msg=name)
