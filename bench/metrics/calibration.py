"""Calibration of a confidence [N] against whether the prediction was correct [N]. Pure functions, float64 inside."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, LabelArray, correct_array, float_array
from bench.metrics.bins import bin_edges, bin_index
from bench.metrics.metric import Metric, Template
from bench.metrics.sorting import sort_by_score

GRID = 8192  # points of the smooth calibration error, finer than any width that a million rows have


class ReliabilityCurve(NamedTuple):
    """Per bin its lower edge, number of rows, mean confidence and accuracy, [bins + 1] each; empty bins have NaN means.

    The last entry holds the rows whose confidence is exactly 1.
    """

    lower_edge: FloatArray
    rows: LabelArray
    confidence: FloatArray
    accuracy: FloatArray


def reliability_curve(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> ReliabilityCurve:
    """Return mean confidence and accuracy within `bins` equal bins of confidence (see `bin_index` for the edges)."""
    scores, hits = _checked(confidence, correct)
    index = bin_index(scores, bins)
    count = np.bincount(index, minlength=bins + 1)
    sums = (np.bincount(index, weights=values, minlength=bins + 1) for values in (scores, hits))
    with np.errstate(invalid="ignore"):
        mean_confidence, mean_correct = (total / count for total in sums)
    return ReliabilityCurve(bin_edges(bins), count, mean_confidence, mean_correct)


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> float:
    """ECE = sum_b (n_b / N) |accuracy_b - mean confidence_b| over `bins` equal bins of the top label's confidence.

    Naeini, Cooper and Hauskrecht, AAAI 2015; Guo et al., On Calibration of Modern Neural Networks, ICML 2017. The l1
    norm and the bins of torchmetrics: closed at the lower edge, confidence 1 in a bin of its own.
    """
    scores, hits = _checked(confidence, correct)
    gaps = np.bincount(bin_index(scores, bins), weights=scores - hits, minlength=bins + 1)
    return float(np.abs(gaps).sum() / scores.size)


def maximum_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> float:
    """MCE = max_b |accuracy_b - mean confidence_b| over the bins that hold a row; same bins as the ECE.

    Naeini, Cooper and Hauskrecht, AAAI 2015. A single row alone in its bin can determine it.
    """
    curve = reliability_curve(confidence, correct, bins)
    return float(np.nanmax(np.abs(curve.accuracy - curve.confidence)))


def root_mean_squared_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> float:
    """Return sqrt(sum_b (n_b / N) (accuracy_b - mean confidence_b)^2), the l2 form of the ECE; same bins.

    Kumar, Liang and Ma, Verified Uncertainty Calibration, NeurIPS 2019; torchmetrics' norm "l2". Never below the ECE.
    """
    squared, _, share = _squared_gaps(confidence, correct, bins)
    return float(np.sqrt(np.sum(share * squared)))


def debiased_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> float:
    """Return the l2 calibration error without the part that the finite number of rows adds to every bin.

    sqrt(max(0, sum_b (n_b / N) ((accuracy_b - confidence_b)^2 - accuracy_b (1 - accuracy_b) / (n_b - 1)))): Kumar,
    Liang and Ma, NeurIPS 2019, after Brocker, Estimating Reliability and Resolution of Probability Forecasts, Climate
    Dynamics 2012. The square is unbiased for the binned confidences; its root is 0 where the square is negative. A bin
    of one row has no variance and counts as 0, as in their code.
    """
    squared, variance, share = _squared_gaps(confidence, correct, bins)
    unbiased = np.where(np.isnan(variance), 0.0, squared - variance)
    return float(np.sqrt(max(np.sum(share * unbiased), 0.0)))


def smooth_calibration_error(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Return smECE, the calibration error smoothed by a Gaussian kernel that is as wide as the error itself.

    Blasiok and Nakkiran, Smooth ECE, ICLR 2024. With the kernel K_s of a Gaussian of standard deviation s reflected at
    0 and 1, smECE_s = integral over u in [0, 1] of |(1/N) sum_i K_s(u, confidence_i) (correct_i - confidence_i)|. It
    falls with s, and smECE is the one s with smECE_s = s. No bins: it is continuous in the confidences.

    The residuals are spread over a grid of 8,192 cells, each over its two neighbours; the reflected Gaussian multiplies
    the cosine transform of the grid, so that one width takes O(grid log grid) whatever N is.
    """
    from scipy.fft import dct, idct
    from scipy.optimize import brentq

    scores, hits = _checked(confidence, correct)
    place = np.clip(scores * GRID - 0.5, 0.0, GRID - 1.0)
    left = np.minimum(place.astype(np.int64), GRID - 2)
    to_right = place - left
    residual = (hits - scores) / scores.size
    mass = np.bincount(left, weights=residual * (1.0 - to_right), minlength=GRID)
    mass += np.bincount(left + 1, weights=residual * to_right, minlength=GRID)
    waves, damping = dct(mass, type=2), -0.5 * np.square(np.pi * np.arange(GRID))

    def excess(width: float) -> float:
        return float(np.abs(idct(waves * np.exp(damping * width**2), type=2)).sum()) - width

    # At width 0 it is the sum of the residuals' sizes, at most 1; there is a root unless all of them are 0.
    if not mass.any():
        return 0.0
    # Where every prediction is certain and wrong the root is 1, which rounding may put beyond the end.
    return 1.0 if excess(1.0) >= 0.0 else float(brentq(excess, 0.0, 1.0, xtol=1e-13))


