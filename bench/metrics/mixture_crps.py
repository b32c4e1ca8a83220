"""The CRPS of an equal mixture: the integral over x of the variance of F_t(x) over draws, for each kind of part."""

import math

import numpy as np

from bench.errors import UserError
from bench.metrics.arrays import FloatArray
from bench.metrics.predictions import Normal, NormalInverseGamma, RegressionPrediction
from bench.metrics.quantile_predictions import Quantiles
from bench.metrics.standard_normal import mean_distance, normal_cdf

REACH, SPACING = 7.0, 0.6  # of the grid for mixtures of normals, in standard deviations: errors of about 1e-12


def disagreement(part: RegressionPrediction) -> FloatArray:
    """Return the integral over x of the variance of F_t(x) over draws, for each row of a block."""
    if isinstance(part, Normal):
        return _normal_disagreement(part)
    if isinstance(part, NormalInverseGamma):
        return _student_disagreement(part)
    if isinstance(part, Quantiles):
        return _quantile_disagreement(part)
    raise UserError(f"no CRPS is known for a mixture of {type(part).__name__}")


def _normal_disagreement(part: Normal) -> FloatArray:
    """Return it by the trapezoidal rule, or by all pairs of draws where a fine grid would cost more.

    The integrand is analytic and as smooth as the narrowest normal, so that the rule converges exponentially.
    """
    mean, std = part.mean, part.std
    low, high = (mean - REACH * std).min(axis=0), (mean + REACH * std).max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        nodes = (high - low) / (SPACING * std.min(axis=0)) + 2
    pairs = ~(nodes <= max(part.draw_count / 2, 32))  # NaN: no width at all
    result = np.zeros(part.row_count)
    if pairs.any():
        result[pairs] = _pair_disagreement(part.rows(pairs))
    if (grid := np.flatnonzero(~pairs)).size:
        count = int(nodes[grid].max()) + 1
        x = low[grid] + (high[grid] - low[grid]) * np.linspace(0.0, 1.0, count)[:, None]
        inner, inverse = mean[:, grid], 1.0 / std[:, grid]
        for node in x:
            result[grid] += normal_cdf((node - inner) * inverse).var(axis=0)
        result[grid] *= (high[grid] - low[grid]) / (count - 1)
    return result


def _trapezoids(part: RegressionPrediction, x: FloatArray, weight: FloatArray) -> FloatArray:
    """Sum the variance over draws of F_t at the nodes x [K, rows] times their weights [K, rows]."""
    total: FloatArray = np.zeros(x.shape[1])
    for k in range(x.shape[0]):
        total += part.cdf(x[k]).var(axis=0) * weight[k]
    return total


def _pair_disagreement(part: Normal) -> FloatArray:
    """Return 1/2 [mean_{s,t} E|X_s - X_t| - mean_t E|X_t - X_t'|] of each row (Grimit et al., QJRMS 2006)."""
    mean, std, count = part.mean, part.std, part.draw_count
    if not std.any():
        weights = 2.0 * np.arange(count) - count + 1
        exact: FloatArray = weights @ np.sort(mean - mean[0], axis=0) / count**2
        return exact
    half = 0.5 * np.square(std)
    total: FloatArray = np.zeros(mean.shape[1])
    for t in range(count - 1):  # one draw against all later ones, so that memory stays linear in T
        both = half[t + 1 :] + half[t]
        np.sqrt(both, out=both)
        both *= math.sqrt(2.0)
        total += mean_distance(mean[t + 1 :] - mean[t], both).sum(axis=0)
    # A draw against itself has E|X_t - X_t'| = 2 s_t / sqrt(pi): 1/T of these pairs are in the first mean.
    pairs: FloatArray = total / count**2 - std.mean(axis=0) * ((count - 1) / count / math.sqrt(math.pi))
    return pairs


def _student_disagreement(part: NormalInverseGamma) -> FloatArray:
    """Return it by the trapezoidal rule in u with x = c + w sinh(u), which follows the heavy tails."""
    centre, scale = part.mean.mean(axis=0), part.scale.min(axis=0)
    reach = np.abs(part.mean - centre).max(axis=0) + part.scale.max(axis=0)
    lowest = max(float(part.degrees.min()), 1.0)
    end = float(np.arcsinh(reach / scale).max()) + 28.0 / (2 * lowest - 1)
    # Scales below a thousandth of the distance between draws would take more nodes than this, and get less accuracy.
    step = max(float(np.minimum(0.15, 0.4 * scale / reach).min()), 2 * end / 10_000)
    u = np.arange(-end, end + step, step)[:, None]
    return _trapezoids(part, centre + scale * np.sinh(u), step * scale * np.cosh(u))


def _quantile_disagreement(part: Quantiles) -> FloatArray:
    """Return it by Gauss's rule between all quantiles of all draws: exact for flat tails."""
    if not np.isfinite(part.values).all():
        return np.full(part.row_count, np.nan)
    knots = part.values
    if part.tails == "exponential":
        left, right = part._tail_scales(part.values)
        far = np.array([0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 18.0, 30.0])
        below, above = knots[..., :1] - left[..., None] * far, knots[..., -1:] + right[..., None] * far
        knots = np.concatenate([below, knots, above], axis=-1)
    knots = np.sort(knots.transpose(0, 2, 1).reshape(-1, part.row_count), axis=0)
    points, weights = np.polynomial.legendre.leggauss(3 if part.tails == "flat" else 8)
    half, middle = np.diff(knots, axis=0) / 2, (knots[1:] + knots[:-1]) / 2
    total: FloatArray = np.zeros(part.row_count)
    for point, weight in zip(points, weights, strict=True):
        total += _trapezoids(part, middle + half * point, half * weight)
    return total
