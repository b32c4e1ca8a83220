"""The CRPS of an equal mixture: the integral over x of the variance of F_t(x) over draws, for each kind of part."""

import math
from collections.abc import Iterable

import numpy as np

from bench.errors import UserError
from bench.metrics.arrays import BoolArray, FloatArray
from bench.metrics.normal_mixture import NormalMixture
from bench.metrics.predictions import Normal, NormalInverseGamma, RegressionPrediction
from bench.metrics.quantile_predictions import Quantiles
from bench.metrics.standard_normal import mean_distance, normal_cdf

REACH, SPACING = 7.0, 0.6  # of the grid for mixtures of normals, in standard deviations: errors of about 1e-12
GROUPS = 8  # of rows, by the size of grid that mixtures of Student t need


def disagreement(part: RegressionPrediction) -> FloatArray:
    """Return the integral over x of the variance of F_t(x) over draws, for each row of a block."""
    if isinstance(part, Normal):
        return _normal_disagreement(part)
    if isinstance(part, NormalInverseGamma):
        return _student_disagreement(part)
    if isinstance(part, Quantiles):
        return _quantile_disagreement(part)
    if isinstance(part, NormalMixture):
        return _nested_disagreement(part)
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


def _integrate(part: RegressionPrediction, nodes: Iterable[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Sum the variance over draws of F_t at nodes x [rows] times their weights [rows]."""
    total: FloatArray = np.zeros(part.row_count)
    for x, weight in nodes:
        total += part.cdf(x).var(axis=0) * weight
    return total


def _pair_disagreement(part: Normal) -> FloatArray:
    """Return 1/2 [mean_{s,t} E|X_s - X_t| - mean_t E|X_t - X_t'|] of each row (Grimit et al., QJRMS 2006)."""
    mean, std, count = part.mean, part.std, part.draw_count
    if not std.any():
        weights = 2.0 * np.arange(count) - count + 1
        exact: FloatArray = weights @ np.sort(mean - mean[0], axis=0) / count**2
        return exact
    half = 0.5 * part.variance
    total: FloatArray = np.zeros(mean.shape[1])
    for t in range(count - 1):  # one draw against all later ones, so that memory stays linear in T
        both = half[t + 1 :] + half[t]
        np.sqrt(both, out=both)
        both *= math.sqrt(2.0)
        total += mean_distance(mean[t + 1 :] - mean[t], both).sum(axis=0)
    # A draw against itself has E|X_t - X_t'| = 2 s_t / sqrt(pi): 1/T of these pairs are in the first mean.
    pairs: FloatArray = total / count**2 - std.mean(axis=0) * ((count - 1) / count / math.sqrt(math.pi))
    return pairs


def _nested_disagreement(part: NormalMixture) -> FloatArray:
    """Return the variance over all normals minus its part within the draws (the law of total variance of F)."""
    one = (slice(t, t + 1) for t in range(part.draw_count))
    each = [NormalMixture(part.means[t], part.variances[t]).normals() for t in one]
    within: FloatArray = np.mean([_normal_disagreement(draw) for draw in each], axis=0)
    return _normal_disagreement(part.normals()) - within


def _student_disagreement(part: NormalInverseGamma) -> FloatArray:
    """Return it by the trapezoidal rule in u with x = c + w sinh(u), which follows the heavy tails."""
    centre, scale = part.mean.mean(axis=0), part.scale.min(axis=0)
    reach = np.abs(part.mean - centre).max(axis=0) + part.scale.max(axis=0)
    end = np.arcsinh(reach / scale) + 28.0 / (2 * np.maximum(part.degrees.min(axis=0), 1.0) - 1)
    # Scales below a thousandth of the distance between draws would take more nodes than this, and get less accuracy.
    nodes = np.minimum(2 * end / np.minimum(0.15, 0.4 * scale / reach), 10_000).astype(int) + 2
    result = np.empty(part.row_count)
    # Rows that need similar numbers of nodes are computed together: few rows need many.
    for some in np.array_split(np.argsort(nodes), min(GROUPS, nodes.size)):
        c, w, ends, count = centre[some], scale[some], end[some], int(nodes[some].max())
        step = 2 * ends / (count - 1)
        places = (place * ends for place in np.linspace(-1.0, 1.0, count))
        result[some] = _integrate(part.rows(some), ((c + w * np.sinh(u), step * w * np.cosh(u)) for u in places))
    return result


def _quantile_disagreement(part: Quantiles) -> FloatArray:
    """Return it by Gauss's rule between all quantiles of all draws: exact for flat tails."""
    finite: BoolArray = np.asarray(np.isfinite(part.values).all(axis=(0, 2)))
    if not finite.all():
        result = np.full(part.row_count, np.nan)
        if finite.any():
            result[finite] = _quantile_disagreement(part.rows(finite))
        return result
    knots = part.values
    if part.tails == "exponential":
        left, right = part._tail_scales(part.values)
        far = np.array([0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 18.0, 30.0])
        below, above = knots[..., :1] - left[..., None] * far, knots[..., -1:] + right[..., None] * far
        knots = np.concatenate([below, knots, above], axis=-1)
    knots = np.sort(knots.transpose(0, 2, 1).reshape(-1, part.row_count), axis=0)
    points, weights = np.polynomial.legendre.leggauss(3 if part.tails == "flat" else 8)
    half, middle = np.diff(knots, axis=0) / 2, (knots[1:] + knots[:-1]) / 2
    rule = list(zip(points, weights, strict=True))
    pieces = zip(middle, half, strict=True)
    return _integrate(part, ((m + h * point, h * weight) for m, h in pieces for point, weight in rule))
