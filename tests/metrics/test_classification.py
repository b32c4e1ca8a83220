import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.metrics import (
    accuracy,
    brier_score,
    brier_split,
    categorical_nll,
    class_wise_calibration_error,
    top_k_accuracy,
)

Oracle = Callable[[str], Any]
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture
def data(rng: np.random.Generator) -> Data:
    p = rng.dirichlet(np.full(7, 0.5), size=2000)
    labels = np.where(rng.random(2000) < 0.6, p.argmax(axis=1), rng.integers(0, 7, 2000))
    return p, labels


def test_accuracy_top_k_and_nll_equal_scikit_learn(oracle: Oracle, data: Data) -> None:
    p, labels = data
    metrics = oracle("sklearn.metrics")
    assert accuracy(p, labels) == metrics.accuracy_score(labels, p.argmax(axis=1))
    assert categorical_nll(p, labels) == pytest.approx(metrics.log_loss(labels, p, labels=range(7)), rel=1e-12)
    for k in (1, 2, 5):
        assert top_k_accuracy(p, labels, k) == metrics.top_k_accuracy_score(labels, p, k=k, labels=range(7))
    assert top_k_accuracy(p, labels, 7) == 1.0


def test_brier_equals_its_definition_and_scikit_learn(oracle: Oracle, data: Data) -> None:
    p, labels = data
    definition = float(np.mean(np.sum((p - np.eye(7)[labels]) ** 2, axis=1)))
    assert brier_score(p, labels) == pytest.approx(definition, rel=1e-13)
    binary = np.column_stack([1 - p[:, 0], p[:, 0]])
    one_column = oracle("sklearn.metrics").brier_score_loss(labels == 0, p[:, 0])
    assert brier_score(binary, (labels == 0).astype(int)) == pytest.approx(2 * one_column, rel=1e-12)


def test_brier_of_float32_probabilities_is_summed_in_float64(rng: np.random.Generator) -> None:
    p = rng.dirichlet(np.ones(10), size=300_000).astype(np.float32)
    labels = rng.integers(0, 10, 300_000)
    exact = math.fsum(np.sum((p.astype(np.float64) - np.eye(10)[labels]) ** 2, axis=1)) / 300_000
    assert brier_score(p, labels) == pytest.approx(exact, rel=1e-12)


def test_brier_bounds_are_reached() -> None:
    one_hot = np.eye(3)
    assert brier_score(one_hot, [0, 1, 2]) == 0.0
    assert brier_score(one_hot, [1, 2, 0]) == 2.0


@pytest.mark.parametrize("bins", [1, 2, 15])
def test_the_parts_of_brier_add_up(bins: int, data: Data) -> None:
    split = brier_split(*data, bins=bins)
    total = split.reliability - split.resolution + split.uncertainty + split.within_bin
    assert total == pytest.approx(brier_score(*data), abs=1e-13)
    base = np.bincount(data[1], minlength=7) / 2000
    assert split.uncertainty == pytest.approx(1 - np.sum(base**2), abs=1e-13)
    assert split.reliability >= 0
    assert split.resolution >= 0


def test_murphys_three_parts_suffice_where_forecasts_in_a_bin_are_equal(rng: np.random.Generator) -> None:
    first = rng.choice([0.1, 0.3, 0.7, 0.9], size=1000)
    p = np.column_stack([first, 1 - first])
    labels = (rng.random(1000) > first).astype(int)
    split = brier_split(p, labels, bins=10)
    by_hand = sum(
        2 * np.mean(first == value) * (value - np.mean(labels[first == value] == 0)) ** 2
        for value in (0.1, 0.3, 0.7, 0.9)
    )
    assert split.within_bin == pytest.approx(0.0, abs=1e-13)
    assert split.reliability == pytest.approx(by_hand, abs=1e-13)


def test_class_wise_error_is_the_mean_of_binary_errors_of_torchmetrics(oracle: Oracle, data: Data) -> None:
    p, labels = data
    torch = oracle("torch")
    binary = oracle("torchmetrics.functional.classification").binary_calibration_error
    errors = [float(binary(torch.tensor(p[:, c]), torch.tensor((labels == c).astype(int)))) for c in range(7)]
    assert class_wise_calibration_error(p, labels) == pytest.approx(np.mean(errors), abs=1e-6)


def test_equal_probabilities_rank_the_lower_class_first() -> None:
    p = np.full((3, 3), 1 / 3)
    assert accuracy(p, [0, 1, 2]) == pytest.approx(1 / 3)
    assert top_k_accuracy(p, [0, 1, 2], k=1) == pytest.approx(1 / 3)
    assert top_k_accuracy(p, [0, 1, 2], k=2) == pytest.approx(2 / 3)


def test_a_label_given_no_probability_has_infinite_nll() -> None:
    assert categorical_nll([[1.0, 0.0], [0.5, 0.5]], [1, 0]) == math.inf
