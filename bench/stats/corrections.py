"""Corrections for multiple testing: adjusted p-values of a family of tests."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.stats.tests import Array

Correction = Literal["holm", "bh"]
NAMES: dict[Correction, str] = {"holm": "Holm", "bh": "Benjamini-Hochberg"}


def holm(p: ArrayLike) -> Array:
    """Return Holm's adjusted p-values along the last axis (1979): the chance of any false positive is controlled."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, axis=-1, kind="stable")
    size = values.shape[-1]
    steps = np.take_along_axis(values, order, -1) * np.arange(size, 0, -1)
    return _back(np.minimum(np.maximum.accumulate(steps, axis=-1), 1.0), order)


def benjamini_hochberg(p: ArrayLike) -> Array:
    """Return Benjamini and Hochberg's adjusted p-values along the last axis (1995): the false discovery rate."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, axis=-1, kind="stable")
    size = values.shape[-1]
    steps = np.take_along_axis(values, order, -1) * size / np.arange(1, size + 1)
    return _back(np.minimum(np.minimum.accumulate(steps[..., ::-1], axis=-1)[..., ::-1], 1.0), order)


def adjust_p_values(p: ArrayLike, correction: Correction) -> Array:
    """Return the adjusted p-values of one family in the given shape; NaN (no test) stays NaN and does not count."""
    values = np.array(p, dtype=np.float64)
    known = ~np.isnan(values)
    values[known] = (holm if correction == "holm" else benjamini_hochberg)(values[known])
    return values


def _back(ordered: Array, order: NDArray[np.intp]) -> Array:
    result = np.empty_like(ordered)
    np.put_along_axis(result, order, ordered, -1)
    return result
