"""Checked conversion of arguments to float64 arrays of a known shape."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.errors import UserError

FloatArray = NDArray[np.float64]
LabelArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SUM_TOLERANCE = 1e-3
BLOCK_VALUES = 1 << 16


def require_finite(values: NDArray[Any], name: str) -> None:
    """Raise UserError if `values` holds NaN or infinity, with the count and the first position."""
    # A finite sum proves every term finite and needs no boolean array as large as the data.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(values)
    if bad.any():
        first = tuple(int(index[0]) for index in np.nonzero(bad))
        where = first[0] if len(first) == 1 else first
        raise UserError(f"{name}: {int(bad.sum())} of {bad.size} values are NaN or infinite, the first at {where}")


def float_array(values: ArrayLike, name: str, shape: tuple[int | None, ...]) -> FloatArray:
    """Return `values` as finite float64 of `shape`, where None leaves a length free but not zero."""
    array = numeric_array(values, name, shape)
    require_finite(array, name)
    return array.astype(np.float64, copy=False)


def numeric_array(values: ArrayLike, name: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Return `values` as an array of numbers of `shape`; the type is kept."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise UserError(f"{name}: expected numbers, got an array of type {array.dtype}")
    wanted = "[" + ", ".join("*" if length is None else str(length) for length in shape) + "]"
    if array.ndim != len(shape) or any(w is not None and w != a for w, a in zip(shape, array.shape, strict=True)):
        raise UserError(f"{name}: expected shape {wanted}, got {list(array.shape)}")
    if array.size == 0:
        raise UserError(f"{name}: empty (shape {list(array.shape)}); a metric needs at least one row")
    return array


def require_distributions(probabilities: NDArray[Any], name: str) -> None:
    """Raise UserError unless the last axis holds at least two probabilities that sum to 1 within 1e-3."""
    if probabilities.shape[-1] < 2:
        raise UserError(f"{name}: one class only; give a binary classifier's p as the two columns 1 - p and p")
    require_finite(probabilities, name)
    lowest = float(probabilities.min())
    if lowest < 0:
        raise UserError(f"{name}: lowest value is {lowest:.6g}, probabilities are not negative (are these logits?)")
    # A product with ones is several times faster than a sum over a short last axis. Half precision has errors as large
    # as the tolerance, and a product of booleans is not a sum.
    exact = probabilities.dtype in (np.float32, np.float64)
    summable = probabilities if exact else probabilities.astype(np.float64)
    off = float(np.abs(summable @ np.ones(summable.shape[-1], dtype=summable.dtype) - 1).max())
    if off > SUM_TOLERANCE:
        raise UserError(
            f"{name}: a row's sum is off 1 by {off:.3g}, more than {SUM_TOLERANCE:g} (apply softmax first?)"
        )


def probability_array(values: ArrayLike, name: str = "probabilities") -> FloatArray:
    """Return `values` as float64 [N, C], each row a distribution over classes."""
    array = numeric_array(values, name, (None, None))
    require_distributions(array, name)
    return array.astype(np.float64, copy=False)


def label_array(values: ArrayLike, rows: int, classes: int, name: str = "observed") -> LabelArray:
    """Return `values` as integer class labels [rows] within 0..classes-1."""
    array = numeric_array(values, name, (rows,))
    if array.dtype.kind not in "iu":
        raise UserError(f"{name}: class labels must be integers, got an array of type {array.dtype}")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= classes:
        raise UserError(
            f"{name}: labels range from {low} to {high}, with {classes} classes they must be 0..{classes - 1}"
        )
    return array.astype(np.int64, copy=False)


def correct_array(values: ArrayLike, rows: int, name: str = "correct") -> FloatArray:
    """Return `values` (booleans, or numbers 0 and 1) as float64 [rows]."""
    given = numeric_array(values, name, (rows,))
    if given.dtype != np.bool_ and not ((given == 0) | (given == 1)).all():
        raise UserError(f"{name}: expected only 0 and 1 (wrong and right)")
    return given.astype(np.float64, copy=False)


def set_array(values: ArrayLike, rows: int, classes: int, name: str = "sets") -> BoolArray:
    """Return `values` as booleans [rows, classes]: which classes a row's prediction set has."""
    array = numeric_array(values, name, (rows, classes))
    if array.dtype != np.bool_:
        raise UserError(f"{name}: expected booleans (is the class in the set?), got an array of type {array.dtype}")
    return array


def variance_array(values: ArrayLike, rows: int, name: str = "variance") -> FloatArray:
    """Return `values` as float64 variances [rows], none negative; a single number serves every row."""
    array = np.broadcast_to(np.asarray(values), (rows,)) if np.ndim(values) == 0 else np.asarray(values)
    array = float_array(array, name, (rows,))
    if array.min() < 0:
        raise UserError(f"{name}: lowest value is {float(array.min()):.6g}, a variance is not negative")
    return array


def row_blocks(rows: int, width: int) -> list[slice]:
    """Cut `rows` rows of `width` values into slices whose working arrays fit in the processor's cache."""
    step = max(1, BLOCK_VALUES // width)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
