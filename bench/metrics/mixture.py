"""The equal mixture of the T draws of a prediction: the distribution that a forecast of a real target is.

Vectorised over rows and draws, in blocks of rows that fit in the processor's cache.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, float_array, row_blocks
from bench.metrics.predictions import Normal, NormalInverseGamma, RegressionPrediction
from bench.metrics.quantile_predictions import Quantiles

# The median and the ends of 11 central intervals (Bracher et al. 2021): what scores of quantiles are computed from.
LEVELS: FloatArray = np.array([0.01, 0.025, *(np.arange(1, 20) / 20), 0.975, 0.99])
# Between two draws far apart F is level to rounding. The quantile there is the left end of the plateau, found as the
# point where F falls short of the level by this much: the order in which draws are summed does not move it.
SHORTFALL = 1e-9
STEPS = 200  # more than bisection needs to halve any bracket down to rounding
REACH, SPACING = 7.0, 0.6  # of the grid for mixtures of normals, in standard deviations: errors of about 1e-12


@dataclass(frozen=True, eq=False)
class Mixture:
    """F(y) = 1/T sum_t F_t(y). `parts` must have a distribution (points have one after `with_noise`)."""

    parts: RegressionPrediction

    def __post_init__(self) -> None:
        if not self.parts.has_distribution:
            raise UserError("a mixture needs distributions; points have none without a fitted or stated noise")

    def log_density(self, observed: ArrayLike) -> FloatArray:
        """Return log 1/T sum_t f_t(y_i) of each row."""
        y, logs = self._observed(observed), np.empty(self.parts.row_count)
        for block in self._blocks(1):
            each = self.parts.rows(block).log_density(y[block])
            top = each.max(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                summed = top + np.log(np.mean(np.exp(each - top), axis=0))
            logs[block] = np.where(np.isfinite(top), summed, top)
        return logs

    def cdf(self, observed: ArrayLike) -> FloatArray:
        """Return F(y_i) of each row, the probability integral transform."""
        y, values = self._observed(observed), np.empty(self.parts.row_count)
        for block in self._blocks(1):
            values[block] = self.parts.rows(block).cdf(y[block]).mean(axis=0)
        return np.clip(values, 0.0, 1.0)

    def quantile(self, levels: ArrayLike) -> FloatArray:
        """Return the quantiles [L, N] of levels [L]: the smallest x with F(x) >= level, up to a probability of 1e-9.

        That of a mixture lies between the lowest and the highest of its parts; Newton's method inside that bracket,
        with bisection where a step leaves it or does not halve the last one.
        """
        wanted = float_array(levels, "levels", (None,))
        if wanted.min() <= 0 or wanted.max() >= 1:
            raise UserError(f"levels: a quantile's level lies strictly between 0 and 1, got {wanted.tolist()}")
        found = np.empty((wanted.size, self.parts.row_count))
        single = self.parts.draw_count == 1
        for block in self._blocks(wanted.size):
            part = self.parts.rows(block)
            found[:, block] = part.quantile(wanted)[:, 0] if single else _invert(part, wanted)
        return found

    def crps(self, observed: ArrayLike) -> FloatArray:
        """Return the CRPS of each row; NaN where it does not exist.

        (F - 1[x >= y])^2 = mean_t (F_t - 1[x >= y])^2 - var_t F_t, so the score is the mean of the parts' closed forms
        minus the integral of the variance of F_t over draws.
        """
        y, scores = self._observed(observed), np.empty(self.parts.row_count)
        single = self.parts.draw_count == 1
        for block in self._blocks(1):
            part = self.parts.rows(block)
            scores[block] = part.crps(y[block]).mean(axis=0)
            if not single:
                scores[block] -= _disagreement(part)
        return scores

    def _observed(self, observed: ArrayLike) -> FloatArray:
        return float_array(observed, "observed", (self.parts.row_count,))

    def _blocks(self, width: int) -> list[slice]:
        return row_blocks(self.parts.row_count, self.parts.draw_count * width)


def _invert(part: RegressionPrediction, levels: FloatArray) -> FloatArray:
    each = part.quantile(levels)
    low, high = each.min(axis=1), each.max(axis=1)
    start = np.clip(_moment_quantile(part, levels), low, high)
    shape = low.shape
    low, high, x = low.ravel(), high.ravel(), start.ravel()
    level = np.repeat(levels, part.row_count)
    row = np.tile(np.arange(part.row_count), levels.size)
    found, last = x.copy(), high - low
    open_ = np.flatnonzero(high > low)
    for _ in range(STEPS):
        if not open_.size:
            break
        here, at = part.rows(row[open_]), x[open_]
        gap = here.cdf(at).mean(axis=0) - level[open_] + SHORTFALL
        low[open_], high[open_] = np.where(gap < 0, at, low[open_]), np.where(gap < 0, high[open_], at)
        middle = low[open_] + (high[open_] - low[open_]) / 2
        if part.has_density:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = at - gap / np.exp(here.log_density(at)).mean(axis=0)
            usable = (newton >= low[open_]) & (newton <= high[open_]) & (np.abs(newton - at) <= 0.5 * last[open_])
            following = np.where(usable, newton, middle)
        else:
            following = middle
        last[open_] = np.abs(following - at)
        x[open_] = found[open_] = np.where(gap == 0, at, following)
        size = np.maximum(np.abs(low[open_]), np.abs(high[open_]))
        open_ = open_[(last[open_] > 4e-16 * size) & (gap != 0) & (high[open_] > low[open_])]
    return found.reshape(shape)


def _moment_quantile(part: RegressionPrediction, levels: FloatArray) -> FloatArray:
    """Return the quantiles of the normal with the mixture's moments, a start; the mean where it has no variance."""
    from scipy.special import ndtri

    centre, stated = part.centre, part.variance
    variance = centre.var(axis=0) + (0.0 if stated is None else stated.mean(axis=0))
    with np.errstate(invalid="ignore"):
        start: FloatArray = centre.mean(axis=0) + ndtri(levels)[:, None] * np.sqrt(variance)
    return np.where(np.isfinite(start), start, centre.mean(axis=0))


