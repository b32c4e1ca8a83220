"""Runs that failed, as losses: what the mean has to leave out, the sign test and a trimmed mean can count.

A run that diverged, or whose value is infinite, is worse than any that did not. Its size is unknown, and neither signs,
ranks nor a trimmed mean need it. A repeat in which both methods failed says nothing about which is better.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.stats.tests import Array


def failures_as_losses(
    differences: Array, failed: NDArray[np.bool_], splits: tuple[NDArray[Any], NDArray[Any]] | None = None
) -> Array:
    """Return differences A - B of losses with those of repeats in which one of the two failed: infinite.

    `failed` is `[2, repeat]`. Where seeds share splits, `differences` are of the sorted splits, and `splits` are those
    of the pairs and of `failed`: on a split, the method with more failures is infinitely worse; where both have as
    many, their other runs decide.
    """
    more = failed[0].astype(np.float64) - failed[1]
    if splits is None:
        return np.concatenate([differences, more[more != 0.0] * np.inf])
    known, units = np.unique(splits[0]), np.unique(np.concatenate(splits))
    balance, found = np.zeros(len(units)), np.full(len(units), np.nan)
    np.add.at(balance, np.searchsorted(units, splits[1]), more)
    found[np.searchsorted(units, known)] = differences
    found[balance != 0.0] = np.sign(balance[balance != 0.0]) * np.inf
    return np.asarray(found[~np.isnan(found)])


def favours_failures(sign: ArrayLike, more_failures: ArrayLike) -> NDArray[np.bool_]:
    """Return whether a verdict favours the method that failed more often: the runs that ended are not a fair sample.

    `sign` is 1 where A is better, -1 where it is worse, 0 where both are equivalent; `more_failures` are those of A
    beyond those of B. Equivalence favours whichever failed more.
    """
    more = np.sign(np.asarray(more_failures))
    return np.asarray((more != 0) & ((np.asarray(sign) == more) | (np.asarray(sign) == 0)))


def share_of_wins(differences: Array) -> float:
    """Return the share of differences of losses in which A is better; ties count half. NaN where there are none."""
    return float(np.mean((differences < 0.0) + 0.5 * (differences == 0.0))) if len(differences) else float("nan")
