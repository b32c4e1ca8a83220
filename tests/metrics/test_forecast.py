import math

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import Dirichlet, Forecast, Normal, Points, Sets, TargetScale, score


def test_mean_and_unbiased_variance_of_draws() -> None:
    forecast = Forecast("regression", np.array([1.0, 2.0]), np.array([[0.0, 2.0], [2.0, 4.0], [4.0, 6.0]]))
    assert (forecast.draw_count, forecast.row_count) == (3, 2)
    assert forecast.mean.tolist() == [2.0, 4.0]
    assert forecast.variance.tolist() == [4.0, 4.0]


def test_stated_variance_enters_by_the_law_of_total_variance(rng: np.random.Generator) -> None:
    means, variances = rng.normal(size=(4, 1)), rng.gamma(2.0, size=(4, 1))
    forecast = Forecast("regression", np.zeros(1), means, draw_variance=variances)
    assert forecast.variance[0] == pytest.approx(np.var(means, ddof=1) + np.mean(variances))
    assert forecast.spread[0] == pytest.approx(np.var(means, ddof=1))


def test_equal_draws_have_a_variance_of_exactly_zero() -> None:
    for dtype in (np.float32, np.float64):
        draws = np.full((7, 3), 0.1, dtype=dtype)
        assert Forecast("regression", np.zeros(3), draws).variance.tolist() == [0.0, 0.0, 0.0]


def test_float32_draws_are_averaged_in_float64() -> None:
    draws = np.full((100_000, 1), 0.1, dtype=np.float32)
    mean = Forecast("regression", np.zeros(1), draws).mean
    assert mean.dtype == np.float64
    assert mean[0] == pytest.approx(float(np.float32(0.1)), rel=1e-12)


def test_one_draw_has_no_variance_but_may_have_noise() -> None:
    one = Forecast("regression", np.zeros(2), np.ones((1, 2)), noise_variance=0.25)
    assert np.isnan(one.variance).all()
    assert one.predictive_variance.tolist() == [0.25, 0.25]
    stated = Forecast("regression", np.zeros(2), np.ones((1, 2)), np.full((1, 2), 2.0), noise_variance=0.25)
    assert stated.variance.tolist() == [2.0, 2.0]
    assert stated.predictive_variance.tolist() == [2.25, 2.25]
    with pytest.raises(UserError, match="noise_variance"):
        _ = Forecast("regression", np.zeros(2), np.ones((1, 2))).predictive_variance


def test_the_two_parts_of_the_variance_are_those_that_the_draws_state(rng: np.random.Generator) -> None:
    means, model, noise = rng.normal(size=(4, 3)), rng.gamma(2.0, size=(4, 3)), rng.gamma(2.0, size=(4, 3))
    spread = means.var(axis=0, ddof=1)
    both = Forecast.of(Normal(means, model, noise), np.zeros(3), noise_variance=7.0)
    np.testing.assert_allclose(both.model_part, spread + model.mean(axis=0))
    np.testing.assert_allclose(both.noise_part, noise.mean(axis=0))  # stated: the fitted one is not added
    np.testing.assert_allclose(both.total_variance, both.variance)
    latent = Forecast.of(Normal(means, model), np.zeros(3), noise_variance=7.0)
    np.testing.assert_allclose(latent.noise_part, 7.0)
    np.testing.assert_allclose(latent.total_variance, spread + model.mean(axis=0) + 7.0)
    points = Forecast("regression", np.zeros(3), means, noise_variance=7.0)
    np.testing.assert_array_equal(points.total_variance, points.predictive_variance)
    one = Forecast("regression", np.zeros(3), means[:1], noise[:1])
    np.testing.assert_array_equal(one.model_part, np.zeros(3))
    np.testing.assert_array_equal(one.total_variance, noise[0])


def test_some_rows_of_a_stated_prediction_are_those_of_the_prediction(rng: np.random.Generator) -> None:
    kept, y = np.arange(20) % 3 == 0, rng.normal(size=20)
    means, noise = rng.normal(size=(4, 20)), rng.gamma(2.0, size=(4, 20))
    whole = Forecast.of(Normal(means, noise_variance=noise), y)
    few = Forecast.of(Normal(means[:, kept], noise_variance=noise[:, kept]), y[kept])
    assert score(whole.at_rows(kept)) == score(few)
    sets = Sets(rng.random((20, 3)) < 0.5, Dirichlet(rng.gamma(1.0, size=(2, 20, 3)) + 0.1))
    labels = rng.integers(0, 3, 20)
    assert score(Forecast.of(sets, labels).at_rows(kept)) == score(Forecast.of(sets.rows(kept), labels[kept]))


def test_points_have_no_distribution_without_noise() -> None:
    points = Forecast("regression", np.zeros(2), np.ones((3, 2)))
    assert points.distribution is None
    with pytest.raises(UserError, match="points have no distribution"):
        _ = points.quantiles
    assert Forecast("regression", np.zeros(2), np.ones((3, 2)), noise_variance=1.0).distribution is not None
    with pytest.raises(UserError, match="give one of the two"):
        Forecast("regression", np.zeros(2), np.ones((1, 2)), np.ones((1, 2)), stated=Points(np.ones((1, 2))))


def test_classes_confidence_and_errors() -> None:
    draws = np.array([[[0.6, 0.4], [0.1, 0.9]], [[0.8, 0.2], [0.5, 0.5]]])
    forecast = Forecast("classification", np.array([0, 0]), draws)
    assert forecast.predicted.tolist() == [0, 1]
    np.testing.assert_allclose(forecast.confidence, [0.7, 0.7])
    assert forecast.correct.tolist() == [True, False]
    assert forecast.loss.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(forecast.uncertainty, [0.3, 0.3])
    assert forecast.sorted_loss.tolist() == [0.5, 0.5]


def test_regression_has_no_classes() -> None:
    with pytest.raises(UserError, match="classification"):
        _ = Forecast("regression", np.zeros(1), np.zeros((2, 1))).predicted


@pytest.mark.parametrize(
    "values", [(0.0, -1.0, 0.0, 1.0), (0.0, 1.0, 2.0, 1.0), (math.nan, 1.0, 0.0, 1.0), (0.0, math.inf, 0.0, 1.0)]
)
def test_an_impossible_scale_is_an_error(values: tuple[float, float, float, float]) -> None:
    with pytest.raises(UserError, match="scale"):
        TargetScale(*values)
