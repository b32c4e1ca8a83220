"""Calibration of a stated variance against squared errors."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import float_array, variance_array
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric, Template
from bench.metrics.sorting import sort_by_score


def normalised_calibration_error(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike, bins: int = 10) -> float:
    """ENCE = mean_b |RMV_b - RMSE_b| / RMV_b over `bins` bins of equally many rows, sorted by variance.

    RMV_b is the root of the mean variance in a bin. Levi et al., Evaluating and Calibrating Uncertainty Prediction in
    Regression Tasks, Sensors 2022 (arXiv:1905.11659). Bin b ends at row floor(b N / bins); with fewer rows than bins
    every row is a bin. Rows of equal variance enter with their mean squared error. Infinite for a bin without variance.
    """
    if bins < 1:
        raise UserError(f"bins: expected at least 1, got {bins}")
    y = float_array(observed, "observed", (None,))
    v = variance_array(variance, y.size)
    squared = sort_by_score(v, np.square(y - float_array(mean, "mean", y.shape)))
    bins = min(bins, y.size)
    starts = np.arange(bins) * y.size // bins
    counts = np.diff(starts, append=y.size)
    predicted = np.sqrt(np.add.reduceat(np.sort(v), starts) / counts)
    found = np.sqrt(np.add.reduceat(squared, starts) / counts)
    if not predicted.all():
        return math.inf
    return float(np.mean(np.abs(predicted - found) / predicted))


def dawid_sebastiani_score(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Mean of log v_i + (y_i - m_i)^2 / v_i: proper for the first two moments, whatever the distribution.

    Dawid and Sebastiani, Coherent dispersion criteria for optimal experimental design, Annals of Statistics 1999. It is
    2 NLL - log(2 pi) of the normal with these moments; infinite where a variance is 0.
    """
    y = float_array(observed, "observed", (None,))
    residuals, v = y - float_array(mean, "mean", y.shape), variance_array(variance, y.size)
    if not v.all():
        return math.inf
    with np.errstate(over="ignore"):
        return float(np.mean(np.log(v) + np.square(residuals) / v))


def _of_total_variance(function: Callable[[ArrayLike, ArrayLike, ArrayLike], float]) -> Callable[[Forecast], float]:
    """Return the value at the total variance; NaN where that does not exist in every row."""

    def compute(f: Forecast) -> float:
        variance = f.total_variance
        return math.nan if np.isnan(variance).any() else function(f.observed, f.mean, variance)

    return compute


METRICS: tuple[Metric, ...] = (
    Template("regression", "calibration", "1", needs="distribution")(
        "ence",
        "mean over 10 bins of equally many rows, by ascending u_i, of abs(root mean u_i - RMSE) / root mean u_i",
        "Levi et al., Sensors 2022",
    ).by(_of_total_variance(normalised_calibration_error)),
    Template("regression", "calibration", "nat", needs="distribution", signed=True)(
        "dawid_sebastiani", "mean_i [log u_i + (y_i - m_i)^2 / u_i]", "Dawid and Sebastiani, Annals of Statistics 1999"
    ).by(_of_total_variance(dawid_sebastiani_score)),
)
