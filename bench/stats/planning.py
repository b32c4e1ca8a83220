"""How many seeds a difference needs, and the smallest difference that a number of seeds can detect.

Power is that of the two-sided paired t-test (corrected where splits overlap): the t statistic is noncentral t. Where
the standard deviation was itself estimated, from `estimated_from` pairs, power is averaged over its true value,
sigma^2 = nu s^2 / chi^2_nu: taken as known, five pairs promise 80 % and deliver less. nu is below n - 1, because
results over seeds have heavier tails than the Gaussian: var(s^2) = sigma^4 (2 / (n - 1) + kurtosis / n) is that of
chi^2 with nu = 2 / (2 / (n - 1) + kurtosis / n). The excess kurtosis is taken as 2.4 at 5 pairs and as growing with
their square root: of tails as heavy as Student t with 3 degrees of freedom more is seen the more pairs there are. With
this the promised power holds within 5 points for such differences (docs/statistics.md).

Both averages are sums over quantiles of chi-squared; scipy's noncentral t is NaN at small levels and few pairs.
"""

import math
from functools import lru_cache

import numpy as np
import scipy.special

from bench.stats.distributions import t_quantile
from bench.stats.tests import Array, variance_factor

MOST_PAIRS = 10_000
KURTOSIS_OF_FIVE = 2.4  # assumed excess kurtosis of five differences; Gaussian ones have 0
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_SHARES, _WEIGHTS = (_POINTS + 1.0) / 2.0, _WEIGHTS / 2.0


def power(
    difference: float,
    deviation: float,
    pairs: int,
    *,
    alpha: float = 0.05,
    test_share: float = 0.0,
    estimated_from: int | None = None,
) -> float:
    """Return the probability that n pairs detect a mean difference, given the standard deviation of differences."""
    if pairs < 2:
        return 0.0
    if deviation == 0.0:
        return float(difference != 0.0)
    sigmas, weights = _deviations(deviation, estimated_from)
    centre = abs(difference) / (sigmas * np.sqrt(variance_factor(pairs, test_share)))
    bar = _critical(alpha, pairs) * _relative_deviations(pairs - 1)
    detected = scipy.special.ndtr(centre[:, None] - bar) + scipy.special.ndtr(-centre[:, None] - bar)
    return float(weights @ detected @ _WEIGHTS)


def detectable_difference(
    deviation: float,
    pairs: int,
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    test_share: float = 0.0,
    estimated_from: int | None = None,
) -> float:
    """Return the smallest true difference that n pairs detect with the target power; infinite below two pairs."""
    if pairs < 2:
        return float("inf")
    if deviation == 0.0:
        return 0.0
    return deviation * _detectable(pairs, target, alpha, test_share, estimated_from)


@lru_cache(maxsize=1024)
def _detectable(pairs: int, target: float, alpha: float, test_share: float, estimated_from: int | None) -> float:
    """Return the smallest difference in units of the standard deviation: the same for all tables of one size."""

    def missing(difference: float) -> float:
        share = power(difference, 1.0, pairs, alpha=alpha, test_share=test_share, estimated_from=estimated_from)
        return share - target

    high = 1.0
    while missing(high) < 0.0:
        high *= 2.0
    from scipy.optimize import brentq  # an import that takes as long as all of scipy.special

    return float(brentq(missing, 0.0, high, xtol=1e-6))


def pairs_needed(
    difference: float,
    deviation: float,
    *,
    target: float = 0.8,
    alpha: float = 0.05,
    test_share: float = 0.0,
    estimated_from: int | None = None,
) -> int | None:
    """Return the smallest number of pairs with the target power, or None where 10,000 do not reach it.

    Overlapping splits reuse the same rows: beyond some number they add nothing, and small differences stay undetected.
    """

    def enough(pairs: int) -> bool:
        share = power(difference, deviation, pairs, alpha=alpha, test_share=test_share, estimated_from=estimated_from)
        return share >= target

    if difference == 0.0 or not enough(MOST_PAIRS):
        return None
    low, high = 1, 2
    while not enough(high):
        low, high = high, min(2 * high, MOST_PAIRS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _deviations(deviation: float, estimated_from: int | None) -> tuple[Array, Array]:
    """Return candidates for the true standard deviation, with weights that sum to one."""
    if estimated_from is None:
        return np.array([deviation]), np.ones(1)
    kurtosis = KURTOSIS_OF_FIVE * math.sqrt(estimated_from / 5.0)
    freedom = 2.0 / (2.0 / (estimated_from - 1) + kurtosis / estimated_from)
    return deviation / _relative_deviations(freedom), _WEIGHTS


@lru_cache(maxsize=1024)
def _critical(alpha: float, pairs: int) -> float:
    return -float(t_quantile(alpha / 2.0, pairs - 1))


@lru_cache(maxsize=256)
def _relative_deviations(freedom: float) -> Array:
    """Return quantiles of s / sigma: the square root of chi-squared over its degrees of freedom."""
    return np.asarray(np.sqrt(2.0 * scipy.special.gammaincinv(freedom / 2.0, _SHARES) / freedom))
