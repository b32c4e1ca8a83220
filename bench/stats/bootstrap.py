"""Bootstrap intervals. Resamples are weights, so that many samples of one size are resampled by one matrix product."""

from typing import Any

import numpy as np
import scipy.special
from numpy.typing import ArrayLike, NDArray

from bench.stats.distributions import t_quantile
from bench.stats.shared_resamples import draw_cached
from bench.stats.tests import Array, variance_factor


def resampling_weights(size: int, resamples: int, generator: np.random.Generator) -> Array:
    """Return weights `[resamples, size]`: how often each of `size` values is drawn, divided by `size`."""

    def draw(generator: np.random.Generator) -> Array:
        return generator.multinomial(size, np.full(size, 1.0 / size), size=resamples) / size

    return draw_cached(generator, ("resampling weights", size, resamples), draw)


def resampling_counts(size: int, resamples: int, generator: np.random.Generator) -> NDArray[np.integer[Any]]:
    """Return `[resamples, size]`: how often each of `size` values is among those drawn by their indices."""

    def draw(generator: np.random.Generator) -> NDArray[np.integer[Any]]:
        drawn = generator.integers(0, size, size=(resamples, size)) + size * np.arange(resamples)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=resamples * size).reshape(resamples, size)
        return counts.astype(np.min_scalar_type(size))

    return draw_cached(generator, ("resampling counts", size, resamples), draw)


def small_sample_tail(tail: float, size: int) -> float:
    """Return the tail probability with which a bootstrap interval of `size` values is as wide as a t interval.

    Hesterberg 2015, "What Teachers Should Know About the Bootstrap": the bootstrap divides by n where the unbiased
    variance divides by n - 1, and its quantiles are normal ones; at 20 values its 95 % interval covers about 93 %.
    """
    return float(scipy.special.ndtr(t_quantile(tail, size - 1) * np.sqrt(size / (size - 1))))


def bca_interval(
    samples: ArrayLike,
    generator: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    small_sample: bool = True,
    test_share: float = 0.0,
) -> Array:
    """Return bias-corrected and accelerated bootstrap intervals `[..., 2]` of the means along the last axis.

    Efron 1987. `small_sample` uses the wider tails of `small_sample_tail`. Where splits overlap (`test_share` > 0) both
    ends move away from the mean by the Nadeau-Bengio factor, because the bootstrap assumes independence. All samples
    of one call share their resamples: each interval is valid by itself.
    """
    x = np.asarray(samples, dtype=np.float64)
    size = x.shape[-1]
    rows = x.reshape(-1, size)
    weights = resampling_weights(size, resamples, generator)
    tail = (1.0 - level) / 2.0
    tail = small_sample_tail(tail, size) if small_sample else tail
    normal = scipy.special.ndtri(np.array([tail, 1.0 - tail]))
    ends = np.empty((len(rows), 2))
    for start in range(0, len(rows), 100):  # 100 x 10,000 means are 8 MB: they stay in the cache
        part = rows[start : start + 100]
        mean = part.mean(axis=-1, keepdims=True)
        centred = part - mean
        means = np.sort(centred @ weights.T, axis=-1)
        square = np.square(centred).sum(axis=-1, keepdims=True)
        flat = square[:, 0] == 0.0
        square[flat] = 1.0
        # The mean's influence values are the centred values themselves, so the acceleration is their skewness.
        acceleration = (centred**3).sum(axis=-1, keepdims=True) / (6.0 * square**1.5)
        tolerance = 1e-12 * np.sqrt(square)
        below = 0.5 * ((means < -tolerance).mean(axis=-1) + (means <= tolerance).mean(axis=-1))
        shift = scipy.special.ndtri(np.clip(below, 1.0 / resamples, 1.0 - 1.0 / resamples))[:, None]
        moved = scipy.special.ndtr(shift + (shift + normal) / (1.0 - acceleration * (shift + normal)))
        ends[start : start + 100] = mean + _quantiles(means, moved) * _widening(size, test_share)
        ends[start : start + 100][flat] = mean[flat]
    return ends.reshape(*x.shape[:-1], 2)


def hull(first: Array, second: Array) -> Array:
    """Return the smallest intervals `[..., 2]` that contain both.

    BCa intervals are too short where noise is symmetric with heavy tails, because one outlier looks like skewness; t
    intervals are too short where noise is skewed. Their hull covers in both cases (docs/statistics.md).
    """
    return np.stack([np.minimum(first[..., 0], second[..., 0]), np.maximum(first[..., 1], second[..., 1])], axis=-1)


def cut_interval(ends: ArrayLike, means: ArrayLike, value_range: tuple[float, float]) -> Array:
    """Return intervals of means `[..., 2]`, cut at the smallest and the largest value that the metric can have.

    Where a mean is itself outside, the stated range is wrong and the interval stays as it is.
    """
    x, middle = np.asarray(ends, dtype=np.float64), np.asarray(means, dtype=np.float64)
    inside = (middle >= value_range[0]) & (middle <= value_range[1])
    return np.where(inside[..., None], np.clip(x, *value_range), x)


def percentile_interval(statistics: ArrayLike, level: float = 0.95) -> Array:
    """Return the percentile interval `[..., 2]` of bootstrapped statistics along the last axis."""
    tail = (1.0 - level) / 2.0
    return np.moveaxis(np.quantile(np.asarray(statistics, dtype=np.float64), [tail, 1.0 - tail], axis=-1), 0, -1)


def _widening(size: int, test_share: float) -> float:
    return float(np.sqrt(size * variance_factor(size, test_share)))


def _quantiles(ordered: Array, shares: Array) -> Array:
    """Interpolate linearly between order statistics, each row with its own shares."""
    place = shares * (ordered.shape[-1] - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, ordered.shape[-1] - 1)
    left, right = np.take_along_axis(ordered, low, -1), np.take_along_axis(ordered, high, -1)
    return np.asarray(left + (place - low) * (right - left))
