"""The paper's quantities as public code computes them, against the plain arithmetic that the code does."""

import math

import numpy as np
import pytest
from scipy.special import softmax

from bench.metrics import Forecast, Intervals, Logits, catalogue, score
from bench.metrics.public_code import METRICS, all_pairs_nll, captured_width, half_open_calibration_error

NAMES = [metric.name for metric in METRICS if metric.compute is not None]
THREE = Intervals(np.zeros(3), np.array([2.0, 4.0, 10.0]))


def test_width_counts_only_the_rows_that_are_captured() -> None:
    assert captured_width([1.0, 5.0, 5.0], THREE) == pytest.approx((2 + 10) / 2)
    assert captured_width([1.0, 4.0, 5.0], THREE) == pytest.approx((2 + 10) / 2), "a bound is outside"
    assert math.isnan(captured_width([-1.0, 4.0, 11.0], THREE))


def test_the_truth_may_be_captured_where_the_observation_is_not() -> None:
    draws = np.array([[0.0, 0.0], [2.0, 4.0]])  # 1 +- 3 sqrt(2) and 2 +- 3 sqrt(8)
    observed = np.array([1.0, 50.0])
    values = score(Forecast("regression", observed, draws, truth=np.array([9.0, 3.0])), NAMES)
    assert values["mpiw_captured"] == pytest.approx(6 * math.sqrt(2))
    assert values["mpiw_captured_truth"] == pytest.approx(6 * math.sqrt(8))
    assert values["picp_truth"] == 0.5
    assert not {"picp_truth", "mpiw_captured_truth"} & score(Forecast("regression", observed, draws), NAMES).keys()


def _broadcast(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> float:
    """Return the mean over an N x N array, rows by prediction and columns by target, as numpy makes it."""
    scaled = std / np.std(mean) / np.linalg.norm(std)
    squares = (y - mean[:, None]) ** 2 / (2 * scaled**2)
    assert squares.shape == (y.size, y.size)
    return float(np.average(np.average(0.5 * np.log(2 * np.pi * scaled**2) + squares, axis=0)))


def test_all_pairs_are_the_broadcast_array_without_making_it(rng: np.random.Generator) -> None:
    observed = rng.normal(20.0, 5.0, 83)
    draws = observed + rng.normal(0.7, 3.0, 83) + rng.gamma(1.0, size=83) * rng.normal(size=(11, 83))
    unit = (observed - observed.mean()) / observed.std()
    own = (draws - observed.mean()) / observed.std()
    expected = _broadcast(unit, own.mean(axis=0), own.std(axis=0, ddof=1))
    assert score(Forecast("regression", observed, draws), NAMES)["nll_all_pairs"] == pytest.approx(expected)
    # Neither the unit of the target nor the size of the variances changes it.
    other = Forecast("regression", 3 * observed - 7, 3 * draws - 7)
    assert score(other, NAMES)["nll_all_pairs"] == pytest.approx(expected)
    mean, spread = draws.mean(axis=0), draws.var(axis=0, ddof=1)
    assert all_pairs_nll(observed, mean, 1e-3 * spread) == pytest.approx(expected)


def test_all_pairs_of_equal_variances_have_a_closed_form(rng: np.random.Generator) -> None:
    y, mean = rng.normal(size=30), rng.normal(size=30)
    n = (mean - y.mean()) / y.std()
    squares = 1 + n.mean() ** 2 + n.var()
    expected = 0.5 * (math.log(2 * math.pi / (30 * n.var())) + 30 * n.var() * squares)
    assert all_pairs_nll(y, mean, 0.04) == pytest.approx(expected)


def test_all_pairs_are_undefined_without_variance(rng: np.random.Generator) -> None:
    y, mean = rng.normal(size=5), rng.normal(size=5)
    assert math.isnan(all_pairs_nll(y, mean, [1.0, 1.0, 0.0, 1.0, 1.0]))
    assert math.isnan(all_pairs_nll(np.ones(5), mean, 1.0))
    assert math.isnan(all_pairs_nll(y, np.ones(5), 1.0))


def _classes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(0.0, 2.0, (7, 200, 4)), rng.integers(0, 4, 200)


def test_probabilities_are_the_softmax_of_the_mean_logits(rng: np.random.Generator) -> None:
    logits, labels = _classes(rng)
    shares = softmax(logits.mean(axis=0), axis=1)
    hits = np.eye(4)[labels]
    values = score(Forecast("classification", labels, softmax(logits, axis=2).astype(np.float32)), NAMES)
    assert values["accuracy_mean_logits"] == np.mean(shares.argmax(axis=1) == labels)
    assert values["brier_mean_logits"] == pytest.approx(np.mean(np.sum((shares - hits) ** 2, axis=1)), rel=1e-6)
    assert values["nll_mean_logits"] == pytest.approx(-np.mean(np.log(shares[hits == 1])), rel=1e-6)
    usual = score(Forecast("classification", labels, softmax(logits, axis=2)))
    assert values["nll_mean_logits"] != pytest.approx(usual["nll_categorical"])


def test_logits_far_apart_keep_their_mean_and_probabilities_of_zero_are_small() -> None:
    far = np.array([[[0.0, 1500.0]], [[0.0, -1498.0]]])  # the mean is 1 in favour of the second class
    stated = Forecast.of(Logits(far), np.array([1]))
    assert stated.geometric_mean == pytest.approx(softmax([[0.0, 1.0]], axis=1))
    rounded = Forecast("classification", np.array([1]), np.array([[[0.0, 1.0]], [[0.5, 0.5]]], dtype=np.float32))
    smallest = math.log(float(np.finfo(np.float32).smallest_subnormal))
    assert rounded.geometric_mean == pytest.approx(softmax([[smallest / 2, 0.0]], axis=1))


def test_calibration_error_has_ten_bins_that_are_open_above(rng: np.random.Generator) -> None:
    logits, labels = _classes(rng)
    confidence = softmax(logits.mean(axis=0), axis=1).max(axis=1).astype(np.float32).astype(np.float64)
    right = logits[-1].argmax(axis=1) == labels
    expected = 0.0
    for low in range(10):
        own = (confidence >= low / 10) & (confidence < (low + 1) / 10)
        expected += abs(right[own].mean() - confidence[own].mean()) * own.mean() if own.any() else 0.0
    values = score(Forecast("classification", labels, softmax(logits, axis=2)), NAMES)
    assert values["ece_last_pass"] == pytest.approx(expected)
    # A confidence that float32 rounds to 1 is in no bin: two wrong rows of three add nothing.
    assert half_open_calibration_error([0.5, 1 - 1e-9, 1.0], [True, False, False]) == pytest.approx(0.5 / 3)


def test_selection_by_variance_keeps_the_rows_of_least_variance(rng: np.random.Generator) -> None:
    logits, labels = _classes(rng)
    shares = softmax(logits, axis=2)
    order = np.argsort(shares.var(axis=0, ddof=1).sum(axis=1))
    wrong = (logits.mean(axis=0).argmax(axis=1) != labels)[order]
    expected = np.mean([wrong[:kept].mean() for kept in range(1, 201)])
    found = score(Forecast("classification", labels, shares), NAMES)["aurc_variance_mean_logits"]
    assert found == pytest.approx(expected)


def test_all_of_them_are_on_request_and_say_where_they_come_from() -> None:
    for metric in METRICS:
        assert catalogue()[metric.name].on_request
        assert "noise_injection_uncertainty" in metric.source
