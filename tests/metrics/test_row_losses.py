"""Losses at every row, against the metrics that are their means."""

import numpy as np
import pytest

from bench.metrics import accuracy, brier_score, categorical_nll, mean_absolute_error, root_mean_squared_error
from bench.metrics.row_losses import METRICS_OF_ROWS, losses_of_rows

RNG = np.random.default_rng(0)


def test_metrics_are_means_of_the_losses() -> None:
    mean, observed = RNG.normal(size=50), RNG.normal(size=50)
    p, labels = RNG.dirichlet(np.ones(4), size=50), RNG.integers(0, 4, 50)
    numbers, classes = losses_of_rows(mean, observed), losses_of_rows(p, labels)
    assert np.sqrt(numbers["rmse"].mean()) == pytest.approx(root_mean_squared_error(mean, observed))
    assert numbers["mae"].mean() == pytest.approx(mean_absolute_error(mean, observed))
    assert 1.0 - classes["accuracy"].mean() == pytest.approx(accuracy(p, labels))
    assert classes["brier"].mean() == pytest.approx(brier_score(p, labels))
    assert classes["nll_categorical"].mean() == pytest.approx(categorical_nll(p, labels))
    assert numbers.keys() | classes.keys() == METRICS_OF_ROWS


def test_a_label_without_probability_has_an_infinite_loss() -> None:
    assert losses_of_rows(np.eye(2), np.array([0, 0]))["nll_categorical"].tolist() == [0.0, np.inf]
