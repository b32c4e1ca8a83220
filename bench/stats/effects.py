"""Effect sizes: how large a difference is, beside whether there is one."""

import numpy as np
from numpy.typing import ArrayLike

from bench.stats.tests import Array


def superiority(a: ArrayLike, b: ArrayLike) -> Array:
    """Return A12, the probability that a value of `a` is above one of `b`; ties count half.

    Vargha and Delaney 2000. Values lie along the last axis; the numbers of values may differ.
    """
    x, y = np.asarray(a, dtype=np.float64)[..., :, None], np.asarray(b, dtype=np.float64)[..., None, :]
    return np.asarray((x > y).mean(axis=(-2, -1)) + 0.5 * (x == y).mean(axis=(-2, -1)))


def paired_superiority(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the share of pairs in which the value of `a` is above that of `b`; ties count half.

    It estimates the probability that a paired repeat is above, which the sign test is about. A12 compares all values of
    `a` with all of `b`, so that what makes a repeat hard for both methods hides a difference that every pair shows.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return np.asarray((x > y).mean(axis=-1) + 0.5 * (x == y).mean(axis=-1))


def cliffs_delta(a: ArrayLike, b: ArrayLike) -> Array:
    """Return Cliff's delta, P(a > b) - P(a < b) = 2 A12 - 1 (Cliff 1993)."""
    return 2.0 * superiority(a, b) - 1.0


def pooled_deviation(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the pooled standard deviation over repeats, sqrt((s_a^2 + s_b^2) / 2) for samples of one size."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return np.asarray(np.sqrt((x.var(axis=-1, ddof=1) + y.var(axis=-1, ddof=1)) / 2.0))


def unshared_deviation(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the standard deviation of one method over pairs without what both have in common, s(a - b) / sqrt(2).

    Of values with a part that pairs share and independent noise of equal variance it is that of the noise.
    """
    d = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    return np.asarray(d.std(axis=-1, ddof=1) / np.sqrt(2.0))


def standardised_difference(a: ArrayLike, b: ArrayLike) -> Array:
    """Return (mean a - mean b) / pooled standard deviation (Cohen's d); NaN where nothing varies."""
    deviation = pooled_deviation(a, b)
    gap = np.asarray(a, dtype=np.float64).mean(axis=-1) - np.asarray(b, dtype=np.float64).mean(axis=-1)
    return np.where(deviation > 0.0, gap / np.where(deviation > 0.0, deviation, 1.0), np.nan)
