"""Metrics against a known law: closed forms, other routes to the same integral, and planted faults."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, t

from bench.errors import UserError
from bench.metrics import (
    Forecast,
    Mixture,
    Normal,
    NormalInverseGamma,
    NormalMixture,
    Points,
    Probabilities,
    Quantiles,
    RegressionPrediction,
    catalogue,
    score,
)
from bench.metrics.law_comparison import gaussian_cost
from bench.metrics.law_quadrature import distances, expectation_rule, relative_entropy

ROWS = 40
Array = np.ndarray[Any, Any]


def normal(mean: Array, noise: Array | float, model: Array | float | None = None) -> Normal:
    full = np.broadcast_to(mean, (1, ROWS))
    extra = None if model is None else np.broadcast_to(model, (1, ROWS))
    return Normal(full, extra, np.broadcast_to(noise, (1, ROWS)))


def student(mean: Array, scale: float, degrees: float = 3.0) -> NormalInverseGamma:
    full, alpha = np.broadcast_to(mean, (1, ROWS)), np.full((1, ROWS), degrees / 2)
    return NormalInverseGamma(full, np.full((1, ROWS), 1e12), alpha, scale**2 * alpha)


def bimodal(mean: Array) -> NormalMixture:
    parts = np.broadcast_to(mean, (1, ROWS))[..., None] + np.array([-1.0, 1.0])
    return NormalMixture(parts, np.full_like(parts, 0.3))


def values_of(stated: RegressionPrediction, law: RegressionPrediction, **known: Any) -> dict[str, float]:
    names = [name for name, metric in catalogue().items() if "law" in metric.needs]
    observed = np.zeros(stated.row_count)
    return score(Forecast.of(stated, observed, law=law, **known), names)


@pytest.fixture
def mean(rng: np.random.Generator) -> Array:
    return rng.normal(size=ROWS)


def test_relative_entropy_of_two_normals_is_the_closed_form(mean: Array) -> None:
    found = relative_entropy(normal(mean, 0.5), Mixture(normal(mean + 0.7, 2.0)))
    exact = 0.5 * (np.log(2.0 / 0.5) + (0.5 + 0.7**2) / 2.0 - 1)
    np.testing.assert_allclose(found, exact, rtol=1e-10)


@pytest.mark.parametrize("kind", ["student", "bimodal"])
def test_the_rule_of_a_law_integrates_what_its_samples_average(kind: str, mean: Array) -> None:
    law = student(mean, 0.4) if kind == "student" else bimodal(mean)
    nodes, weights = expectation_rule(law)
    assert weights.sum() == pytest.approx(1)
    variance = law.noise_variance
    assert variance is not None
    np.testing.assert_allclose(weights @ nodes, mean, atol=1e-9)
    np.testing.assert_allclose(weights @ np.square(nodes - mean), variance[0], rtol=1e-9)
    # The entropy by adaptive quadrature of scipy, or of the density on a fine grid.
    own = -weights @ np.array([Mixture(law).log_density(row) for row in nodes])
    grid = np.linspace(-9, 9, 20001)
    density = 0.5 * (norm.pdf(grid, -1, 0.3**0.5) + norm.pdf(grid, 1, 0.3**0.5))
    fine = -np.trapezoid(density * np.log(np.maximum(density, 1e-300)), grid)
    exact = t(3, scale=0.4).entropy() if kind == "student" else fine
    np.testing.assert_allclose(own, exact, rtol=2e-4)


def test_distances_of_shifted_and_of_widened_normals_are_the_closed_forms(mean: Array) -> None:
    law, moved, wide = normal(mean, 0.25), normal(mean + 0.3, 0.25), normal(mean, 1.0)
    shifted = Forecast.of(moved, mean, law=law).against_law.distances
    np.testing.assert_allclose(shifted[1], 0.3, rtol=1e-3)  # a shift moves all of the mass by as much
    widened = Forecast.of(wide, mean, law=law).against_law.distances
    np.testing.assert_allclose(widened[1], 0.5 * np.sqrt(2 / np.pi), rtol=2e-3)  # (1 - 1/2) E|Z|
    # Cramer: E|X - Y| - 1/2 E|X - X'| - 1/2 E|Y - Y'| with sums of independent normals.
    exact = np.sqrt(2 / np.pi) * (np.sqrt(1.25) - 0.5 * np.sqrt(2.0) - 0.5 * np.sqrt(0.5))
    np.testing.assert_allclose(widened[0], exact, rtol=1e-4)


@pytest.mark.parametrize("kind", ["student", "bimodal"])
def test_regret_in_crps_is_the_expected_crps_above_that_of_the_law(kind: str, mean: Array) -> None:
    law = student(mean, 0.4) if kind == "student" else bimodal(mean)
    forecast = Mixture(Normal(np.stack([mean - 0.2, mean + 0.4]), noise_variance=np.full((2, ROWS), 0.5)))
    squared, _ = distances(law, forecast, forecast.quantile(np.arange(1, 20) / 20))
    levels = (np.arange(1000) + 0.5) / 1000
    y = law.quantile(levels)[:, 0]
    gaps = [forecast.crps(row) - Mixture(law).crps(row) for row in y]
    np.testing.assert_allclose(squared, np.mean(gaps, axis=0), rtol=2e-2)


@pytest.mark.parametrize("kind", ["student", "bimodal", "normal"])
def test_relative_entropy_of_quantiles_is_that_of_a_fine_grid(kind: str, mean: Array) -> None:
    """Their density jumps, which Gauss-Hermite would not see."""
    law = {"student": student(mean, 0.4), "bimodal": bimodal(mean), "normal": normal(mean, 0.5)}[kind]
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    stated = Quantiles(levels, np.moveaxis(law.quantile(levels), 0, -1) + 0.1, tails="exponential")
    found = relative_entropy(law, Mixture(stated))
    few = slice(2)
    places = law.rows(few).quantile((np.arange(10_000) + 0.5) / 10_000)[:, 0]
    exact = law.rows(few).log_density(places) - stated.rows(few).log_density(places)
    np.testing.assert_allclose(found[few], exact[:, 0].mean(axis=0), rtol=0.02)
    assert found.min() > 0


def test_an_infinite_quantile_has_no_distance(mean: Array) -> None:
    ends = np.stack([mean - 1, np.full(ROWS, np.inf)], axis=-1)[None]
    stated = Quantiles(np.array([0.05, 0.95]), ends, point=mean[None])
    assert "law_wasserstein" not in values_of(stated, normal(mean, 1.0))


def test_the_law_itself_loses_nothing(mean: Array) -> None:
    for law in (normal(mean, 0.3), student(mean, 0.4), bimodal(mean)):
        found = values_of(law, law)
        for name in ("law_regret", "crps_regret", "law_wasserstein", "mean_cost", "noise_cost", "model_cost"):
            assert found[name] == pytest.approx(0, abs=1e-9), name
        assert found["conditional_coverage_error"] == pytest.approx(0, abs=1e-8)
        assert found["noise_ratio"] == pytest.approx(1)
        assert "model_ratio" not in found  # there is no error that a model variance could match


def test_costs_of_mean_and_variance_add_up_to_the_regret_of_normals(mean: Array, rng: np.random.Generator) -> None:
    """Where errors of the mean are the same at all rows, their parts are exact."""
    law = normal(mean, 0.4)
    stated = normal(mean + 0.5 * rng.choice([-1.0, 1.0], ROWS), 0.3, 0.1)
    found = values_of(stated, law)
    assert found["mean_cost"] + found["variance_cost"] == pytest.approx(found["law_regret"], rel=1e-9)
    assert found["mean_cost"] == pytest.approx(0.5 * np.log1p(0.25 / 0.4))
    assert found["noise_cost"] == pytest.approx(0.5 * (np.log(0.55 / 0.65) + 0.65 / 0.55 - 1))
    assert found["model_cost"] == pytest.approx(0.5 * (np.log(0.5 / 0.65) + 0.65 / 0.5 - 1))
    assert found["model_ratio"] == pytest.approx((0.1 / 0.25) ** 0.5)


def test_coverage_is_that_of_each_row(mean: Array) -> None:
    """Intervals that are right on average, and at no row."""
    true = np.where(np.arange(ROWS) < ROWS // 2, 0.25, 4.0)
    found = values_of(normal(mean, 1.0), normal(mean, true))
    wide, narrow = (2 * norm.cdf(1.6448536 / std) - 1 for std in (0.5, 2.0))
    assert found["conditional_coverage_error"] == pytest.approx((wide - 0.9 + 0.9 - narrow) / 2, rel=1e-5)
    assert found["worst_coverage"] == pytest.approx(narrow, rel=1e-5)


def test_a_posterior_is_at_no_distance_of_itself_and_a_wider_one_at_a_known(mean: Array) -> None:
    law, posterior = normal(mean + 0.1, 0.4), normal(mean, 0.4, 0.04)
    exact = values_of(posterior, law, posterior=posterior)
    assert exact["posterior_distance"] == pytest.approx(0)
    assert exact["function_rank"] == pytest.approx(norm.cdf(0.5))
    wider = values_of(normal(mean, 0.4, 0.16), law, posterior=posterior)
    assert wider["posterior_ratio"] == pytest.approx(2)
    assert wider["posterior_distance"] == pytest.approx(1)


def test_classes_against_their_probabilities() -> None:
    law, stated = (Probabilities(np.array([[[p, 1 - p]]] * 1)) for p in (0.7, 0.9))
    found = score(Forecast.of(stated, np.array([0]), law=law))
    assert found["class_regret"] == pytest.approx(0.7 * np.log(0.7 / 0.9) + 0.3 * np.log(3.0))
    assert found["brier_regret"] == pytest.approx(2 * 0.2**2)
    assert found["class_distance"] == found["confidence_gap"] == found["confidence_error"] == pytest.approx(0.2)
    entropies = [-(p * np.log(p) + (1 - p) * np.log(1 - p)) for p in (0.9, 0.7)]
    assert found["noise_entropy_ratio"] == pytest.approx(entropies[0] / entropies[1])


def test_without_a_law_there_is_no_value_and_the_reason_says_so(mean: Array) -> None:
    from bench.metrics import left_out

    forecast = Forecast.of(normal(mean, 1.0), mean)
    needing = {
        name for name, metric in catalogue().items() if "law" in metric.needs and metric.task != "classification"
    }
    assert needing
    assert not needing & score(forecast).keys()
    reasons = left_out(forecast)
    assert {reasons[name] for name in needing} == {"the law of the targets is unknown"}


def test_a_law_that_does_not_fit_is_refused(mean: Array) -> None:
    with pytest.raises(UserError, match="law: expected one draw of 40 rows, got 1 of 39"):
        Forecast.of(normal(mean, 1.0), mean, law=normal(mean, 1.0).rows(slice(39)))
    with pytest.raises(UserError, match="law: a Probabilities does not belong to a regression"):
        Forecast.of(normal(mean, 1.0), mean, law=Probabilities(np.full((1, ROWS, 2), 0.5)))
    with pytest.raises(UserError, match="no rule is known for a Points"):
        expectation_rule(Points(mean[None]))


def test_rows_of_a_forecast_keep_their_law(mean: Array) -> None:
    law = normal(mean, np.linspace(0.1, 2, ROWS))
    whole = Forecast.of(normal(mean + 0.3, 1.0), mean, law=law, posterior=normal(mean, 1.0, 0.5))
    kept = np.arange(ROWS) % 3 == 0
    np.testing.assert_allclose(whole.at_rows(kept).against_law.log_regret, whole.against_law.log_regret[kept])


def test_a_variance_of_nothing_costs_without_end() -> None:
    found = gaussian_cost(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]))
    assert found[0] == np.inf
    assert found[1] == 0
    assert found[2] == pytest.approx(0.5 * (np.log(2) - 0.5))
