"""Sort rows by an uncertainty score, independently of the order in which the rows are given."""

import numpy as np
from numpy.typing import ArrayLike

from bench.metrics.arrays import FloatArray, float_array


def sort_by_score(scores: ArrayLike, values: ArrayLike) -> FloatArray:
    """Return `values` by ascending score, each replaced by the mean of the values that share its score.

    Rows with equal scores have no order among themselves. Under random tie-breaking the expected value at each place
    of such a group is the group's mean, and any sum over the first k places has the expectation of the summed means.
    So every quantity that is linear in the values (error rate, mean squared error, AURC of these) is exactly its
    expectation under random tie-breaking, and nothing depends on the order of rows.
    """
    keys = float_array(scores, "scores", (None,))
    data = float_array(values, "values", keys.shape)
    order = np.argsort(keys)
    return tie_means(keys[order], data[order])


def tie_means(keys: FloatArray, values: FloatArray) -> FloatArray:
    """Replace each of `values` by the mean over its run of equal `keys`, which must be sorted."""
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    if starts.size == keys.size:
        return values
    lengths = np.diff(starts, append=keys.size)
    means: FloatArray = np.repeat(np.add.reduceat(values, starts) / lengths, lengths)
    return means
