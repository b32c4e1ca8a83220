"""The oracle states what the dataset knows, in whatever units it is trained."""

import numpy as np
import pytest

from bench.api import Normal, NormalInverseGamma, NormalMixture, Prediction, Problem
from bench.methods.oracle import Oracle
from bench.plugins.registry import Registry
from bench.testing.estimator_subject import fit_cell


def stated_by(oracle: Oracle, dataset: str, **options: object) -> tuple[Prediction, Prediction]:
    """What the oracle predicts at the test rows in original units, and the law."""
    split = Registry().make("dataset", dataset, {"rows": 40, "test_rows": 30, **options}).load(0)
    cell = fit_cell(oracle, split, validation=0.25)
    posterior = split.law.given(*(part[cell.data.rows.train.numpy()] for part in (split.train_x, split.train_y)))
    exact = split.law if oracle.knows == "law" else posterior
    return cell.data.original(cell.predict(5)), exact.at(split.test_x)


@pytest.mark.parametrize(
    ("noise", "kind"), [("growing", Normal), ("skewed", NormalMixture), ("heavy-tailed", NormalInverseGamma)]
)
def test_it_states_the_law_in_original_units(noise: str, kind: type) -> None:
    found, exact = stated_by(Oracle(), "known-noise", noise=noise)
    assert isinstance(found, kind)
    y = np.linspace(-1, 1, 30)
    np.testing.assert_allclose(found.cdf(y), exact.cdf(y), atol=1e-5)  # type: ignore[union-attr]


def test_it_states_the_posterior_given_the_rows_that_train() -> None:
    for dataset in ("known-linear", "known-process"):
        found, exact = stated_by(Oracle(knows="posterior"), dataset)
        assert isinstance(found, Normal)
        assert isinstance(exact, Normal)
        np.testing.assert_allclose(found.mean, exact.mean, atol=1e-4)
        np.testing.assert_allclose(found.model_variance, exact.model_variance, rtol=1e-3, atol=1e-5)  # type: ignore[arg-type]


def test_it_states_the_probabilities_of_classes() -> None:
    found, exact = stated_by(Oracle(), "known-classes", label_noise=0.2)
    np.testing.assert_allclose(found.probabilities, exact.probabilities, atol=1e-5)  # type: ignore[union-attr]


def test_it_refuses_data_without_a_law_or_a_posterior_in_one_line() -> None:
    plain = Problem("regression", (1,), 1)
    assert Oracle().skip(plain) == "the dataset states no law; use it on the datasets of suite truth"
    law = Registry().make("dataset", "known-noise", {}).load(0).problem
    assert Oracle().skip(law) is None
    assert Oracle(knows="posterior").skip(law) == "the law of the dataset has no exact posterior; use knows = 'law'"
