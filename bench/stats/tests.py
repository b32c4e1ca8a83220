"""Tests of paired differences: pairs along the last axis, studies along the others.

Everything here is vectorised over the leading axes, so that a simulation of thousands of studies is one call.
"""

import numpy as np
import scipy.special
from numpy.typing import ArrayLike, NDArray

from bench.stats.distributions import ranks, signed_rank_counts, t_quantile, t_tail

Array = NDArray[np.float64]

TRIM = 0.2  # share of the differences that a trimmed mean leaves out at each end
FEWEST_TRIMMED = 10  # pairs: with 5, Yuen's test rejects in 6.6 % of Gaussian studies without a difference
EXACT_PAIRS = 14  # up to here all 2^n sign patterns are enumerated
EXACT_RANKED_PAIRS = 50  # up to here the signed-rank test is exact, as scipy's is
EXACT_TIED_PAIRS = 13  # and up to here with ties or zeros


def variance_factor(pairs: int, test_share: float = 0.0) -> float:
    """Return c in Var(mean) = c * S^2: 1/n for independent repeats, 1/n + share/(1 - share) for overlapping splits.

    Nadeau and Bengio 2003, "Inference for the Generalization Error": random splits of one table share most of their
    training rows, so their results are correlated, with about the share of test rows as correlation.
    """
    return 1.0 / pairs + test_share / (1.0 - test_share)


def is_constant(differences: ArrayLike) -> NDArray[np.bool_]:
    """Whether all differences of a study are the same number, to rounding."""
    d = np.asarray(differences, dtype=np.float64)
    return np.asarray(np.ptp(d, axis=-1) <= 1e-9 * np.abs(d).max(axis=-1))


def standard_error(differences: ArrayLike, test_share: float = 0.0) -> Array:
    """Return the standard error of the mean difference; `test_share` > 0 is the Nadeau-Bengio correction."""
    d = np.asarray(differences, dtype=np.float64)
    return np.asarray(np.std(d, axis=-1, ddof=1) * np.sqrt(variance_factor(d.shape[-1], test_share)))


def t_test(differences: ArrayLike, test_share: float = 0.0) -> Array:
    """Return two-sided p of the paired t-test, or of the corrected resampled t-test where `test_share` > 0.

    Differences without variance have no t: p is 1 where all are zero, and NaN where all are another number.
    """
    d = np.asarray(differences, dtype=np.float64)
    flat, mean = is_constant(d), d.mean(axis=-1)
    t = mean / np.where(flat, 1.0, standard_error(d, test_share))
    p = 2.0 * t_tail(np.abs(t), d.shape[-1] - 1)
    return np.where(flat, np.where(d[..., 0] == 0.0, 1.0, np.nan), p)


def t_interval(differences: ArrayLike, level: float = 0.95, test_share: float = 0.0) -> Array:
    """Return the interval `[..., 2]` of the (corrected) t-test for the mean difference."""
    d = np.asarray(differences, dtype=np.float64)
    half = -t_quantile((1.0 - level) / 2.0, d.shape[-1] - 1) * standard_error(d, test_share)
    return np.stack([d.mean(axis=-1) - half, d.mean(axis=-1) + half], axis=-1)


def smallest_permutation_p(pairs: int) -> float:
    """Return the smallest two-sided p that n pairs can give: all signs alike, 2 of 2^n patterns."""
    return min(1.0, 2.0 ** (1 - pairs))


