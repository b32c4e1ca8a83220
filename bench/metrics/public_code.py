"""The MCNI paper's quantities as public code computes them, so that its numbers are compared with like.

The code is in the repository `peace-andjoy/noise_injection_uncertainty`; that it is the authors' is inferred. These
forms differ from the usual ones, which stay the ones that suites lead with, so they are computed on request only.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from bench.metrics.arrays import FloatArray, correct_array, float_array, variance_array
from bench.metrics.bins import bin_index
from bench.metrics.classification import brier_score, categorical_nll
from bench.metrics.forecast import Forecast
from bench.metrics.intervals import Intervals, gaussian_intervals
from bench.metrics.metric import Metric, Template
from bench.metrics.regression import LOG_TWO_PI
from bench.metrics.selective import area_under_risk_coverage
from bench.metrics.sorting import sort_by_score
from bench.metrics.uncertainty import model_variance

REPOSITORY = "peace-andjoy/noise_injection_uncertainty"


def strictly_inside(values: ArrayLike, intervals: Intervals) -> FloatArray:
    """Return 1 where lower < value < upper, else 0: the bounds themselves are outside, as in `qd_objective`."""
    inner = float_array(values, "values", (None,))
    return ((intervals.lower < inner) & (inner < intervals.upper)).astype(np.float64)


def captured_width(values: ArrayLike, intervals: Intervals) -> float:
    """Mean width of the intervals that hold their value, bounds excluded; NaN where none does.

    It is the width in the loss of Pearce et al., ICML 2018 (`MPIW_capt`), there a part of the loss and not a metric.
    """
    inside = strictly_inside(values, intervals)
    return float(np.sum((intervals.upper - intervals.lower) * inside) / inside.sum()) if inside.any() else math.nan


def all_pairs_nll(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Mean over all N x N pairs (i, j) of -log N(z_j; n_i, t_j^2), in nat, where t is s / (std(n) |s|).

    z and n are targets and means in units of the observed targets' own mean and population standard deviation, s the
    standard deviations over draws, |s| the Euclidean length of the vector of all of them: their common scale has no
    influence. Every mean meets every target, and the standard deviation is that of the target's row. Summed over i it
    is mean_j [log(2 pi t_j^2) + ((z_j - mean(n))^2 + var(n)) / t_j^2] / 2: no array of pairs is needed.

    NaN where the targets, the means or all draws are constant, or where a row's variance is 0.
    """
    y = float_array(observed, "observed", (None,))
    predicted = float_array(mean, "mean", y.shape)
    spread = variance_array(variance, y.size)
    centre, length = y.mean(), y.std()
    if length == 0 or spread.min() == 0 or predicted.min() == predicted.max():
        return math.nan
    z, n = (y - centre) / length, (predicted - centre) / length
    # In logarithms: a product of two tiny variances would be 0.
    logs = np.log(spread) - np.log(n.var()) - np.log(spread.sum())
    with np.errstate(over="ignore"):
        squares = (np.square(z - n.mean()) + n.var()) * np.exp(-logs)
    return float(np.mean(0.5 * (LOG_TWO_PI + logs + squares)))


def half_open_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 10) -> float:
    """ECE over `bins` equal bins that are open above, so that a confidence of exactly 1 in float32 is in none.

    Rows of confidence 1 add nothing to the sum and still count in N.
    """
    scores = float_array(np.asarray(confidence, dtype=np.float32), "confidence", (None,))
    gaps = np.bincount(
        bin_index(scores, bins), weights=scores - correct_array(correct, scores.size), minlength=bins + 1
    )
    return float(np.abs(gaps[:bins]).sum() / scores.size)


def _intervals(f: Forecast) -> Intervals:
    return gaussian_intervals(f.mean, f.variance, 3.0)


def _truth_inside(f: Forecast) -> float:
    return math.nan if f.truth is None else float(strictly_inside(f.truth, _intervals(f)).mean())


