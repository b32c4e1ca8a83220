"""Several seeds on each of several splits: their differences are not independent, the means of splits are.

d_ij = mu + s_i + e_ij, with split i and the j-th seed on it. Taken for independent, the pairs of 5 splits with 4 seeds
each have a false-positive rate far above 5 %, because the seeds of a split share its rows. Tests, intervals and plans
are therefore over the means of splits, with the correction for overlapping splits where these overlap. That correction
is for the whole variance of a mean, so that of its seeds is counted somewhat too high, never too low.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.stats.tests import Array


def are_shared(splits: NDArray[Any]) -> bool:
    """Whether there are several splits, and several repeats on one of them."""
    return 1 < len(np.unique(splits)) < len(splits)


def means_of_splits(values: Array, splits: NDArray[Any]) -> Array:
    """Return the means over the repeats of every split `[..., splits]` of values `[..., repeats]`."""
    order = np.argsort(splits, kind="stable")
    _, starts, counts = np.unique(np.asarray(splits)[order], return_index=True, return_counts=True)
    return np.asarray(np.add.reduceat(values[..., order], starts, axis=-1) / counts)


@dataclass(frozen=True)
class Components:
    """The two variances of differences, as standard deviations."""

    splits: int
    seeds: float  # per split, mean
    between_splits: float  # of the true differences of splits; 0 where seeds explain all that splits differ
    between_seeds: float  # on one split

    def __str__(self) -> str:
        return (
            f"{self.splits} splits with {self.seeds:.3g} seeds each: A - B has a standard deviation of "
            f"{self.between_splits:.3g} over splits and of {self.between_seeds:.3g} over the seeds of a split; n and "
            "the test are of the means of splits"
        )


def variance_components(differences: Array, splits: NDArray[Any]) -> Components:
    """Return the variance components of differences `[repeats]`, by the analysis of variance (Searle et al. 1992).

    The expected mean square within splits is sigma_e^2, that between them sigma_e^2 + n0 sigma_s^2.
    """
    _, place, counts = np.unique(splits, return_inverse=True, return_counts=True)
    groups, repeats = len(counts), len(differences)
    means = np.bincount(place, weights=differences) / counts
    within = float(np.square(differences - means[place]).sum()) / (repeats - groups)
    between = float((counts * np.square(means - differences.mean())).sum()) / (groups - 1)
    size = (repeats - float(np.square(counts).sum()) / repeats) / (groups - 1)
    of_splits = max(between - within, 0.0) / size
    return Components(groups, repeats / groups, float(np.sqrt(of_splits)), float(np.sqrt(within)))
