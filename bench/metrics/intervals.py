"""Prediction intervals of a Gaussian forecast: coverage, width, and the score that weighs the two."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, float_array, variance_array
from bench.metrics.forecast import Forecast
from bench.metrics.metric import PAPER, Metric, Template


class Intervals(NamedTuple):
    """Lower and upper bounds, [N] each."""

    lower: FloatArray
    upper: FloatArray


def level_of(width: float) -> float:
    """Return the probability a Gaussian puts within mean +- width * std (0.9973 for 3)."""
    return math.erf(width / math.sqrt(2))


def width_of(level: float) -> float:
    """Return the half-width in standard deviations of the central Gaussian interval of probability `level`."""
    if not 0 < level < 1:
        raise UserError(f"level: a coverage level lies strictly between 0 and 1, got {level}")
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def gaussian_intervals(mean: ArrayLike, variance: ArrayLike, width: float = 3.0) -> Intervals:
    """Return mean +- width * std: the paper's 3 by default, `width_of(level)` for any other level."""
    if not (math.isfinite(width) and width > 0):
        raise UserError(f"width: the half-width in standard deviations must be positive, got {width}")
    centre = float_array(mean, "mean", (None,))
    half = width * np.sqrt(variance_array(variance, centre.size))
    return Intervals(centre - half, centre + half)


def coverage_probability(observed: ArrayLike, intervals: Intervals) -> float:
    """PICP = share of rows with lower <= y <= upper, bounds included (the paper, section on simulation)."""
    y, lower, upper = _checked(observed, intervals)
    return float(np.mean((lower <= y) & (y <= upper)))


def mean_width(intervals: Intervals) -> float:
    """MPIW = mean_i (upper_i - lower_i), in the unit of the target."""
    lower = float_array(intervals.lower, "lower", (None,))
    return float(np.mean(float_array(intervals.upper, "upper", lower.shape) - lower))


def winkler_score(observed: ArrayLike, intervals: Intervals, level: float) -> float:
    """Mean of (upper - lower) + 2 / (1 - level) * (distance of y outside the interval), in the unit of the target.

    Winkler, A Decision-Theoretic Approach to Interval Estimation, JASA 1972; equation 43 of Gneiting and Raftery 2007.
    Proper for central intervals of probability `level`.
    """
    if not 0 < level < 1:
        raise UserError(f"level: a coverage level lies strictly between 0 and 1, got {level}")
    y, lower, upper = _checked(observed, intervals)
    outside = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return float(np.mean(upper - lower + 2.0 / (1.0 - level) * outside))


def _checked(observed: ArrayLike, intervals: Intervals) -> tuple[FloatArray, FloatArray, FloatArray]:
    y = float_array(observed, "observed", (None,))
    lower = float_array(intervals.lower, "lower", y.shape)
    upper = float_array(intervals.upper, "upper", y.shape)
    if (upper < lower).any():
        raise UserError("intervals: an upper bound lies below its lower bound")
    return y, lower, upper


def _interval_metrics(suffix: str, width: float | None, source: str, *, noise: bool = False) -> tuple[Metric, ...]:
    """Declare coverage, width and Winkler score of mean +- width * std; None is the width of 95 %."""
    level = 0.95 if width is None else level_of(width)
    interval = f"m_i +- {width or 1.96:g} sqrt(v_i{' + 1/tau' if noise else ''})"

    def bounds(f: Forecast) -> Intervals:
        # The exact width of 95 % comes from scipy, which listing the metrics does not load.
        return gaussian_intervals(f.mean, f.predictive_variance if noise else f.variance, width or width_of(level))

    template = Template("regression", "calibration", "target unit", needs="noise" if noise else "variance")
    coverage = replace(template, unit="probability", direction="target", target=round(level, 4))
    penalty = f"mean of width + {2 / (1 - level):.6g} * distance of y_i outside, for {interval}"
    return (
        coverage(f"picp{suffix}", f"share of y_i within {interval}, bounds included", source).by(
            lambda f: coverage_probability(f.observed, bounds(f))
        ),
        replace(template, only_with=f"picp{suffix}")(f"mpiw{suffix}", f"mean width of {interval}", source).by(
            lambda f: mean_width(bounds(f))
        ),
        template(f"winkler{suffix}", penalty, "Winkler, JASA 1972").by(
            lambda f: winkler_score(f.observed, bounds(f), level)
        ),
    )


_PEARCE = "Pearce et al., ICML 2018"
METRICS: tuple[Metric, ...] = (
    *_interval_metrics("", 3.0, PAPER),
    *_interval_metrics("95", None, _PEARCE),
    *_interval_metrics("95_noise", None, _PEARCE, noise=True),
)