def _width_at_truth(f: Forecast) -> float:
    return math.nan if f.truth is None else captured_width(f.truth, _intervals(f))


def _right(f: Forecast) -> FloatArray:
    """Return 1 where the class of the highest mean logit is the observed one, else 0."""
    hits: FloatArray = (f.geometric_mean.argmax(axis=1) == f.observed).astype(np.float64)
    return hits


def _ece_of_last_pass(f: Forecast) -> float:
    return half_open_calibration_error(f.geometric_mean.max(axis=1), f.draws[-1].argmax(axis=1) == f.observed)


_TOY = f"`qd_objective` in regression/simulation_*_0104.ipynb, {REPOSITORY}"
_MSLL = f"regression/utils.py and add_msll.ipynb, {REPOSITORY}"
_CLASSES = f"cifar10/predictive_performance.ipynb, {REPOSITORY}"
_width = Template("regression", "calibration", "target unit", needs="variance", on_request=True, only_with="picp")
_nat = Template("regression", "calibration", "nat", signed=True, needs="draws", on_request=True)
_error = Template("classification", "calibration", "probability", needs="probabilities", on_request=True)
METRICS: tuple[Metric, ...] = (
    _width("mpiw_captured", "mean width of m_i +- 3 sqrt(v_i) over the rows whose y_i is strictly inside", _TOY).by(
        lambda f: captured_width(f.observed, _intervals(f))
    ),
    replace(_width, needs="variance truth")(
        "mpiw_captured_truth", "as mpiw_captured (m_i +- 3 sqrt(v_i)), for the target without noise", _TOY
    ).by(_width_at_truth),
    replace(_width, unit="probability", direction="target", target=0.9973, needs="variance truth", only_with="")(
        "picp_truth", "share of targets without noise strictly within m_i +- 3 sqrt(v_i)", _TOY
    ).by(_truth_inside),
    _nat(
        "nll_all_pairs",
        "mean over all i, j of -log N(y_j; m_i, t_j^2), t_j^2 = s_j^2 / (var(m) sum_i s_i^2); y and m in units "
        "of the test targets' own mean and std",
        _MSLL,
    ).by(lambda f: all_pairs_nll(f.observed, f.mean, f.spread)),
    _nat(
        "msll_all_pairs",
        "nll_all_pairs (from the s_i^2) minus the baseline method's mean nll_all_pairs on the same split",
        _MSLL,
    ).relative_to("nll_all_pairs"),
    replace(_error, family="predictive", direction="higher")(
        "accuracy_mean_logits", "mean_i [argmax_c g_ic = y_i], g_i the softmax of the mean logits", _CLASSES
    ).by(lambda f: float(_right(f).mean())),
    _error(
        "brier_mean_logits", "mean_i sum_c (g_ic - [y_i = c])^2, g_i the softmax of the mean logits", _CLASSES, unit="1"
    )
    .up_to(2.0)
    .by(lambda f: brier_score(f.geometric_mean, f.observed)),
    _error("nll_mean_logits", "mean_i -log g_i(y_i), g_i the softmax of the mean logits", _CLASSES, unit="nat").by(
        lambda f: categorical_nll(f.geometric_mean, f.observed)
    ),
    _error(
        "ece_last_pass",
        "sum_b (n_b / N) abs(accuracy_b of the last draw alone - mean max_c g_ic in b), 10 equal bins open above, g_i "
        "the softmax of the mean logits",
        _CLASSES,
    ).by(_ece_of_last_pass),
    replace(_error, family="selective", needs="probabilities disagreement")(
        "aurc_variance_mean_logits",
        "mean_k error rate of the k rows of least variance over draws, summed over classes; class of the highest mean "
        "logit",
        f"cifar10/selective_performance.py, {REPOSITORY}",
    ).by(lambda f: area_under_risk_coverage(sort_by_score(model_variance(f), 1.0 - _right(f)))),
)
