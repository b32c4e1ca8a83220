"""Many methods against one over datasets, corrected by what the methods have in common.

If a method does not differ from the baseline, its difference on a dataset is as likely to have one sign as the other.
Flipping the signs of whole datasets, for all methods at once, gives the distribution of the largest t statistic
(Westfall and Young 1993, step-down maxT). The family is that of the methods without the baseline. Its smallest p is
2 / 2^n for n datasets however many methods there are: Holm's correction of signed-rank tests cannot reject at all with
20 methods on 8 datasets, this test can.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.stats.tests import Array

EXACT_DATASETS = 14  # up to which all patterns of signs are tried
PATTERNS = 9_999  # of them beyond


def joint_sign_test(differences: ArrayLike, generator: np.random.Generator) -> Array:
    """Return corrected two-sided p for every method, given differences to the baseline `[datasets, methods]`."""
    d = np.asarray(differences, dtype=np.float64)
    datasets, methods = d.shape
    if methods == 0:
        return np.empty(0)
    # t grows with the square of the mean over the mean of squares, and signs leave the squares as they are.
    size = np.sqrt(np.square(d).sum(axis=0))
    scaled = d / np.where(size > 0.0, size, 1.0)
    observed = np.abs(scaled.sum(axis=0))
    order = np.argsort(-observed, kind="stable")
    # The largest statistic among a method and all behind it, in every pattern.
    found = np.abs(_patterns(datasets, generator) @ scaled)[:, order]
    largest = np.maximum.accumulate(found[:, ::-1], axis=1)[:, ::-1]
    share = (largest >= observed[order] - 1e-9).mean(axis=0)
    p = np.empty(methods)
    p[order] = np.maximum.accumulate(share)
    return p


def smallest_joint_p(datasets: int) -> float:
    """Return the smallest p that so many datasets can have."""
    return 2.0 / 2.0**datasets


def _patterns(datasets: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return patterns of signs `[pattern, dataset]`, the observed one first."""
    if datasets <= EXACT_DATASETS:
        # A pattern and its mirror image have the same absolute sums: the last sign can be fixed.
        codes = np.arange(2 ** (datasets - 1))[:, None] >> np.arange(datasets)[None, :] & 1
    else:
        others = generator.integers(0, 2, (PATTERNS, datasets))
        codes = np.concatenate([np.zeros((1, datasets), dtype=np.int64), others])
    return np.asarray(1.0 - 2.0 * codes)
