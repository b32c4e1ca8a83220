from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.errors import UserError
from bench.metrics import (
    adaptive_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
    root_mean_squared_calibration_error,
    smooth_calibration_error,
)
from bench.metrics.bins import bin_index

Oracle = Callable[[str], Any]
Data = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture
def data(rng: np.random.Generator) -> Data:
    p = rng.dirichlet(np.full(5, 0.4), size=3000)
    labels = np.where(rng.random(3000) < 0.5, p.argmax(axis=1), rng.integers(0, 5, 3000))
    return p, labels


def _top(data: Data) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    p, labels = data
    return p.max(axis=1), p.argmax(axis=1) == labels


@pytest.mark.parametrize("bins", [1, 7, 10, 15, 100])
def test_ece_and_mce_equal_torchmetrics(bins: int, oracle: Oracle, data: Data) -> None:
    torch = oracle("torch")
    theirs = oracle("torchmetrics.functional.classification").multiclass_calibration_error
    p, labels = (torch.tensor(array) for array in data)
    ece = float(theirs(p, labels, num_classes=5, n_bins=bins, norm="l1"))
    mce = float(theirs(p, labels, num_classes=5, n_bins=bins, norm="max"))
    assert expected_calibration_error(*_top(data), bins=bins) == pytest.approx(ece, abs=1e-6)
    assert maximum_calibration_error(*_top(data), bins=bins) == pytest.approx(mce, abs=1e-6)


def test_ece_equals_torchmetrics_on_edges_and_at_1(oracle: Oracle, rng: np.random.Generator) -> None:
    torch = oracle("torch")
    theirs = oracle("torchmetrics.functional.classification").binary_calibration_error
    confidence = torch.linspace(0, 1, 16, dtype=torch.float64).repeat(40).numpy()
    correct = rng.random(confidence.size) < 0.5
    expected = float(theirs(torch.tensor(confidence), torch.tensor(correct.astype(int)), n_bins=15))
    assert expected_calibration_error(confidence, correct) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("bins", [1, 7, 10, 15, 100])
def test_l2_ece_equals_torchmetrics(bins: int, oracle: Oracle, data: Data) -> None:
    torch = oracle("torch")
    theirs = oracle("torchmetrics.functional.classification").multiclass_calibration_error
    p, labels = (torch.tensor(array) for array in data)
    expected = float(theirs(p, labels, num_classes=5, n_bins=bins, norm="l2"))
    assert root_mean_squared_calibration_error(*_top(data), bins=bins) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("bins", [1, 7, 15])
def test_debiased_ece_equals_torchmetrics(bins: int, oracle: Oracle, data: Data) -> None:
    torch = oracle("torch")
    theirs = oracle("torchmetrics.functional.classification.calibration_error")._ce_compute
    confidence, correct = _top(data)
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)
    both = torch.tensor(confidence), torch.tensor(correct.astype(float))
    expected = float(theirs(*both, edges, norm="l2", debias=True))
    assert expected > 1e-3
    assert debiased_calibration_error(confidence, correct, bins=bins) == pytest.approx(expected, abs=1e-6)


def test_the_debiased_square_is_unbiased(rng: np.random.Generator) -> None:
    """Of 30 rows at three confidences the l2 error is well above the true one, the debiased square is not."""
    confidence = np.repeat([0.55, 0.7, 0.9], 10)
    chance = confidence - 0.1
    plain, debiased = [], []
    for _ in range(4000):
        correct = rng.random(30) < chance
        plain.append(root_mean_squared_calibration_error(confidence, correct) ** 2)
        own = [(correct[i : i + 10].mean(), confidence[i]) for i in (0, 10, 20)]
        debiased.append(np.mean([(a - c) ** 2 - a * (1 - a) / 9 for a, c in own]))
        expected = np.sqrt(max(debiased[-1], 0.0))
        assert debiased_calibration_error(confidence, correct) == pytest.approx(expected, abs=1e-12)
    error = 4 * np.std(debiased) / np.sqrt(len(debiased))
    assert abs(np.mean(debiased) - 0.01) < error
    assert np.mean(plain) > 0.01 + 10 * error


def test_a_bin_of_one_row_does_not_count_in_the_debiased_error() -> None:
    assert debiased_calibration_error([0.6], [0]) == 0.0
    assert debiased_calibration_error([0.6, 0.95, 0.95], [0, 1, 1]) == pytest.approx(np.sqrt(2 / 3) * 0.05)


def _smooth(confidence: NDArray[np.float64], correct: NDArray[np.bool_]) -> float:
    """The definition of smECE: the kernel of every row at every point of a fine grid, reflections summed."""
    u = (np.arange(4000) + 0.5) / 4000

    def error(width: float) -> float:
        images = [2 * k + sign * confidence for k in range(-4, 5) for sign in (1, -1)]
        kernel = sum(np.exp(-0.5 * ((u[:, None] - image) / width) ** 2) for image in images)
        density = kernel / (width * np.sqrt(2 * np.pi))
        return float(np.abs(density @ (correct - confidence) / confidence.size).mean())

    low, high = 1e-3, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > middle else (low, middle)
    return high


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_smooth_ece_equals_its_definition(rows: int, rng: np.random.Generator) -> None:
    confidence = rng.random(rows)
    correct = rng.random(rows) < 0.5  # gaps of both signs: the wider the kernel, the more of them cancel
    assert smooth_calibration_error(confidence, correct) == pytest.approx(_smooth(confidence, correct), rel=2e-4)


