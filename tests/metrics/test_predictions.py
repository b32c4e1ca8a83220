"""Each kind of prediction against scipy, scoringrules and simulation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import Forecast, Normal, NormalInverseGamma, Points, Quantiles, RegressionPrediction, score

SHAPE = (3, 40)
LEVELS = np.array([0.01, 0.3, 0.5, 0.99])


def _normal(rng: np.random.Generator) -> Normal:
    model, noise = rng.gamma(2.0, size=(2, *SHAPE))
    return Normal(rng.normal(size=SHAPE), model, noise)


def _evidential(rng: np.random.Generator, least: float = 1.5) -> NormalInverseGamma:
    nu, alpha, beta = rng.gamma(2.0, size=(3, *SHAPE)) + 0.1
    return NormalInverseGamma(rng.normal(size=SHAPE), nu, alpha + least, beta)


def _quantiles(rng: np.random.Generator, **more: Any) -> Quantiles:
    values = np.sort(rng.normal(size=(*SHAPE, 5)), axis=-1)
    return Quantiles(np.array([0.05, 0.2, 0.5, 0.8, 0.95]), values, **more)


def _kinds(rng: np.random.Generator) -> list[RegressionPrediction]:
    return [_normal(rng), _evidential(rng), _quantiles(rng), _quantiles(rng, tails="exponential")]


def test_a_normal_equals_scipy_and_scoringrules(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    one, y = _normal(rng), rng.normal(size=SHAPE[1])
    assert one.model_variance is not None
    assert one.noise_variance is not None
    std = np.sqrt(one.model_variance + one.noise_variance)
    law = oracle("scipy.stats").norm(one.mean, std)
    np.testing.assert_allclose(one.log_density(y), law.logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(one.cdf(y), law.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(one.quantile(LEVELS), law.ppf(LEVELS[:, None, None]), rtol=1e-10)
    np.testing.assert_allclose(one.crps(y), oracle("scoringrules").crps_normal(y, one.mean, std), rtol=1e-9, atol=1e-12)


def test_evidential_equals_a_student_t_of_scipy_and_scoringrules(
    oracle: Callable[[str], Any], rng: np.random.Generator
) -> None:
    one, y = _evidential(rng), rng.normal(size=SHAPE[1])
    scale = np.sqrt(one.beta * (1 + one.nu) / (one.nu * one.alpha))
    law = oracle("scipy.stats").t(2 * one.alpha, one.mean, scale)
    np.testing.assert_allclose(one.log_density(y), law.logpdf(y), rtol=1e-10)
    np.testing.assert_allclose(one.cdf(y), law.cdf(y), rtol=1e-10)
    np.testing.assert_allclose(one.quantile(LEVELS), law.ppf(LEVELS[:, None, None]), rtol=1e-8)
    theirs = oracle("scoringrules").crps_t(y, 2 * one.alpha, one.mean, scale)
    np.testing.assert_allclose(one.crps(y), theirs, rtol=1e-8)
    assert one.variance is not None
    np.testing.assert_allclose(one.variance, law.var(), rtol=1e-10)


def test_the_parts_of_an_evidential_variance_are_those_of_its_definition(rng: np.random.Generator) -> None:
    one = NormalInverseGamma(np.ones((1, 1)), np.full((1, 1), 0.5), np.full((1, 1), 6.0), np.full((1, 1), 2.0))
    variance = 1 / rng.gamma(6.0, 1 / 2.0, size=400_000)
    mean = rng.normal(1.0, np.sqrt(variance / 0.5))
    assert one.noise_variance[0, 0] == pytest.approx(variance.mean(), rel=0.01)
    assert one.model_variance[0, 0] == pytest.approx(mean.var(), rel=0.02)


def test_a_student_t_of_at_most_2_degrees_has_no_variance_and_of_1_no_score() -> None:
    ones = np.ones((1, 3))
    heavy = NormalInverseGamma(0 * ones, ones, np.array([[0.5, 1.0, 1.5]]), ones)
    assert np.isnan(heavy.variance).tolist() == [[True, True, False]]  # type: ignore[arg-type]
    assert np.isnan(heavy.crps(np.zeros(3))).tolist() == [[True, False, False]]


def test_points_are_normals_once_there_is_noise_and_a_stated_noise_stays(rng: np.random.Generator) -> None:
    values, y = rng.normal(size=SHAPE), rng.normal(size=SHAPE[1])
    for name in ("cdf", "crps", "quantile", "log_density"):
        with pytest.raises(UserError, match="points state no distribution"):
            getattr(Points(values), name)(y)
    noisy = Points(values).with_noise(0.25)
    np.testing.assert_array_equal(noisy.std, np.full(SHAPE, 0.5))
    latent = Normal(values, model_variance=np.ones(SHAPE))
    np.testing.assert_array_equal(latent.with_noise(0.25).variance, np.full(SHAPE, 1.25))
    stated = Normal(values, noise_variance=np.ones(SHAPE))
    assert stated.with_noise(0.25) is stated


def test_no_variance_is_a_step_without_density() -> None:
    one = Normal(np.ones((1, 3)), noise_variance=np.zeros((1, 3)))
    y = np.array([0.0, 1.0, 3.0])
    assert one.cdf(y).tolist() == [[0.0, 0.5, 1.0]]
    assert one.crps(y).tolist() == [[1.0, 0.0, 2.0]]
    assert (one.log_density(y) == -np.inf).all()


@pytest.mark.parametrize("tails", ["flat", "exponential"])
def test_quantiles_have_the_moments_and_scores_of_their_own_sample(tails: Any, rng: np.random.Generator) -> None:
    one = Quantiles(np.array([0.1, 0.4, 0.7, 0.9]), np.array([[[-1.0, 0.0, 0.5, 3.0]]]), tails=tails)
    # An even grid of probabilities is a sample without noise.
    sample = one.quantile((np.arange(200_000) + 0.5) / 200_000)[:, 0, 0]
    assert one.centre[0, 0] == pytest.approx(sample.mean(), abs=1e-4)
    assert one.noise_variance[0, 0] == pytest.approx(sample.var(), rel=1e-3)
    spread = float(np.sort(sample) @ (2.0 * np.arange(sample.size) - sample.size + 1)) / sample.size**2
    for y in (-4.0, -1.0, -0.3, 0.2, 0.5, 2.0, 3.0, 7.0):
        crps = float(np.abs(sample - y).mean()) - spread
        assert one.crps(np.array([y]))[0, 0] == pytest.approx(crps, abs=2e-4), y
        assert one.cdf(np.array([y]))[0, 0] == pytest.approx(np.mean(sample <= y), abs=1e-5), y


def test_a_density_is_the_slope_of_its_distribution_function(rng: np.random.Generator) -> None:
    for one in _kinds(rng):
        if one.has_density:
            y, step = rng.normal(0, 2, size=SHAPE[1]), 1e-6
            slope = (one.cdf(y + step) - one.cdf(y - step)) / (2 * step)
            np.testing.assert_allclose(np.exp(one.log_density(y)), slope, rtol=1e-4, atol=1e-7)


def test_a_quantile_inverts_the_distribution_function(rng: np.random.Generator) -> None:
    for one in _kinds(rng):
        inner = LEVELS if one.has_density else np.array([0.06, 0.3, 0.5, 0.93])
        quantiles = one.quantile(inner)
        for level, at in zip(inner, quantiles, strict=True):
            for t in range(SHAPE[0]):
                np.testing.assert_allclose(one.cdf(at[t])[t], level, rtol=1e-9)


def test_another_unit_changes_every_kind_alike(rng: np.random.Generator) -> None:
    for one in (Points(rng.normal(size=SHAPE)), *_kinds(rng)):
        other = one.affine(3.0, -2.0)
        np.testing.assert_allclose(other.centre, one.centre * 3 - 2, rtol=1e-9, atol=1e-12)
        if one.variance is not None and other.variance is not None:
            np.testing.assert_allclose(other.variance, one.variance * 9, rtol=1e-9)
            y = rng.normal(size=SHAPE[1])
            np.testing.assert_allclose(other.cdf(y * 3 - 2), one.cdf(y), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(other.crps(y * 3 - 2), one.crps(y) * 3, rtol=1e-9, atol=1e-12)


def test_infinite_quantiles_cover_and_have_no_variance_or_score() -> None:
    values = np.array([[[-np.inf, np.inf], [0.0, 1.0]]])
    one = Quantiles(np.array([0.05, 0.95]), values, point=np.array([[0.5, 0.5]]))
    assert one.centre.tolist() == [[0.5, 0.5]]
    assert np.isnan(one.noise_variance).tolist() == [[True, False]]
    assert np.isnan(one.crps(np.zeros(2))).tolist() == [[True, False]]
    assert one.quantile(np.array([0.05, 0.95]))[:, 0, 0].tolist() == [-np.inf, np.inf]


def test_between_an_infinite_and_a_finite_quantile_all_mass_is_at_infinity() -> None:
    """Nested intervals of which the two largest are infinite: what a wrapper with few calibration rows states."""
    levels = np.array([0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])
    values = np.array([-np.inf, -np.inf, -1.0, 0.0, 1.0, np.inf, np.inf])[None, None]
    one = Quantiles(levels, values, point=np.zeros((1, 1)))
    found = one.quantile(np.array([0.005, 0.01, 0.03, 0.05, 0.1, 0.2, 0.35, 0.8, 0.9, 0.97, 0.999]))[:, 0, 0]
    np.testing.assert_allclose(found, [-np.inf] * 5 + [-1.0, -0.5, 1.0] + [np.inf] * 3)
    # F is the inverse: F(y) is the share of levels whose quantile is at most y.
    grid = (np.arange(100_000) + 0.5) / 100_000
    below = one.quantile(grid)[:, 0, 0]
    for y in (-1e300, -1.0, -0.4, 0.0, 0.9, 1.0, 1e300):
        assert one.cdf(np.array([y]))[0, 0] == pytest.approx((below <= y).mean(), abs=2e-5)
    f = Forecast.of(one, np.array([7.0]))
    scores = score(f, ["coverage95", "width95", "interval_score95", "wis", "crps_mixture", "pinball"])
    assert scores["coverage95"] == 1.0
    assert scores["width95"] == scores["interval_score95"] == scores["wis"] == np.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Points(np.zeros(3)), r"values: expected shape \[\*, \*\]"),
        (lambda: Points(np.full((1, 1), np.nan)), "NaN or infinite"),
        (lambda: Normal(np.zeros((1, 2))), "state model_variance, noise_variance or both"),
        (lambda: Normal(np.zeros((1, 2)), noise_variance=-np.ones((1, 2))), "lowest value is -1, must be at least 0"),
        (lambda: Normal(np.zeros((1, 2)), np.ones((2, 2))), r"model_variance: expected shape \[1, 2\]"),
        (lambda: NormalInverseGamma(*np.zeros((4, 1, 2))), "nu: lowest value is 0, must be above 0"),
        (lambda: Quantiles(np.array([0.5]), np.zeros((1, 1, 1))), "at least 2, ascending"),
        (lambda: Quantiles(np.array([0.1, 1.0]), np.zeros((1, 1, 2))), "strictly between 0 and 1"),
        (lambda: Quantiles(np.array([0.1, 0.9]), np.array([[[1.0, 0.0]]])), "they cross"),
        (lambda: Quantiles(np.array([0.1, 0.9]), np.array([[[0.0, np.inf]]])), "state `point`"),
        (lambda: Quantiles(np.array([0.1, 0.9]), np.array([[[0.0, np.nan]]])), "1 quantiles are NaN"),
        (lambda: Quantiles(np.array([0.1, 0.9]), np.zeros((1, 1, 2)), tails="fat"), "none of flat, exponential"),  # type: ignore[arg-type]
        (
            lambda: Quantiles(np.array([0.1, 0.9]), np.zeros((1, 1, 2))).log_density(np.zeros(1)),
            "these quantiles have no density",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
