"""Quantiles of equal mixtures: the inverse of F(x) = 1/T sum_t F_t(x), at many levels of many rows at once.

F and its density are computed at a grid of each row, which all levels share. It brackets the quantiles and gives
starts that are good to about 1e-5 standard deviations where the draws overlap; one or two steps of Halley's method
follow. Bisection takes over where a step leaves its bracket, as it does between draws that are far apart.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench.metrics.arrays import FloatArray, row_blocks
from bench.metrics.predictions import Normal, RegressionPrediction
from bench.metrics.quantile_predictions import Quantiles
from bench.metrics.standard_normal import ROOT_TWO_PI, normal_cdf

# Between two draws far apart F is level to rounding. The quantile there is the left end of the plateau, found as the
# point where F falls short of the level by this much: the order in which draws are summed does not move it.
SHORTFALL = 1e-9
STEPS = 200  # more than bisection needs to halve any bracket down to rounding
NODES = 32
# Halley's method has errors of about s (step / s)^3, with s the narrowest standard deviation: then 1e-15 s remains.
LAST_STEP = 1e-5

Indices = NDArray[np.intp]
# Of rows [E] and points [E]: F, its density and the slope of the density. No density is known where it is 0.
Curve = Callable[[Indices, FloatArray], tuple[FloatArray, FloatArray, FloatArray]]


def invert(part: RegressionPrediction, levels: FloatArray) -> FloatArray:
    """Return the quantiles [L, rows] of levels [L]: the smallest x with F(x) >= level - SHORTFALL."""
    if isinstance(part, Quantiles) and part.tails == "flat":
        return _invert_flat(part, levels)
    curve, narrowest = _curve(part)
    lowest, highest = _outermost(part, levels)
    low, high, start = _start(curve, levels - SHORTFALL, lowest, highest)
    row = np.tile(np.arange(part.row_count), levels.size)
    level = np.repeat(levels - SHORTFALL, part.row_count)
    found = _search(curve, level, row, low.ravel(), high.ravel(), start.ravel(), LAST_STEP * narrowest)
    return found.reshape(lowest.shape)


def _outermost(part: RegressionPrediction, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest quantile of the draws, [L, rows] each; that of the mixture lies between."""
    low, high = np.empty((2, levels.size, part.row_count))
    for some in row_blocks(levels.size, part.draw_count * part.row_count):
        each = part.quantile(levels[some])
        low[some], high[some] = each.min(axis=1), each.max(axis=1)
    return low, high


