"""Datasets whose numbers have different scales: what may be averaged over them as it is, and what may not."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bench.stats.tests import Array

COMPARABLE = 10.0  # standard deviations over seeds may differ by this factor between datasets


def comparable(deviations: Sequence[float]) -> bool:
    """Whether the largest standard deviation over seeds is at most ten times the smallest that is not zero."""
    some = [value for value in deviations if value > 0.0]
    return len(some) < 2 or max(some) <= COMPARABLE * min(some)


def standardised(losses: ArrayLike) -> Array:
    """Return losses `[methods, repeats]` of one dataset without what the methods share, in units of what is left.

    A hard split is hard for all: each repeat's mean over the methods is taken away, then everything is divided by its
    standard deviation. 0 is the average method.
    """
    x = np.asarray(losses, dtype=np.float64)
    rest = x - x.mean(axis=0)
    return np.asarray(rest / (rest.std() or 1.0))
