import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import (
    Forecast,
    catalogue,
    entropy,
    expected_entropy,
    mutual_information,
    predictive_entropy,
    score,
    total_variance,
    variation_ratio,
)


def test_entropies_equal_scipy(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    draws = rng.dirichlet(np.full(4, 0.3), size=(6, 50))
    stats = oracle("scipy.stats")
    total, expected = stats.entropy(draws.mean(axis=0), axis=1), stats.entropy(draws, axis=2).mean(axis=0)
    np.testing.assert_allclose(predictive_entropy(draws), total, atol=1e-12)
    np.testing.assert_allclose(expected_entropy(draws), expected, atol=1e-12)
    np.testing.assert_allclose(mutual_information(draws), total - expected, atol=1e-12)


def test_extremes() -> None:
    certain, even = [1.0, 0.0], [0.5, 0.5]
    np.testing.assert_allclose(entropy([certain, even]), [0.0, math.log(2)], atol=1e-15)
    disagreeing = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert mutual_information(disagreeing)[0] == pytest.approx(math.log(2))
    assert expected_entropy(disagreeing)[0] == 0.0
    assert total_variance(disagreeing)[0] == pytest.approx(1.0)
    agreeing = np.array([[[0.3, 0.7]], [[0.3, 0.7]], [[0.3, 0.7]]])
    assert mutual_information(agreeing)[0] == pytest.approx(0.0, abs=1e-15)
    assert total_variance(agreeing)[0] == 0.0


def test_total_variance_is_the_trace_of_the_covariance_over_draws(rng: np.random.Generator) -> None:
    draws = rng.dirichlet(np.ones(3), size=(8, 20))
    expected = [np.trace(np.cov(draws[:, row], rowvar=False)) for row in range(20)]
    np.testing.assert_allclose(total_variance(draws), expected, rtol=1e-12)


def test_variation_ratio_equals_scipys_mode(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    draws = rng.dirichlet(np.full(5, 0.5), size=(9, 200))
    votes = oracle("scipy.stats").mode(draws.argmax(axis=2), axis=0).count
    np.testing.assert_allclose(variation_ratio(draws), 1 - votes / 9, atol=1e-15)


def test_stored_descriptions_are_means_over_rows(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    draws = rng.dirichlet(np.full(4, 0.3), size=(6, 50))
    stats = oracle("scipy.stats")
    values = score(Forecast("classification", rng.integers(0, 4, 50), draws))
    total, expected = stats.entropy(draws.mean(axis=0), axis=1), stats.entropy(draws, axis=2).mean(axis=0)
    assert values["predictive_entropy"] == pytest.approx(total.mean())
    assert values["mutual_information"] == pytest.approx((total - expected).mean())
    assert values["variation_ratio"] == pytest.approx(variation_ratio(draws).mean())
    one = score(Forecast("classification", rng.integers(0, 4, 50), draws[:1]))
    assert "predictive_entropy" in one
    assert not {"mutual_information", "variation_ratio"} & one.keys()
    for name in ("predictive_entropy", "mutual_information", "variation_ratio"):
        assert (catalogue()[name].direction, catalogue()[name].biased_in_draws) == ("none", True)


def test_descriptions_grow_with_the_number_of_draws(rng: np.random.Generator) -> None:
    """The reason why they are compared at equal T: the same q(w), more draws, larger values."""
    draws = rng.dirichlet(np.full(3, 0.8), size=(60, 400))
    for metric in (predictive_entropy, mutual_information, variation_ratio):
        means = [metric(draws[:count]).mean() for count in (2, 6, 60)]
        assert means == sorted(means)
        assert means[2] > 1.05 * means[0]


@pytest.mark.parametrize("score", [mutual_information, total_variance, variation_ratio])
def test_disagreement_needs_two_draws(score: Callable[[Any], Any]) -> None:
    with pytest.raises(UserError, match="at least 2"):
        score([[[0.5, 0.5]]])