def _curve(part: RegressionPrediction) -> tuple[Curve, FloatArray]:
    """Return F with its derivatives, and the narrowest standard deviation of each row (0 where that is unknown)."""
    if isinstance(part, Normal):
        with np.errstate(divide="ignore", over="ignore"):
            std, inverse = part.std, 1.0 / part.std
        if np.isfinite(inverse).all():
            return _in_chunks(lambda row, x: _normal_curve(part.mean, inverse, row, x), part), std.min(axis=0)
    dense = part.has_density

    def any_curve(row: Indices, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        here = part.rows(row)
        density = np.exp(here.log_density(x)).mean(axis=0) if dense else np.zeros(x.size)
        return here.cdf(x).mean(axis=0), density, np.zeros(x.size)

    return _in_chunks(any_curve, part), np.zeros(part.row_count)


def _in_chunks(curve: Curve, part: RegressionPrediction) -> Curve:
    """Return the same function, computed for as many points at a time as fit in the processor's cache."""

    def chunked(row: Indices, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        values = np.empty((3, x.size))
        for some in row_blocks(x.size, part.draw_count):
            values[0, some], values[1, some], values[2, some] = curve(row[some], x[some])
        return values[0], values[1], values[2]

    return chunked


def _normal_curve(
    mean: FloatArray, inverse: FloatArray, row: Indices, x: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    scale = np.take(inverse, row, axis=1)  # several times faster than [:, row] for few draws
    with np.errstate(over="ignore", invalid="ignore"):
        z = (x - np.take(mean, row, axis=1)) * scale
        values = normal_cdf(z).mean(axis=0)
        density = np.square(z)
        density *= -0.5
        np.exp(density, out=density)
        density *= scale
        total = density.mean(axis=0) / ROOT_TWO_PI
        density *= z
        density *= scale
        return values, total, density.mean(axis=0) / -ROOT_TWO_PI


def _start(
    curve: Curve, levels: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return brackets and starts [L, rows] from the grid cell that each quantile lies in.

    Within a cell x is interpolated as a cubic of u = Phi^-1(F(x)), of which it is a linear function for one normal.
    """
    from scipy.special import ndtri

    count, rows = min(NODES, 4 + 2 * levels.size), np.arange(low.shape[1])
    first, last = low.min(axis=0), high.max(axis=0)
    share = np.linspace(0.0, 1.0, count)[:, None]
    nodes = (1 - share) * first + share * last  # last - first may overflow
    values, density, _ = (a.reshape(nodes.shape) for a in curve(np.tile(rows, count), nodes.ravel()))
    below = (values[:, None, :] < levels[:, None]).sum(axis=0)  # nodes left of each quantile
    left = np.clip(below - 1, 0, count - 2)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        u = ndtri(values)
        slope = np.exp(-0.5 * np.square(u)) / ROOT_TWO_PI / density
        u0, u1, x0, x1 = u[left, rows], u[left + 1, rows], nodes[left, rows], nodes[left + 1, rows]
        width = u1 - u0
        s = (ndtri(levels)[:, None] - u0) / width
        start = (1 - s) ** 2 * (x0 * (1 + 2 * s) + slope[left, rows] * width * s)
        start += s**2 * (x1 * (3 - 2 * s) - slope[left + 1, rows] * width * (1 - s))
        inside = (start >= x0) & (start <= x1)
        start = np.where(inside, start, x0 + (x1 - x0) / 2)
    low = np.where(below > 0, np.maximum(low, x0), low)
    high = np.where(below < count, np.minimum(high, x1), high)
    return low, high, np.clip(start, low, high)


def _search(
    curve: Curve, level: FloatArray, row: Indices, low: FloatArray, high: FloatArray, x: FloatArray, close: FloatArray
) -> FloatArray:
    """Return where the curves cross the levels, for entries [E] with brackets, starts and the step that is the last."""
    found, last = x.copy(), high - low
    open_ = np.flatnonzero(high > low)
    for _ in range(STEPS):
        if not open_.size:
            break
        at, left, right = x[open_], low[open_], high[open_]
        value, density, slope = curve(row[open_], at)
        gap = value - level[open_]
        left, right = np.where(gap < 0, at, left), np.where(gap < 0, right, at)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = gap / density
            jump = at - newton / (1 - np.clip(newton * slope / (2 * density), -0.5, 0.5))
            usable = (jump >= left) & (jump <= right) & (np.abs(jump - at) <= 0.5 * last[open_])
        following = np.where(gap == 0, at, np.where(usable, jump, left + (right - left) / 2))
        step = np.abs(following - at)
        rounding = 4e-16 * np.maximum(np.abs(left), np.abs(right))
        small = np.where(usable, np.maximum(close[row[open_]], rounding), rounding)
        low[open_], high[open_], last[open_], x[open_], found[open_] = left, right, step, following, following
        open_ = open_[(step > small) & (right > left)]
    return found


def _invert_flat(part: Quantiles, levels: FloatArray) -> FloatArray:
    """Return the quantiles of a mixture of quantiles with flat tails, whose F is linear between all their values."""
    rows = np.arange(part.row_count)
    curve = _in_chunks(lambda row, x: (part.rows(row).cdf(x).mean(axis=0), np.zeros(x.size), np.zeros(x.size)), part)
    knots = np.sort(part.values.transpose(0, 2, 1).reshape(-1, part.row_count), axis=0)
    row = np.tile(rows, levels.size)
    level = np.repeat(levels - SHORTFALL, part.row_count)
    first, last = np.full(row.size, -1), np.full(row.size, len(knots) - 1)  # F < level at the first, not at the last
    while (last - first).max() > 1:
        middle = np.maximum((first + last) // 2, 0)
        reached = curve(row, knots[middle, row])[0] >= level
        first, last = np.where(reached, first, middle), np.where(reached, middle, last)
    left, right = knots[np.maximum(first, 0), row], knots[last, row]
    with np.errstate(invalid="ignore", divide="ignore"):
        middle_x = left + (right - left) / 2  # F may jump at the right end, so its slope comes from the left half
        at_left, at_middle = curve(row, left)[0], curve(row, middle_x)[0]
        between = left + (level - at_left) / (at_middle - at_left) * (middle_x - left)
        linear = np.isfinite(left) & np.isfinite(right) & (first >= 0) & (between >= left) & (between <= right)
    low, high = _outermost(part, levels)
    found: FloatArray = np.clip(np.where(linear, between, right).reshape(low.shape), low, high)
    return found
