"""Corrections repair what was planted, and leave alone what is right."""

import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from bench.metrics import Forecast, Normal, Points, Probabilities, score
from bench.metrics.kept import Kept
from bench.metrics.recalibration import CLASSIFICATION, REGRESSION, recalibrated, vector_scaling
from bench.metrics.standard_normal import mean_distance, normal_cdf, without_torch

ROWS = 3000


def numbers(rng: np.random.Generator, factor: float) -> Kept:
    """Normals with the right mean and `factor` times the right variance."""
    parts = []
    for _ in range(2):
        mean, variance = rng.normal(size=ROWS), rng.gamma(2.0, 0.3, size=ROWS) + 0.1
        observed = mean + np.sqrt(variance) * rng.normal(size=ROWS)
        parts.append(Forecast.of(Normal(mean[None], noise_variance=factor * variance[None]), observed))
    return Kept(parts[0], parts[1])


def classes(rng: np.random.Generator, temperature: float, offset: float = 0.0) -> Kept:
    """Probabilities whose logits are too large by a factor, and shifted for the first class."""
    parts = []
    for _ in range(2):
        logits = 2 * rng.normal(size=(ROWS, 3))
        labels = np.array([rng.choice(3, p=p) for p in softmax(logits, axis=1)])
        said = logits * temperature + np.array([offset, 0.0, 0.0])
        parts.append(Forecast.of(Probabilities(softmax(said, axis=1)[None]), labels))
    return Kept(parts[0], parts[1])


@pytest.mark.parametrize("factor", [0.25, 1.0, 4.0])
def test_a_planted_factor_of_the_variance_is_found(rng: np.random.Generator, factor: float) -> None:
    kept = numbers(rng, factor)
    found = recalibrated(kept)
    assert list(found) == ["raw", *REGRESSION]
    scaled = found["variance scaling"]
    assert np.median(scaled.total_variance / kept.test.total_variance) == pytest.approx(1 / factor, rel=0.08)
    for name in ("variance scaling", "isotonic", "conformal"):
        assert score(found[name], ["coverage95"])["coverage95"] == pytest.approx(0.95, abs=0.015)
    raw, error = (score(found[name], ["quantile_error"])["quantile_error"] for name in ("raw", "isotonic"))
    assert error < 0.025
    assert error < raw or factor == 1.0
    # A proper score is no worse than before, up to what fitting costs.
    assert score(scaled, ["nll_mixture"])["nll_mixture"] < score(kept.test, ["nll_mixture"])["nll_mixture"] + 0.002


def test_a_planted_temperature_and_offset_are_found(rng: np.random.Generator) -> None:
    kept = classes(rng, 2.5)
    found = recalibrated(kept)
    assert list(found) == ["raw", *CLASSIFICATION]
    undone = found["temperature"].mean
    logs, before = np.log(undone), np.log(kept.test.mean)
    ratio = (logs[:, 0] - logs[:, 1]) / (before[:, 0] - before[:, 1])
    np.testing.assert_allclose(ratio, 1 / 2.5, rtol=0.08)
    np.testing.assert_array_equal(found["temperature"].predicted, kept.test.predicted)
    for name in ("temperature", "vector scaling", "isotonic"):
        assert score(found[name], ["ece"])["ece"] < 0.35 * score(kept.test, ["ece"])["ece"]
        assert score(found[name], ["brier"])["brier"] < score(kept.test, ["brier"])["brier"]
    assert score(found["conformal"], ["set_coverage"])["set_coverage"] == pytest.approx(0.95, abs=0.015)
    shifted = recalibrated(classes(rng, 1.0, offset=2.0))
    surprise = {name: score(f, ["nll_categorical"])["nll_categorical"] for name, f in shifted.items()}
    assert surprise["vector scaling"] < surprise["temperature"] < surprise["raw"] + 0.002


def test_what_cannot_be_fitted_is_left_out(rng: np.random.Generator) -> None:
    kept = numbers(rng, 1.0)
    assert recalibrated(Kept(kept.test)) == {}
    few = kept.test.at_rows(np.arange(ROWS) < 5)
    assert recalibrated(Kept(kept.test, few)) == {}
    points = Forecast.of(Points(rng.normal(size=(1, 40))), rng.normal(size=40))  # neither a spread nor a noise
    assert recalibrated(Kept(points, points)) == {}


@pytest.mark.parametrize("gain", [0.0, 30.0])
def test_vector_scaling_is_the_optimum_of_its_penalised_likelihood(rng: np.random.Generator, gain: float) -> None:
    """Also where the classes can be separated: `gain` is added to the logits of the labels."""
    logits, labels = rng.normal(size=(80, 4)), rng.integers(0, 4, 80)
    logits[np.arange(80), labels] += gain
    logs = log_softmax(logits, axis=1)
    held = Forecast.of(Probabilities(np.exp(logs)[None]), labels)
    identity = np.repeat([1.0, 0.0], 4)

    def loss(at: np.ndarray) -> float:
        found = log_softmax(logs * at[:4] + at[4:], axis=1)[np.arange(80), labels]
        return float(-found.mean() + np.square(at - identity).sum() / 160)

    best = minimize(loss, identity, method="BFGS", options={"gtol": 1e-8}).x
    found = vector_scaling(held, held)
    assert found is not None
    np.testing.assert_allclose(found.mean, softmax(logs * best[:4] + best[4:], axis=1), atol=2e-5)


def test_the_normal_without_torch_is_the_same_to_rounding(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    z, std = 3 * rng.normal(size=500), rng.gamma(2.0, size=500)
    expected = normal_cdf(z), mean_distance(z, std)
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of it would raise
    with without_torch():
        np.testing.assert_allclose(normal_cdf(z), expected[0], atol=4e-16)
        np.testing.assert_allclose(mean_distance(z, std), expected[1], rtol=1e-14)
    with pytest.raises(ImportError), without_torch(little=False):
        normal_cdf(z)
