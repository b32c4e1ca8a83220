"""Equal-width bins of [0, 1] with stated edges."""

import numpy as np

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, LabelArray


def bin_edges(bins: int) -> FloatArray:
    """Return the `bins` + 1 edges of equal bins of [0, 1]."""
    if bins < 1:
        raise UserError(f"bins: expected at least 1, got {bins}")
    return np.linspace(0.0, 1.0, bins + 1)


def bin_index(values: FloatArray, bins: int) -> LabelArray:
    """Return the bin b of each value: edge_b <= value < edge_{b+1}, and b = `bins` for a value of exactly 1.

    The lower edge belongs to the bin, and 1 has a bin of its own, as in torchmetrics; Guo et al. 2017 close bins at
    the upper edge. The two differ only for values that lie on an edge.
    """
    edges = np.append(bin_edges(bins), np.inf)
    index: LabelArray = (values * bins).astype(np.int64)
    np.minimum(index, bins, out=index)
    # The product can round across an edge; one comparison with either neighbour corrects it, and is several times
    # faster than a binary search.
    index -= values < edges[index]
    index += values >= edges[index + 1]
    return index
