"""Continuous ranked probability score: of a Gaussian and of a mixture, and of draws by the fair estimator."""

import math

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, float_array, numeric_array, require_finite, row_blocks, variance_array
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric, Template


def crps_gaussian_rows(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> FloatArray:
    """Return s [z (2 Phi(z) - 1) + 2 phi(z) - 1/sqrt(pi)] with z = (y - m) / s for each row.

    Gneiting and Raftery, Strictly Proper Scoring Rules, Prediction, and Estimation, JASA 2007, equation 21. In the
    unit of the target. With a variance of 0 it is the absolute error, its limit.
    """
    from scipy.special import ndtr

    y = float_array(observed, "observed", (None,))
    residuals = y - float_array(mean, "mean", y.shape)
    std = np.sqrt(variance_array(variance, y.size))
    rows: FloatArray = np.abs(residuals)
    # Where |z| overflows, the score has reached its limit |y - m| in double precision already.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        z = residuals / std
        density = np.exp(-0.5 * np.square(z)) / math.sqrt(2 * math.pi)
        full = std * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi))
    regular = (std > 0) & np.isfinite(full)
    rows[regular] = full[regular]
    return rows


def crps_gaussian(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Mean of `crps_gaussian_rows`."""
    return float(crps_gaussian_rows(observed, mean, variance).mean())


def crps_fair_rows(observed: ArrayLike, draws: ArrayLike) -> FloatArray:
    """Return mean_t |x_t - y| - 1 / (2 T (T - 1)) sum_{s, t} |x_s - x_t| for each row; `draws` is [T, N], T >= 2.

    The fair estimator: unbiased for the CRPS of the distribution the draws come from (Ferro, Fair Scores for Ensemble
    Forecasts, QJRMS 2014), so it may be slightly negative. With the draws of a row sorted, the double sum is
    2 sum_i (2i - T + 1) x_(i), i = 0..T-1: O(N T log T) time, and memory linear in N T.
    """
    array = numeric_array(draws, "draws", (None, None))
    require_finite(array, "draws")
    count, rows = array.shape
    if count < 2:
        raise UserError("draws: the fair CRPS needs at least 2 draws, got 1")
    y = float_array(observed, "observed", (rows,))
    weights = (2.0 * np.arange(count) - count + 1) / (count * (count - 1))
    mean_weights = np.full(count, 1.0 / count)
    scores = np.empty(rows)
    for block in row_blocks(rows, count):
        # Sorted in the type the draws came in, which is exact and quicker; every sum is in float64. Measured from the
        # observation, a large common offset cancels before anything is summed.
        nearby = np.sort(array[:, block].T, axis=1).astype(np.float64, copy=False) - y[block, None]
        pairs = nearby @ weights
        np.abs(nearby, out=nearby)
        scores[block] = nearby @ mean_weights - pairs
    return scores


def crps_fair(observed: ArrayLike, draws: ArrayLike) -> float:
    """Mean of `crps_fair_rows`."""
    return float(crps_fair_rows(observed, draws).mean())


def _crps_mixture(f: Forecast) -> float:
    return math.nan if f.distribution is None else float(f.distribution.crps(f.observed).mean())


_GNEITING = "Gneiting and Raftery, JASA 2007"
_crps = Template("regression", "calibration", "target unit", needs="variance")
METRICS: tuple[Metric, ...] = (
    _crps("crps", "mean_i CRPS(N(m_i, v_i), y_i), closed form", _GNEITING).by(
        lambda f: crps_gaussian(f.observed, f.mean, f.variance)
    ),
    _crps("crps_noise", "mean_i CRPS(N(m_i, v_i + 1/tau), y_i), closed form", _GNEITING, needs="noise").by(
        lambda f: crps_gaussian(f.observed, f.mean, f.predictive_variance)
    ),
    _crps(
        "crps_mixture",
        "mean_i CRPS(F_i, y_i), F_i the mixture itself",
        "Grimit et al., QJRMS 2006",
        needs="distribution",
    ).by(_crps_mixture),
    _crps(
        "crps_sample",
        "mean_i [mean_t abs(x_ti - y_i) - sum_{s,t} abs(x_si - x_ti) / (2 T (T - 1))], draws alone",
        "Ferro, QJRMS 2014",
        needs="draws",
    ).by(lambda f: crps_fair(f.observed, f.draws)),
)
