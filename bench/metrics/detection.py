"""How well a score separates two sets: larger scores are meant for `positives` (errors, shifted or foreign data)."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, LabelArray, float_array
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric, Template

SCORES = "scores/entropy"  # the name of stored scores, before @ and the condition under which they were taken


def auroc(negatives: ArrayLike, positives: ArrayLike) -> float:
    """Area under the ROC curve: P(positive > negative) + P(equal) / 2 over all pairs, in O(n log n).

    Hanley and McNeil, The Meaning and Use of the Area under a ROC Curve, Radiology 1982.
    """
    below, above = _sets(negatives, positives)
    # With both sorted the search reads memory in order: ten times faster on a million scores.
    ordered, sought = np.sort(below), np.sort(above)
    wins = np.searchsorted(ordered, sought, side="left").sum(dtype=np.int64)
    not_lost = np.searchsorted(ordered, sought, side="right").sum(dtype=np.int64)
    # Whole numbers up to here: the one division is the only rounding.
    return (int(wins) + int(not_lost)) / (2 * below.size * above.size)


def average_precision(negatives: ArrayLike, positives: ArrayLike) -> float:
    """AUPR as average precision, sum_t (recall_t - recall_{t-1}) precision_t over descending distinct thresholds.

    The step-wise area, as in scikit-learn (no interpolation, which would be optimistic: Davis and Goadrich, ICML
    2006). Equal scores enter together. A score without information has the share of positives.
    """
    hits, false_alarms = _counts(negatives, positives)
    precision = hits / (hits + false_alarms)
    return float(np.sum(np.diff(hits, prepend=0) * precision) / hits[-1])


def false_positive_rate(negatives: ArrayLike, positives: ArrayLike, recall: float = 0.95) -> float:
    """FPR95: the share of negatives flagged at the highest threshold that flags at least `recall` of the positives.

    Liang, Li and Srikant, Enhancing the Reliability of Out-of-distribution Image Detection, ICLR 2018. Which set is
    called positive matters here: ours is the one that should score high.
    """
    if not 0 < recall <= 1:
        raise UserError(f"recall: expected a share above 0 and up to 1, got {recall}")
    hits, false_alarms = _counts(negatives, positives)
    first = int(np.argmax(hits / hits[-1] >= recall))
    return float(false_alarms[first] / false_alarms[-1])


def detection_scores(clean: ArrayLike, foreign: ArrayLike, by: str = "") -> dict[str, float]:
    """Return the metrics of a score that should be higher for foreign or shifted rows (the positives) than for clean.

    `by` is the ending of the metrics' names: none for the predictive entropy, "_mutual_information", "_variance".
    """
    measures = {"ood_auroc": auroc, "ood_aupr": average_precision, "ood_fpr95": false_positive_rate}
    return {f"{name}{by}": measure(clean, foreign) for name, measure in measures.items()}


def _sets(negatives: ArrayLike, positives: ArrayLike) -> tuple[FloatArray, FloatArray]:
    return float_array(negatives, "negatives", (None,)), float_array(positives, "positives", (None,))


def _counts(negatives: ArrayLike, positives: ArrayLike) -> tuple[LabelArray, LabelArray]:
    """Return how many positives and negatives score at least each distinct threshold, thresholds descending."""
    below, above = _sets(negatives, positives)
    scores = np.concatenate((above, below))
    order = np.argsort(scores)[::-1]
    last_of_run = np.append(np.diff(scores[order]) != 0, True)
    flagged = np.flatnonzero(last_of_run) + 1
    hits = np.cumsum(order < above.size)[last_of_run]
    return hits, flagged - hits


def _of_errors(measure: Callable[[ArrayLike, ArrayLike], float]) -> Callable[[Forecast], float]:
    """Return the measure with wrong predictions as positives, by their uncertainty; NaN unless there are both kinds."""

    def compute(forecast: Forecast) -> float:
        right = forecast.correct
        if np.all(right) or not np.any(right):
            return math.nan
        return measure(forecast.uncertainty[right], forecast.uncertainty[~right])

    return compute


_HENDRYCKS, _LIANG = "Hendrycks and Gimpel, ICLR 2017", "Liang, Li and Srikant, ICLR 2018"
_SMITH = "Smith and Gal, UAI 2018"
_errors = Template("classification", "detection", "probability", "higher", needs="probabilities")
_foreign = replace(_errors, needs="")
_shifted = replace(_foreign, task="regression")
METRICS: tuple[Metric, ...] = (
    _errors("error_auroc", "P(1 - max_c p_c of a wrong row > that of a right row), ties one half", _HENDRYCKS).by(
        _of_errors(auroc)
    ),
    _errors("error_aupr", "average precision of 1 - max_c p_c for wrong rows", _HENDRYCKS).by(
        _of_errors(average_precision)
    ),
    replace(_errors, direction="lower")(
        "error_fpr95", "share of right rows flagged when 95 % of the wrong ones are, by 1 - max_c p_c", _LIANG
    ).by(_of_errors(false_positive_rate)),
    _foreign(
        "ood_auroc",
        "P(predictive entropy of a foreign or shifted row > that of a clean test row), ties one half",
        f"{_HENDRYCKS}; entropy: Ovadia et al., NeurIPS 2019",
    ).by_probe(),
    _foreign(
        "ood_auroc_mutual_information",
        "as ood_auroc, by the mutual information between draws and class; with at least two draws",
        _SMITH,
    ).by_probe(),
    _foreign(
        "ood_aupr",
        "average precision of the predictive entropy for foreign or shifted rows (positive) among clean test rows",
        _HENDRYCKS,
    ).by_probe(),
    _foreign(
        "ood_aupr_mutual_information", "as ood_aupr, by the mutual information between draws and class", _SMITH
    ).by_probe(),
    replace(_foreign, direction="lower")(
        "ood_fpr95",
        "share of clean test rows flagged when 95 % of the foreign or shifted rows (positive) are, by entropy",
        _LIANG,
    ).by_probe(),
    replace(_foreign, direction="lower")(
        "ood_fpr95_mutual_information", "as ood_fpr95, by the mutual information between draws and class", _LIANG
    ).by_probe(),
    _shifted(
        "ood_auroc_variance",
        "P(predictive variance of a shifted row > that of a clean test row), ties one half",
        _HENDRYCKS,
    ).by_probe(),
    _shifted(
        "ood_aupr_variance",
        "average precision of the predictive variance for shifted rows (positive) among clean test rows",
        _HENDRYCKS,
    ).by_probe(),
    replace(_shifted, direction="lower")(
        "ood_fpr95_variance",
        "share of clean test rows flagged when 95 % of the shifted rows (positive) are, by the variance",
        _LIANG,
    ).by_probe(),
)
