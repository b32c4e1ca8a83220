"""Predictions of classes against scipy and simulation."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import Dirichlet, Forecast, Logits, Probabilities, Sets, score


def test_logits_are_probabilities_by_softmax(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    logits = rng.normal(0, 300, size=(2, 5, 3))
    np.testing.assert_allclose(Logits(logits).probabilities, oracle("scipy.special").softmax(logits, -1), rtol=1e-12)


def test_a_dirichlet_has_the_parts_of_its_sample(rng: np.random.Generator) -> None:
    concentration = np.array([0.5, 2.0, 4.0])
    one = Dirichlet(concentration[None, None])
    p = rng.dirichlet(concentration, size=400_000)
    np.testing.assert_allclose(one.probabilities[0, 0], p.mean(axis=0), atol=2e-3)
    np.testing.assert_allclose(one.model_variance[0, 0], p.var(axis=0), atol=1e-3)
    np.testing.assert_allclose(one.noise_variance[0, 0], (p * (1 - p)).mean(axis=0), atol=1e-3)
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(-1)
    assert one.expected_entropy[0, 0] == pytest.approx(entropy.mean(), abs=2e-3)


def test_a_forecast_of_stated_classes_scores_as_its_probabilities(rng: np.random.Generator) -> None:
    stated = Dirichlet(rng.gamma(1.0, size=(2, 30, 4)) + 0.1)
    labels = rng.integers(0, 4, 30)
    plain = Forecast("classification", labels, stated.probabilities)
    sets = Sets(rng.random((30, 4)) < 0.5, Probabilities(stated.probabilities))
    found, of_means = score(Forecast.of(stated, labels)), score(plain)
    own = {"mutual_information", "aurc_mutual_information", "aurc_variance"}  # with what a Dirichlet states itself
    assert {name for name in found if found[name] != of_means[name]} == own
    assert score(Forecast.of(sets, labels)) == score(replace(plain, sets=sets.members))
    np.testing.assert_array_equal(sets.expected_entropy, Probabilities(stated.probabilities).expected_entropy)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Probabilities(np.full((1, 1, 2), 0.7)), "sum is off 1"),
        (lambda: Logits(np.zeros((1, 1, 1))), "one class only"),
        (lambda: Dirichlet(np.zeros((1, 1, 2))), "concentration: lowest value is 0, must be above 0"),
        (lambda: Sets(np.ones((1, 2)), Logits(np.zeros((1, 1, 2)))), "expected booleans"),  # type: ignore[arg-type]
        (lambda: Sets(np.ones((1, 3), bool), Logits(np.zeros((1, 1, 2)))), r"of shape \[1, 2\]"),
    ],
)
def test_mistakes_are_told_in_one_line(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make()
