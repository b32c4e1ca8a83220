"""Arrays of draws in few bytes: 16 bits per value between the lowest and the highest draw of each row.

A row's draws lie close together, so 65,536 steps between its lowest and its highest are finer than single precision is
for most of them. Positive parameters (variances, probabilities) are cut on a logarithmic scale, where small ones are as
exact as large ones. Few draws are kept whole: two numbers per row would take more room than they save.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench.metrics.arrays import FloatArray

Coding = Literal["float32", "float64", "linear", "log"]  # how an array is written
Precision = Literal["16 bits", "float32", "float64"]
STEPS = 2**16 - 1
FEWEST_DRAWS = 5  # with fewer, 4 bytes per value take no more room than 2 and the ends of each row

Arrays = dict[str, NDArray[Any]]


def encode(name: str, values: NDArray[Any], precision: Precision, *, positive: bool) -> tuple[Arrays, Coding]:
    """Return the arrays that hold values [T, N, ...], and how they are written."""
    if precision == "16 bits" and len(values) >= FEWEST_DRAWS and bool(np.isfinite(values).all()):
        if positive and float(values.min()) > 0:
            return _steps(name, np.log(values, dtype=np.float64)), "log"
        return _steps(name, np.asarray(values, dtype=np.float64)), "linear"
    if precision != "float64":
        with np.errstate(over="ignore"):
            single = values.astype(np.float32)
        # Beyond the range of single precision a value would become infinite or, of a positive one, 0.
        in_range = np.array_equal(np.isfinite(single), np.isfinite(values)) and np.array_equal(single == 0, values == 0)
        if in_range and (precision == "float32" or np.array_equal(single, values)):
            return {name: single}, "float32"
    return {name: values.astype(np.float64)}, "float64"


def decode(name: str, arrays: Mapping[str, NDArray[Any]], coding: str) -> NDArray[Any]:
    """Return the values that `encode` wrote; raises ValueError or KeyError for other content."""
    if coding in ("float32", "float64"):
        return arrays[name]
    if coding not in ("linear", "log"):
        raise ValueError(f"{name}: unknown coding {coding!r}")
    steps, low, step = arrays[f"{name}:steps"], arrays[f"{name}:low"], arrays[f"{name}:step"]
    values: FloatArray = np.multiply(steps, step, dtype=np.float64)
    values += low
    return np.exp(values, out=values) if coding == "log" else values


def _steps(name: str, values: FloatArray) -> Arrays:
    low, high = values.min(axis=0), values.max(axis=0)
    begin = low.astype(np.float32)
    step = ((high - begin) / STEPS).astype(np.float32)
    # Equal draws stay equal: their spread is exactly 0.
    step = np.where(high > low, np.maximum(step, np.finfo(np.float32).tiny), np.float32(0))
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(step > 0, np.rint((values - begin) / step), 0.0)
    found = np.clip(steps, 0, STEPS).astype(np.uint16)
    return {f"{name}:steps": found, f"{name}:low": begin, f"{name}:step": step}