@pytest.mark.parametrize(("confidence", "right", "rows"), [(0.8, 3, 10), (0.01, 6, 9), (1.0, 1, 4), (0.6, 6, 10)])
def test_smooth_ece_of_one_confidence_is_its_gap(confidence: float, right: int, rows: int) -> None:
    """A reflected kernel integrates to 1 wherever it stands, so smoothing one gap keeps its size."""
    correct = np.arange(rows) < right
    found = smooth_calibration_error(np.full(rows, confidence), correct)
    assert found == pytest.approx(abs(confidence - right / rows), abs=1e-9)


def test_smooth_ece_is_continuous_where_bins_are_not() -> None:
    """Confidences beside an edge of ece's bins: a step of 1e-6 moves the rows to another bin and half of ece."""
    edge, correct = 9 / 15, np.array([1] * 50 + [0] * 50)
    sides = [np.array([edge - 1e-6] * 50 + [edge + step] * 50) for step in (-1e-6, 1e-6)]
    smooth = [smooth_calibration_error(side, correct) for side in sides]
    assert smooth[0] == pytest.approx(smooth[1], abs=1e-5)
    assert abs(expected_calibration_error(sides[0], correct) - expected_calibration_error(sides[1], correct)) > 0.3


def test_errors_are_in_order(data: Data) -> None:
    ece, l2 = expected_calibration_error(*_top(data)), root_mean_squared_calibration_error(*_top(data))
    assert debiased_calibration_error(*_top(data)) < l2
    assert ece <= l2 <= maximum_calibration_error(*_top(data))


@pytest.mark.parametrize("bins", [10, 15])
def test_ece_and_mce_equal_netcal(bins: int, oracle: Oracle, data: Data) -> None:
    netcal = oracle("netcal.metrics")
    assert expected_calibration_error(*_top(data), bins=bins) == pytest.approx(
        netcal.ECE(bins).measure(*data), abs=1e-6
    )
    assert maximum_calibration_error(*_top(data), bins=bins) == pytest.approx(netcal.MCE(bins).measure(*data), abs=1e-6)


def test_adaptive_ece_equals_netcal_with_bins_of_equal_counts(oracle: Oracle, data: Data) -> None:
    expected = oracle("netcal.metrics").ECE(15, equal_intervals=False).measure(*data)
    assert adaptive_calibration_error(*_top(data)) == pytest.approx(expected, abs=1e-6)


def test_adaptive_ece_equals_a_plain_loop(rng: np.random.Generator) -> None:
    confidence, correct = rng.random(107), rng.random(107) < 0.5
    order = np.argsort(confidence)
    groups = [order[b * 107 // 15 : (b + 1) * 107 // 15] for b in range(15)]
    expected = sum(len(g) / 107 * abs(confidence[g].mean() - correct[g].mean()) for g in groups)
    assert adaptive_calibration_error(confidence, correct) == pytest.approx(expected, abs=1e-14)


def test_with_fewer_rows_than_bins_every_row_is_a_bin() -> None:
    assert adaptive_calibration_error([0.9, 0.6], [1, 0]) == pytest.approx((0.1 + 0.6) / 2)


def test_reliability_curve_equals_scikit_learn(oracle: Oracle, rng: np.random.Generator) -> None:
    confidence = rng.random(2000)
    correct = rng.random(2000) < confidence**2
    curve = reliability_curve(confidence, correct, bins=10)
    truth, predicted = oracle("sklearn.calibration").calibration_curve(correct, confidence, n_bins=10)
    np.testing.assert_allclose(curve.accuracy[:10], truth, atol=1e-12)
    np.testing.assert_allclose(curve.confidence[:10], predicted, atol=1e-12)
    assert curve.rows.sum() == 2000
    assert curve.rows[10] == 0
    assert np.isnan(curve.accuracy[10])


@pytest.mark.parametrize("bins", [1, 3, 7, 10, 15, 30, 49, 100])
def test_bins_are_those_of_a_binary_search_even_beside_edges(bins: int) -> None:
    edges = np.linspace(0, 1, bins + 1)
    values = np.concatenate([edges, np.nextafter(edges, -1)[1:], np.nextafter(edges, 2)[:-1]])
    expected = np.searchsorted(edges, values, side="right") - 1
    np.testing.assert_array_equal(bin_index(values, bins), expected)


def test_confidence_1_is_a_bin_of_its_own() -> None:
    # Merged with the rest of the last bin the two gaps of +0.05 and -0.05 would cancel.
    assert expected_calibration_error([1.0] * 20 + [0.95] * 20, [1] * 19 + [0] + [1] * 20) == pytest.approx(0.05)


def test_bad_confidence_is_an_error() -> None:
    with pytest.raises(UserError, match="between 0 and 1"):
        expected_calibration_error([1.5], [1])
    with pytest.raises(UserError, match="only 0 and 1"):
        expected_calibration_error([0.5], [2])
    with pytest.raises(UserError, match="bins"):
        expected_calibration_error([0.5], [1], bins=0)
    with pytest.raises(UserError, match="bins"):
        adaptive_calibration_error([0.5], [1], bins=0)


def test_the_smooth_error_of_certain_and_wrong_predictions_is_1() -> None:
    assert smooth_calibration_error(np.ones(60), np.zeros(60)) == 1.0
    assert smooth_calibration_error(np.ones(60), np.ones(60)) == 0.0