def adaptive_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> float:
    """ECE over `bins` bins of equally many rows, sorted by confidence; bin b ends at row floor(b N / bins).

    Nguyen and O'Connor, EMNLP 2015; Mukhoti et al., Calibrating Deep Neural Networks using Focal Loss, NeurIPS 2020.
    Rows of equal confidence that straddle two bins enter each with their mean correctness. With fewer rows than bins
    every row is a bin.
    """
    scores, hits = _checked(confidence, correct)
    if bins < 1:
        raise UserError(f"bins: expected at least 1, got {bins}")
    running = np.concatenate(([0.0], np.cumsum(sort_by_score(scores, scores - hits))))
    ends = np.arange(bins + 1) * scores.size // bins
    return float(np.abs(np.diff(running[ends])).sum() / scores.size)


def _squared_gaps(confidence: ArrayLike, correct: ArrayLike, bins: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return, of the bins that hold a row, the squared gap, the variance of its accuracy (NaN: one row), its share."""
    curve = reliability_curve(confidence, correct, bins)
    filled = curve.rows > 0
    rows, mean_correct = curve.rows[filled], curve.accuracy[filled]
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(rows > 1, mean_correct * (1.0 - mean_correct) / (rows - 1), np.nan)
    return np.square(mean_correct - curve.confidence[filled]), variance, rows / rows.sum()


def _checked(confidence: ArrayLike, correct: ArrayLike) -> tuple[FloatArray, FloatArray]:
    scores = float_array(confidence, "confidence", (None,))
    if scores.min() < 0 or scores.max() > 1 + 1e-3:
        raise UserError(f"confidence: values lie between 0 and 1, got {scores.min():.6g} to {scores.max():.6g}")
    return scores, correct_array(correct, scores.size)


_KUMAR = "Kumar, Liang and Ma, NeurIPS 2019"
_error = Template("classification", "calibration", "probability", needs="probabilities")
METRICS: tuple[Metric, ...] = (
    _error(
        "ece",
        "sum_b (n_b / N) abs(accuracy_b - confidence_b), 15 equal bins of the top probability",
        "Guo et al., ICML 2017",
    ).by(lambda f: expected_calibration_error(f.confidence, f.correct)),
    _error("ece_adaptive", "as ece, over 15 bins of equally many rows", "Mukhoti et al., NeurIPS 2020").by(
        lambda f: adaptive_calibration_error(f.confidence, f.correct)
    ),
    _error("ece_l2", "sqrt(sum_b (n_b / N) (accuracy_b - confidence_b)^2), the bins of ece", _KUMAR).by(
        lambda f: root_mean_squared_calibration_error(f.confidence, f.correct)
    ),
    _error(
        "ece_debiased",
        "ece_l2 with accuracy_b (1 - accuracy_b) / (n_b - 1) taken from each square; 0 where their sum is negative",
        f"{_KUMAR}; Brocker, Climate Dynamics 2012",
    ).by(lambda f: debiased_calibration_error(f.confidence, f.correct)),
    _error(
        "ece_smooth",
        "the s with s = integral_u abs(mean_i K_s(u, confidence_i) (correct_i - confidence_i)), K_s a Gaussian of "
        "standard deviation s reflected at 0 and 1",
        "Blasiok and Nakkiran, ICLR 2024",
    ).by(lambda f: smooth_calibration_error(f.confidence, f.correct)),
    _error(
        "mce",
        "max_b abs(accuracy_b - confidence_b), the bins of ece that hold a row",
        "Naeini, Cooper and Hauskrecht, AAAI 2015",
    ).by(lambda f: maximum_calibration_error(f.confidence, f.correct)),
)
