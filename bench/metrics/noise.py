"""Fit the observation noise of a regression forecast on validation data."""

import numpy as np
from numpy.typing import ArrayLike

from bench.metrics.arrays import FloatArray
from bench.metrics.forecast import Forecast

GRID_POINTS = 64
SMALLEST_SHARE = 1e-12


def fit_noise_variance(observed: ArrayLike, draws: ArrayLike, draw_variance: ArrayLike | None = None) -> float:
    """Return the 1/tau >= 0 that maximises prod_i N(y_i | mean_i, variance_i + 1/tau) on validation data.

    Gal and Ghahramani (ICML 2016) search tau on a grid; this is the maximum itself. `draws` is [T, N], and one draw
    has a variance of 0. Where every variance is 0 the answer is the mean squared residual. Otherwise the likelihood,
    which can have several maxima, is scanned on a logarithmic grid from 1e-12 of the largest squared residual up to
    it (no maximum lies above), refined around the best point, and compared with no noise at all.
    """
    forecast = Forecast(
        "regression",
        np.asarray(observed),
        np.asarray(draws),
        None if draw_variance is None else np.asarray(draw_variance),
        noise_variance=0.0,
    )
    squared, variance = forecast.loss, forecast.predictive_variance
    if not variance.any():
        return float(squared.mean())
    highest = float(squared.max())
    if highest == 0.0:
        return 0.0
    from scipy.optimize import minimize_scalar

    logs = np.linspace(np.log(highest * SMALLEST_SHARE), np.log(highest), GRID_POINTS)
    losses = [_loss(float(np.exp(point)), squared, variance) for point in logs]
    best = int(np.argmin(losses))
    bracket = (logs[max(best - 1, 0)], logs[min(best + 1, GRID_POINTS - 1)])
    found = minimize_scalar(
        lambda point: _loss(float(np.exp(point)), squared, variance),
        bounds=bracket,
        method="bounded",
        options={"xatol": 1e-10},
    )
    if variance.min() > 0 and _loss(0.0, squared, variance) <= found.fun:
        return 0.0
    return float(np.exp(found.x))


def _loss(noise: float, squared: FloatArray, variance: FloatArray) -> float:
    total = variance + noise
    with np.errstate(over="ignore"):
        return float(np.mean(np.log(total) + squared / total))
