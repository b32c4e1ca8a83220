"""Scores of quantiles and of the central intervals between them. Bounds may be infinite."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, float_array, numeric_array
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric, Template
from bench.metrics.mixture import LEVELS


def pinball_loss(observed: ArrayLike, quantiles: ArrayLike, levels: ArrayLike) -> float:
    """Mean over rows and levels p of (p - [y < q]) (y - q), the check score; `quantiles` is [L, N], `levels` [L].

    Koenker and Bassett, Regression Quantiles, Econometrica 1978. In the unit of the target. Over all levels it is half
    the CRPS.
    """
    p, y, q = _checked(observed, quantiles, levels)
    return float(np.mean(_pinball(p[:, None], y, q)))


def interval_score(observed: ArrayLike, lower: ArrayLike, upper: ArrayLike, level: float) -> float:
    """Mean of (upper - lower) + 2 / (1 - level) * (distance of y outside), in the unit of the target.

    Gneiting and Raftery, JASA 2007, equation 43; Winkler, JASA 1972. Proper for central intervals of probability
    `level`; infinite where a bound is.
    """
    if not 0 < level < 1:
        raise UserError(f"level: a coverage level lies strictly between 0 and 1, got {level}")
    _, y, (low, high) = _checked(observed, np.stack([np.asarray(lower), np.asarray(upper)]), [0.25, 0.75])
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return float(np.mean(high - low + 2.0 / (1.0 - level) * outside))


def weighted_interval_score(observed: ArrayLike, quantiles: ArrayLike, levels: ArrayLike) -> float:
    """Mean of 1 / (K + 1/2) [1/2 |y - median| + sum_k alpha_k / 2 IS_k] for K central intervals of level 1 - alpha_k.

    Bracher et al., Evaluating epidemic forecasts in an interval format, PLoS Computational Biology 2021. `levels` [L]
    are the median and K pairs that mirror each other; the score is twice the mean pinball loss over them.
    """
    p = float_array(levels, "levels", (None,))
    if p.size % 2 == 0 or not np.allclose(p + p[::-1], 1.0, atol=1e-12):
        raise UserError("levels: expected the median and pairs of levels p and 1 - p, ascending")
    return 2.0 * pinball_loss(observed, quantiles, p)


def _pinball(p: FloatArray, y: FloatArray, q: FloatArray) -> FloatArray:
    return np.maximum(p * (y - q), (p - 1) * (y - q))


def _checked(observed: ArrayLike, quantiles: ArrayLike, levels: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    p = float_array(levels, "levels", (None,))
    if p.min() <= 0 or p.max() >= 1 or (np.diff(p) <= 0).any():
        raise UserError(f"levels: expected ascending levels strictly between 0 and 1, got {p.tolist()}")
    y = float_array(observed, "observed", (None,))
    q = numeric_array(quantiles, "quantiles", (p.size, y.size)).astype(np.float64, copy=False)
    if (q[1:] < q[:-1]).any():
        raise UserError("quantiles: a quantile lies below that of a lower level (they cross)")
    return p, y, q


_DECILES = np.isin(np.round(LEVELS * 100).astype(int), np.arange(10, 100, 10))
_LOW, _HIGH = int(np.searchsorted(LEVELS, 0.025)), int(np.searchsorted(LEVELS, 0.975))


def _bounds(f: Forecast) -> tuple[FloatArray, FloatArray]:
    return f.quantiles[_LOW], f.quantiles[_HIGH]


def _coverage(f: Forecast) -> float:
    low, high = _bounds(f)
    return float(np.mean((low <= f.observed) & (f.observed <= high)))


def _width(f: Forecast) -> float:
    low, high = _bounds(f)
    return float(np.mean(high - low))


_score = Template("regression", "calibration", "target unit", needs="distribution")
_INTERVAL = "q_i(0.025)..q_i(0.975)"
METRICS: tuple[Metric, ...] = (
    _score(
        "pinball",
        "mean over rows and p = 0.1, 0.2 .. 0.9 of (p - [y_i < q_i(p)]) (y_i - q_i(p))",
        "Koenker and Bassett, Econometrica 1978",
    ).by(lambda f: pinball_loss(f.observed, f.quantiles[_DECILES], LEVELS[_DECILES])),
    _score(
        "wis",
        "mean of (abs(y_i - q_i(0.5)) / 2 + sum_k alpha_k / 2 interval score_k) / 11.5, 11 central intervals of F_i",
        "Bracher et al., PLoS Computational Biology 2021",
    ).by(lambda f: weighted_interval_score(f.observed, f.quantiles, LEVELS)),
    _score(
        "interval_score95",
        f"mean of width + 40 * distance of y_i outside, for {_INTERVAL}",
        "Gneiting and Raftery, JASA 2007",
    ).by(lambda f: interval_score(f.observed, *_bounds(f), 0.95)),
    replace(_score, only_with="coverage95")(
        "width95", f"mean width of {_INTERVAL}", "Gneiting and Raftery, JASA 2007"
    ).by(_width),
    Template("regression", "calibration", "probability", "target", needs="distribution", target=0.95)(
        "coverage95", f"share of y_i within {_INTERVAL}, bounds included", "Gneiting and Raftery, JASA 2007"
    ).by(_coverage),
)