def permutation_test(differences: ArrayLike, generator: np.random.Generator, resamples: int = 9_999) -> Array:
    """Return two-sided p of the sign-flip permutation test of the mean.

    Exact (all 2^n patterns) up to 14 pairs; above, `resamples` random patterns, counted together with the observed one,
    so that p is never zero and the test keeps its level (Phipson and Smyth 2010). Studies of one call share the
    patterns.
    """
    d = np.asarray(differences, dtype=np.float64)
    pairs = d.shape[-1]
    exact = pairs <= EXACT_PAIRS
    if exact:
        # A pattern and its mirror image have the same absolute mean: the first sign can be fixed.
        codes = np.arange(2 ** (pairs - 1))[:, None] >> np.arange(pairs)[None, :] & 1
    else:
        codes = generator.integers(0, 2, size=(resamples, pairs))
    signs = 1.0 - 2.0 * codes
    rows = d.reshape(-1, pairs)
    seen = np.abs(rows.sum(axis=-1))
    # Sums of the same numbers in another order differ in the last bits and count as equal.
    bar = seen - 1e-9 * np.abs(rows).sum(axis=-1)
    extreme = np.empty(len(rows))
    for start in range(0, len(rows), 500):  # 500 x 9,999 sums are 40 MB
        part = slice(start, start + 500)
        extreme[part] = (np.abs(rows[part] @ signs.T) >= bar[part, None]).sum(axis=-1)
    p = extreme / len(signs) if exact else (extreme + 1.0) / (resamples + 1.0)
    return p.reshape(d.shape[:-1])


def wilcoxon_test(differences: ArrayLike) -> Array:
    """Return two-sided p of Wilcoxon's signed-rank test: zeros are left out, p is 1 where all are zero.

    Exact up to 50 pairs, with ties or zeros up to 13; the normal approximation above. That is what scipy does with
    each study by itself; it takes much memory to import.
    """
    d = np.asarray(differences, dtype=np.float64)
    rows = d.reshape(-1, d.shape[-1])
    p = np.ones(len(rows))
    sizes = np.sort(np.abs(rows), axis=-1)
    some = (rows != 0.0).any(axis=-1)
    uneven = (sizes[:, 0] == 0.0) | (sizes[:, 1:] == sizes[:, :-1]).any(axis=-1)
    known = ~np.isnan(rows).any(axis=-1)
    counted = uneven & (d.shape[-1] <= EXACT_TIED_PAIRS)
    for row in np.flatnonzero(some & known & counted):
        p[row] = _tied_signed_rank_p(rows[row][rows[row] != 0.0])
    exact = ~uneven & (d.shape[-1] <= EXACT_RANKED_PAIRS)
    for part, of_part in ((exact, _exact_signed_rank_p), (~exact & ~counted, _normal_signed_rank_p)):
        if (some & known & part).any():
            p[some & known & part] = of_part(rows[some & known & part])
    p[~known] = np.nan
    return p.reshape(d.shape[:-1])


