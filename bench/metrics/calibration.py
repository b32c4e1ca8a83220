"""Calibration of a confidence [N] against whether the prediction was correct [N]. Pure functions, float64 inside."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, LabelArray, correct_array, float_array
from bench.metrics.bins import bin_edges, bin_index
from bench.metrics.metric import Metric, Template
from bench.metrics.sorting import sort_by_score


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


def _checked(confidence: ArrayLike, correct: ArrayLike) -> tuple[FloatArray, FloatArray]:
    scores = float_array(confidence, "confidence", (None,))
    if scores.min() < 0 or scores.max() > 1 + 1e-3:
        raise UserError(f"confidence: values lie between 0 and 1, got {scores.min():.6g} to {scores.max():.6g}")
    return scores, correct_array(correct, scores.size)


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
    _error(
        "mce",
        "max_b abs(accuracy_b - confidence_b), the bins of ece that hold a row",
        "Naeini, Cooper and Hauskrecht, AAAI 2015",
    ).by(lambda f: maximum_calibration_error(f.confidence, f.correct)),
)
