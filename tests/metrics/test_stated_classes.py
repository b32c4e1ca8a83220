"""What a Dirichlet states about its probabilities reaches the metrics of disagreement, also with one draw."""

import numpy as np
import pytest

from bench.metrics import (
    Dirichlet,
    Forecast,
    Probabilities,
    left_out,
    model_information,
    model_variance,
    mutual_information,
    score,
    total_variance,
)

RANDOM = np.random.default_rng(3)
CONCENTRATION = RANDOM.gamma(2.0, 1.0, size=(3, 8, 4)) + 0.2
LABELS = RANDOM.integers(0, 4, size=8)


def sampled(count: int) -> np.ndarray:
    """Return probabilities of each Dirichlet, as draws."""
    drawn = [RANDOM.dirichlet(alpha, size=count) for alpha in CONCENTRATION.reshape(-1, 4)]
    return np.stack(drawn, axis=1).reshape(count, 3, 8, 4).reshape(-1, 8, 4)


def test_one_draw_of_a_dirichlet_has_what_its_samples_have() -> None:
    forecast = Forecast.of(Dirichlet(CONCENTRATION), LABELS)
    many = sampled(20_000)
    np.testing.assert_allclose(model_information(forecast), mutual_information(many), rtol=0.02)
    # The variance over three draws is unbiased; that over all samples is of the mixture.
    centre = forecast.draws.mean(axis=0)
    between = np.square(forecast.draws - centre).mean(axis=0).sum(-1)
    within = model_variance(forecast) - total_variance(forecast.draws)
    np.testing.assert_allclose(within + between, total_variance(many), rtol=0.03)


def test_metrics_of_disagreement_apply_to_one_stated_draw() -> None:
    one = Forecast.of(Dirichlet(CONCENTRATION[:1]), LABELS)
    values = score(one)
    assert values["mutual_information"] == pytest.approx(float(model_information(one).mean()))
    assert {"aurc_mutual_information", "aurc_variance"} <= values.keys()
    plain = Forecast.of(Probabilities(one.draws), LABELS)
    assert "mutual_information" not in score(plain)
    assert "states no distribution" in left_out(plain)["mutual_information"]


def test_draws_of_probabilities_are_as_before() -> None:
    draws = sampled(5)
    forecast = Forecast.of(Probabilities(draws), LABELS)
    np.testing.assert_array_equal(model_information(forecast), mutual_information(draws))
    np.testing.assert_array_equal(model_variance(forecast), total_variance(draws))