def _exact_signed_rank_p(rows: Array) -> Array:
    """Return p of studies without ties and zeros: the share of sign patterns with sums as far from the middle."""
    pairs = rows.shape[-1]
    positive = np.rint((ranks(np.abs(rows)) * (rows > 0.0)).sum(axis=-1)).astype(np.int64)
    fewer = np.minimum(positive, pairs * (pairs + 1) // 2 - positive)
    return np.asarray(np.minimum(2.0 * signed_rank_counts(pairs)[fewer] / 2.0**pairs, 1.0))


def _normal_signed_rank_p(rows: Array) -> Array:
    """Return p of the normal approximation, zeros left out.

    Each rank has its sign by chance: the variance of their sum is a quarter of the squared ranks, also where they tie.
    """
    zero = rows == 0.0
    ranked = np.where(zero, 0.0, ranks(np.abs(rows)) - zero.sum(axis=-1, keepdims=True))
    away = ((rows > 0.0) * ranked).sum(axis=-1) - ranked.sum(axis=-1) / 2.0
    z = np.abs(away) / np.sqrt(np.square(ranked).sum(axis=-1) / 4.0)
    return np.asarray(2.0 * scipy.special.ndtr(-z))


def _tied_signed_rank_p(d: Array) -> float:
    """Return p over all 2^n sign patterns of differences without zeros, some of the same size.

    What scipy finds by ranking each of the patterns, which takes a second for 13 pairs. Twice a rank is a whole number
    with ties, too, so that the patterns of each sum can be counted one difference after another.
    """
    doubled = np.rint(2.0 * ranks(np.abs(d))).astype(np.int64)
    patterns = np.ones(1)  # at index s: how many patterns have the sum s of positive ranks, doubled
    for rank in doubled:
        patterns = np.pad(patterns, (0, rank)) + np.pad(patterns, (rank, 0))
    seen = doubled[d > 0.0].sum()
    fewer = min(patterns[: seen + 1].sum(), patterns[seen:].sum())
    return float(min(1.0, 2.0 * fewer / 2.0 ** len(d)))


def sign_test(differences: ArrayLike) -> Array:
    """Return two-sided p of the exact sign test that the median difference is 0; zeros are left out.

    It needs independent pairs and nothing else: no symmetry, and no mean.
    """
    d = np.asarray(differences, dtype=np.float64)
    above, below = (d > 0.0).sum(axis=-1), (d < 0.0).sum(axis=-1)
    p = 2.0 * scipy.special.bdtr(np.minimum(above, below), above + below, 0.5)
    return np.asarray(np.minimum(p, 1.0))


def trimmed_mean(differences: ArrayLike) -> Array:
    """Return the mean without the lowest and the highest fifth; NaN where more than these are infinite."""
    d = np.sort(np.asarray(differences, dtype=np.float64), axis=-1)
    cut = int(TRIM * d.shape[-1])
    middle = d[..., cut : d.shape[-1] - cut]
    known = np.asarray(np.isfinite(middle).all(axis=-1))
    return np.where(known, np.where(known[..., None], middle, 0.0).mean(axis=-1), np.nan)


def trimmed_test(differences: ArrayLike, test_share: float = 0.0) -> Array:
    """Return two-sided p of Yuen's test (1974) that the trimmed mean of the differences is 0.

    The variance is that of the winsorised differences, with the Nadeau-Bengio correction where `test_share` > 0; up to
    a fifth of the differences at each end may be infinite. NaN below 10 pairs, where the test does not keep its level,
    and where what is left does not vary.
    """
    d = np.sort(np.asarray(differences, dtype=np.float64), axis=-1)
    pairs = d.shape[-1]
    cut = int(TRIM * pairs)
    kept = pairs - 2 * cut
    mean = trimmed_mean(d)
    if pairs < FEWEST_TRIMMED:
        return np.full(mean.shape, np.nan)
    low, high = d[..., [cut]], d[..., [pairs - cut - 1]]
    ends = np.isfinite(low) & np.isfinite(high)
    winsorised = np.where(ends, np.clip(d, np.where(ends, low, 0.0), np.where(ends, high, 0.0)), 0.0)
    squares = np.square(winsorised - winsorised.mean(axis=-1, keepdims=True)).sum(axis=-1)
    variance = squares / (kept * (kept - 1)) * pairs * variance_factor(pairs, test_share)
    varies = ends[..., 0] & (variance > 0.0)
    t = np.where(varies, mean, 0.0) / np.sqrt(np.where(varies, variance, 1.0))
    return np.where(varies, 2.0 * t_tail(np.abs(t), kept - 1), np.nan)


def signed_rank_sum(differences: ArrayLike) -> Array:
    """Return Wilcoxon's sum of signed ranks, zeros left out; its sign is the direction of the difference."""
    d = np.asarray(differences, dtype=np.float64)
    ranked = ranks(np.abs(d)) - (d == 0.0).sum(axis=-1, keepdims=True)
    return np.asarray((np.sign(d) * ranked).sum(axis=-1))


def equivalence_test(differences: ArrayLike, margin: ArrayLike, test_share: float = 0.0) -> Array:
    """Return p of TOST: two one-sided (corrected) t-tests that the mean difference is within -margin .. margin.

    Schuirmann 1987. Small p: the methods are equivalent to within the margin. Differences without variance are inside
    the margin (p 0) or not (p 1).
    """
    d, m = np.asarray(differences, dtype=np.float64), np.asarray(margin, dtype=np.float64)
    flat, mean = is_constant(d), d.mean(axis=-1)
    error = np.where(flat, 1.0, standard_error(d, test_share))
    p = t_tail((m - np.abs(mean)) / error, d.shape[-1] - 1)
    return np.where(flat, np.where(np.abs(mean) < m, 0.0, 1.0), p)
