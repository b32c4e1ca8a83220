"""Predictions that state quantiles: quantile regression, and conformal intervals as two of them."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np

from bench.errors import UserError
from bench.metrics.arrays import BoolArray, FloatArray, float_array, numeric_array
from bench.metrics.predictions import RegressionPrediction

Tails = Literal["flat", "exponential"]


@dataclass(frozen=True, eq=False)
class Quantiles(RegressionPrediction):
    """Values [T, N, K] of the quantiles of K >= 2 ascending levels [K], strictly between 0 and 1.

    Between two levels the quantile function is linear (the density is constant). Below the lowest and above the
    highest level it is, as `tails` states:

    - "flat": constant. The outer probability is a point mass at the outermost value, and there is no density.
    - "exponential": an exponential tail whose density continues that of the outermost interval.

    Values may be infinite (a conformal interval with too few calibration rows); then `point` must state what is
    predicted. The variance within a prediction counts as noise, and does not exist where a value is infinite.
    """

    levels: FloatArray
    values: FloatArray
    point: FloatArray | None = None
    tails: Tails = "flat"

    def __post_init__(self) -> None:
        levels = float_array(self.levels, "levels", (None,))
        if levels.size < 2 or levels[0] <= 0 or levels[-1] >= 1 or (np.diff(levels) <= 0).any():
            raise UserError(f"levels: expected at least 2, ascending, strictly between 0 and 1, got {levels.tolist()}")
        if self.tails not in get_args(Tails):
            raise UserError(f"tails: {self.tails!r} is none of {', '.join(get_args(Tails))}")
        values = numeric_array(self.values, "values", (None, None, levels.size)).astype(np.float64, copy=False)
        if np.isnan(values).any():
            raise UserError(f"values: {int(np.isnan(values).sum())} quantiles are NaN")
        with np.errstate(invalid="ignore"):
            if (values[..., 1:] < values[..., :-1]).any():
                raise UserError(
                    "values: quantiles decrease with their level (they cross); sort them along the last axis"
                )
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "values", values)
        if self.point is not None:
            object.__setattr__(self, "point", float_array(self.point, "point", values.shape[:2]))
        elif not np.isfinite(values).all():
            raise UserError("values: a distribution with infinite quantiles has no mean; state `point`")

    def _map(self, change: Any) -> Self:
        return replace(self, values=change(self.values), point=None if self.point is None else change(self.point))

    @property
    def draw_count(self) -> int:
        """T, the number of draws."""
        return int(self.values.shape[0])

    @property
    def row_count(self) -> int:
        """N, the number of rows."""
        return int(self.values.shape[1])

    @property
    def has_density(self) -> bool:
        """Whether the tails have a density and no two quantiles are equal or infinite."""
        widths = self._widths
        return self.tails == "exponential" and bool((widths > 0).all() and np.isfinite(widths).all())

    @property
    def centre(self) -> FloatArray:
        """The stated point, or the mean of the distribution."""
        return self._mean if self.point is None else self.point

    @property
    def noise_variance(self) -> FloatArray:
        """The variance of the distribution; NaN where a quantile is infinite."""
        finite = self._finite
        around = np.where(finite[..., None], self.values, 0.0)
        around = around - around.mean(-1, keepdims=True)
        a, b = around[..., :-1], around[..., 1:]
        second = ((np.square(a) + a * b + np.square(b)) / 3) @ np.diff(self.levels)
        (low, high), (left, right) = self._outer, self._tail_scales(around)
        ends = around[..., 0], around[..., -1]
        second += low * (np.square(ends[0]) - 2 * ends[0] * left + 2 * np.square(left))
        second += high * (np.square(ends[1]) + 2 * ends[1] * right + 2 * np.square(right))
        variance = second - np.square(self._integrate(around))
        return np.where(finite, np.maximum(variance, 0.0), np.nan)

    def affine(self, factor: float, offset: float) -> Self:
        """Return the quantiles in another unit."""
        point = None if self.point is None else self.point * factor + offset
        return replace(self, values=self.values * factor + offset, point=point)

    def log_density(self, y: FloatArray) -> FloatArray:
        """Return the log density: constant between quantiles, exponential outside."""
        if not self.has_density:
            raise UserError("these quantiles have no density: their tails are flat, or two of them are equal")
        y = y[..., None, :]
        (low, high), (left, right) = self._outer, self._tail_scales(self.values)
        first, last = self.values[..., 0], self.values[..., -1]
        logs = np.where(y < first, np.log(low / left) + (y - first) / left, np.log(high / right) - (y - last) / right)
        for k, mass in enumerate(np.diff(self.levels)):
            inside = (y >= self.values[..., k]) & (y <= self.values[..., k + 1])
            logs = np.where(inside, np.log(mass / self._widths[..., k]), logs)
        return logs

    def cdf(self, y: FloatArray) -> FloatArray:
        """Return the distribution function."""
        y = y[..., None, :]
        (low, high), (left, right) = self._outer, self._tail_scales(self.values)
        first, last, widths = self.values[..., 0], self.values[..., -1], self._widths
        regular = bool(((widths > 0) & np.isfinite(widths)).all())
        below: FloatArray | float = 0.0
        above: FloatArray | float = 0.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.tails == "exponential":
                below = np.where(left > 0, np.exp((y - first) / left), 0.0)
                above = np.where(right > 0, np.exp((last - y) / right), 0.0)
            inner: FloatArray = np.full(np.broadcast_shapes(y.shape, first.shape), low)
            for k, mass in enumerate(np.diff(self.levels)):
                a, b = self.values[..., k], self.values[..., k + 1]
                share = y - a
                share /= widths[..., k]
                if not regular:
                    share = np.where(b > a, share, y >= a)
                    share = np.where(np.isnan(share), np.isfinite(b), share)  # an infinite bound: its mass lies there
                np.clip(share, 0.0, 1.0, out=share)
                share *= mass
                inner += share
            return np.where(y < first, low * below, np.where(y >= last, 1 - high * above, inner))

    def quantile(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles of other levels."""
        wanted = levels[:, None, None] if levels.ndim == 1 else levels
        (low, high), (left, right) = self._outer, self._tail_scales(self.values)
        first, last = self.values[..., 0], self.values[..., -1]
        with np.errstate(divide="ignore", invalid="ignore"):
            below = np.where(left > 0, first + left * np.log(wanted / low), first)
            above = np.where(right > 0, last - right * np.log((1 - wanted) / high), last)
            answer = np.where(wanted < self.levels[0], below, above)
            for k in range(self.levels.size - 1):
                a, b = self.values[..., k], self.values[..., k + 1]
                share = (wanted - self.levels[k]) / (self.levels[k + 1] - self.levels[k])
                # From minus infinity to a number it is minus infinity up to the number's own level.
                flat = (a == b) | (np.isneginf(a) & np.isfinite(b))
                between = np.where(share == 1, b, np.where(flat | (share == 0), a, a + share * (b - a)))
                answer = np.where((wanted >= self.levels[k]) & (wanted <= self.levels[k + 1]), between, answer)
        return answer

    def crps(self, y: FloatArray) -> FloatArray:
        """Return the integral over p of twice the pinball loss, in closed form; NaN where a quantile is infinite."""
        finite = self._finite
        values = np.where(finite[..., None], self.values, 0.0)
        y = y[..., None, :]
        (low, high), (left, right) = self._outer, self._tail_scales(values)
        total = _tail_score(y - values[..., 0], low, left) + _tail_score(values[..., -1] - y, high, right)
        for k in range(self.levels.size - 1):
            total = total + _segment_score(y, values[..., k], values[..., k + 1], *self.levels[k : k + 2])
        return np.where(finite, total, np.nan)

    @property
    def _finite(self) -> BoolArray:
        """The rows without an infinite quantile, [T, N]."""
        return np.asarray(np.isfinite(self.values).all(-1))

    @property
    def _widths(self) -> FloatArray:
        with np.errstate(invalid="ignore"):
            widths: FloatArray = np.diff(self.values, axis=-1)
        return widths

    @property
    def _outer(self) -> tuple[float, float]:
        """The probability below the lowest and above the highest level."""
        return float(self.levels[0]), float(1 - self.levels[-1])

    @property
    def _mean(self) -> FloatArray:
        return self._integrate(self.values)

    def _integrate(self, values: FloatArray) -> FloatArray:
        (low, high), (left, right) = self._outer, self._tail_scales(values)
        inner: FloatArray = ((values[..., :-1] + values[..., 1:]) / 2) @ np.diff(self.levels)
        return inner + low * (values[..., 0] - left) + high * (values[..., -1] + right)

    def _tail_scales(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean excess of the left and of the right tail; 0 where the tails are flat."""
        if self.tails == "flat":
            return np.zeros(values.shape[:-1]), np.zeros(values.shape[:-1])
        (low, high), mass = self._outer, np.diff(self.levels)
        left: FloatArray = low * (values[..., 1] - values[..., 0]) / mass[0]
        right: FloatArray = high * (values[..., -1] - values[..., -2]) / mass[-1]
        return left, right


def _tail_score(inside: FloatArray, mass: float, scale: FloatArray) -> FloatArray:
    """Return the integral of twice the pinball loss over a tail, for y at this distance inside of its end."""
    outside = np.maximum(-inside, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        crossing = np.where(scale > 0, mass * np.exp(-outside / scale), np.where(outside > 0, 0.0, mass))
    within: FloatArray = mass**2 * (np.maximum(inside, 0.0) + scale / 2)
    # Beyond the end, with L = log(mass / crossing) = outside / scale.
    beyond: FloatArray = 2 * (mass * outside - (mass - crossing) * scale) - mass**2 * (outside - scale / 2)
    return np.where(inside >= 0, within, beyond)


def _segment_score(y: FloatArray, a: FloatArray, b: FloatArray, low: float, high: float) -> FloatArray:
    """Return the integral over levels from low to high of twice the pinball loss of a linear quantile function."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(b > a, np.clip((y - a) / (b - a), 0.0, 1.0), y >= a)
    crossing, at = low + share * (high - low), a + share * (b - a)
    middle = 2 * (1 - (crossing + high) / 2) * ((at + b) / 2 - y)
    above = (high - crossing) / 6 * (2 * (1 - crossing) * (at - y) + 4 * middle + 2 * (1 - high) * (b - y))
    middle = 2 * ((low + crossing) / 2) * (y - (a + at) / 2)
    below = (crossing - low) / 6 * (2 * low * (y - a) + 4 * middle + 2 * crossing * (y - at))
    score: FloatArray = above + below
    return score
