"""Point errors and log losses of regression forecasts. Pure functions over arrays of N rows, float64 inside."""

import math

import numpy as np
from numpy.typing import ArrayLike

from bench.metrics.arrays import FloatArray, float_array, variance_array

LOG_TWO_PI = math.log(2 * math.pi)


def root_mean_squared_error(observed: ArrayLike, mean: ArrayLike) -> float:
    """RMSE = sqrt(mean_i (y_i - m_i)^2), in the unit of the target."""
    return float(np.sqrt(np.mean(np.square(_residuals(observed, mean)))))


def mean_absolute_error(observed: ArrayLike, mean: ArrayLike) -> float:
    """MAE = mean_i |y_i - m_i|, in the unit of the target."""
    return float(np.mean(np.abs(_residuals(observed, mean))))


def r_squared(observed: ArrayLike, mean: ArrayLike) -> float:
    """R2 = 1 - sum_i (y_i - m_i)^2 / sum_i (y_i - mean(y))^2: the same in every affine unit of the target.

    NaN (undefined) where the observed values are all equal, hence also for one row.
    """
    y = float_array(observed, "observed", (None,))
    residuals = _residuals(y, mean)
    if y.min() == y.max():
        return math.nan
    return float(1.0 - np.sum(np.square(residuals)) / np.sum(np.square(y - y.mean())))


def gaussian_nll_rows(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> FloatArray:
    """Return -log N(y_i | m_i, v_i) = (log(2 pi v_i) + (y_i - m_i)^2 / v_i) / 2 for each row, in nat.

    A variance of 0 is a point mass, which has no density: that row is +inf, also where the residual is 0, so that a
    forecast without any uncertainty never wins by chance. Nothing is clipped.
    """
    residuals = _residuals(observed, mean)
    v = variance_array(variance, residuals.size)
    rows = np.full(residuals.size, np.inf)
    positive = v > 0
    # A squared residual over a variance of, say, 1e-310 overflows to +inf, which is the value meant.
    with np.errstate(over="ignore"):
        scaled = np.square(residuals[positive]) / v[positive]
        rows[positive] = 0.5 * (LOG_TWO_PI + np.log(v[positive]) + scaled)
    return rows


def gaussian_nll(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Mean of `gaussian_nll_rows`, in nat.

    With the variance over draws alone this is the paper's negative log-likelihood (`nll_mc`); with the fitted
    observation noise added it is `nll` (Gal and Ghahramani, Dropout as a Bayesian Approximation, ICML 2016). The two
    are never mixed.
    """
    return float(gaussian_nll_rows(observed, mean, variance).mean())


def standardised_log_loss(
    observed: ArrayLike, mean: ArrayLike, variance: ArrayLike, train_mean: float, train_variance: float
) -> float:
    """MSLL = mean_i [-log N(y_i | m_i, v_i) + log N(y_i | train mean, train variance)], in nat.

    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 2.5: the loss against the trivial
    Gaussian of the training targets, negative for a forecast that beats it. NaN where the training variance is 0.
    """
    model = gaussian_nll_rows(observed, mean, variance)
    if train_variance == 0:
        return math.nan
    trivial = gaussian_nll_rows(observed, np.full(model.size, train_mean), train_variance)
    return float(np.mean(model - trivial))


def sharpness(variance: ArrayLike) -> float:
    """Root of the mean predicted variance, sqrt(mean_i v_i), in the unit of the target.

    Kuleshov, Fenner and Ermon, Accurate Uncertainties for Deep Learning Using Calibrated Regression, ICML 2018. It
    looks at no observation: read it beside a calibration metric.
    """
    v = float_array(variance, "variance", (None,))
    return float(np.sqrt(np.mean(variance_array(v, v.size))))


def _residuals(observed: ArrayLike, mean: ArrayLike) -> FloatArray:
    y = float_array(observed, "observed", (None,))
    difference: FloatArray = y - float_array(mean, "mean", y.shape)
    return difference
