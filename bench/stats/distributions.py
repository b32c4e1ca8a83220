"""Tails and quantiles of the distributions that tests need, and ranks, from `scipy.special` alone.

`scipy.stats` has the same numbers, and is the longest import of a command that compares methods: half a second and 50
MB. Nothing here needs it.
"""

from functools import cache, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Array = NDArray[np.float64]

_REACH = 9.0  # standard deviations, beyond which the normal density is below 1e-18


def t_tail(t: ArrayLike, freedom: ArrayLike) -> Array:
    """Return P(T > t) of Student's t."""
    return np.asarray(special.stdtr(freedom, -np.asarray(t, dtype=np.float64)))


def t_quantile(share: ArrayLike, freedom: ArrayLike) -> Array:
    """Return the t that Student's t is below with probability `share`."""
    return np.asarray(special.stdtrit(freedom, share))


def chi_squared_tail(statistic: ArrayLike, freedom: ArrayLike) -> Array:
    """Return P(X > statistic) of chi-squared."""
    return np.asarray(special.chdtrc(freedom, np.maximum(statistic, 0.0)))  # below 0 by rounding


def f_tail(statistic: ArrayLike, first: ArrayLike, second: ArrayLike) -> Array:
    """Return P(X > statistic) of Fisher's F with these degrees of freedom."""
    return np.asarray(special.fdtrc(first, second, np.maximum(statistic, 0.0)))


def range_tail(gap: ArrayLike, count: int) -> Array:
    """Return P(the range of `count` standard normals > gap): the studentised range with infinite degrees of freedom.

    P(range <= q) = k integral phi(z) [Phi(z) - Phi(z - q)]^(k-1) dz, where z is the largest.
    """
    points, weights = _quadrature()
    z = _REACH * points
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    between = special.ndtr(z) - special.ndtr(z - np.asarray(gap, dtype=np.float64)[..., None])
    return np.asarray(np.clip(1.0 - _REACH * count * (between ** (count - 1) @ (weights * density)), 0.0, 1.0))


@cache
def _quadrature() -> tuple[Array, Array]:
    """Return the points and weights of Gauss and Legendre, which take 40 ms to compute."""
    return np.polynomial.legendre.leggauss(200)


@lru_cache(maxsize=256)
def range_quantile(tail: float, count: int) -> float:
    """Return the gap that the range of `count` standard normals exceeds with probability `tail`."""
    low, high = 0.0, 2.0 * _REACH
    while (middle := (low + high) / 2.0) not in (low, high):
        low, high = (middle, high) if range_tail(middle, count) > tail else (low, middle)
    return high


def ranks(values: ArrayLike) -> Array:
    """Return ranks from 1 along the last axis; equal values share the mean of theirs, NaN makes all of them NaN."""
    x = np.asarray(values, dtype=np.float64)
    order = np.argsort(x, axis=-1, kind="stable")
    ordered = np.take_along_axis(x, order, axis=-1)
    begins = np.ones(x.shape, dtype=bool)  # of each run of equal values
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    starts = np.flatnonzero(begins)
    counts = np.diff(starts, append=x.size)
    found = np.empty(x.shape)
    means = np.repeat(starts % x.shape[-1] + (counts + 1) / 2.0, counts)
    np.put_along_axis(found, order, means.reshape(x.shape), axis=-1)
    found[np.isnan(x).any(axis=-1)] = np.nan
    return found


def skewness(values: ArrayLike) -> Array:
    """Return the third central moment along the last axis, by that of the second to the power 3/2."""
    x = np.asarray(values, dtype=np.float64)
    centred = x - x.mean(axis=-1, keepdims=True)
    square = np.square(centred)
    return np.asarray((square * centred).mean(axis=-1) / square.mean(axis=-1) ** 1.5)


@lru_cache(maxsize=64)
def signed_rank_counts(pairs: int) -> Array:
    """Return how many of the 2^n patterns of signs have a sum of positive ranks of at most 0, 1, 2, ..."""
    counts = np.ones(1)
    for rank in range(1, pairs + 1):
        counts = np.pad(counts, (0, rank)) + np.pad(counts, (rank, 0))
    return np.cumsum(counts)