def _disagreement(part: RegressionPrediction) -> FloatArray:
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
    result = np.empty(part.row_count)
    result[pairs] = _pair_disagreement(mean[:, pairs], std[:, pairs])
    if (grid := np.flatnonzero(~pairs)).size:
        count = int(nodes[grid].max()) + 1
        x = low[grid] + (high[grid] - low[grid]) * np.linspace(0.0, 1.0, count)[:, None]
        result[grid] = _trapezoids(part.rows(grid), x, (high[grid] - low[grid]) / (count - 1))
    return result


def _trapezoids(part: RegressionPrediction, x: FloatArray, weight: FloatArray) -> FloatArray:
    """Sum the variance over draws of F_t at the nodes x [K, rows] times their weights."""
    total: FloatArray = np.zeros(x.shape[1])
    for k in range(x.shape[0]):
        total += part.cdf(x[k]).var(axis=0) * (weight[k] if weight.ndim == 2 else weight)
    return total


def _pair_disagreement(mean: FloatArray, std: FloatArray) -> FloatArray:
    """Return 1/2 [mean_{s,t} E|X_s - X_t| - mean_t E|X_t - X_t'|] of each row (Grimit et al., QJRMS 2006)."""
    from bench.metrics.predictions import _mean_distance

    count = mean.shape[0]
    if not std.any():
        weights = 2.0 * np.arange(count) - count + 1
        exact: FloatArray = weights @ np.sort(mean - mean[0], axis=0) / count**2
        return exact
    total: FloatArray = np.zeros(mean.shape[1])
    for t in range(count):  # one draw against all others, so that memory stays linear in T
        total += _mean_distance(mean - mean[t], np.hypot(std, std[t])).mean(axis=0)
    pairs: FloatArray = total / (2 * count) - std.mean(axis=0) / math.sqrt(math.pi)
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
