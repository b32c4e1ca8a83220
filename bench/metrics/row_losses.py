"""Losses at every test row, from a predicted mean: the metrics that are means of them, up to a monotone function.

A mean is `[N]` in regression and holds the class probabilities `[N, C]` in classification.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.metrics.arrays import FloatArray

Observed = NDArray[Any]  # targets, or labels as integers
RowLoss = Callable[[FloatArray, Observed], FloatArray]


def squared_error(mean: FloatArray, observed: Observed) -> FloatArray:
    """Return (mean - observed)^2; RMSE is the root of its mean, so both have the same order."""
    return np.asarray(np.square(mean - observed))


def absolute_error(mean: FloatArray, observed: Observed) -> FloatArray:
    """Return |mean - observed|."""
    return np.asarray(np.abs(mean - observed))


def class_error(mean: FloatArray, observed: Observed) -> FloatArray:
    """Return 1 where the most probable class is not the label, else 0; the accuracy is 1 - its mean."""
    return np.asarray(mean.argmax(axis=1) != observed, dtype=np.float64)


def brier_of_rows(mean: FloatArray, observed: Observed) -> FloatArray:
    """Return sum_c (p_c - [c is the label])^2."""
    target = np.eye(mean.shape[1])[observed.astype(np.int64)]
    return np.asarray(np.square(mean - target).sum(axis=1))


def surprise(mean: FloatArray, observed: Observed) -> FloatArray:
    """Return -log p(label); +inf where the label was given probability 0."""
    chosen = np.take_along_axis(mean, observed.astype(np.int64)[:, None], axis=1)[:, 0]
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(chosen))


REGRESSION: Mapping[str, RowLoss] = {"rmse": squared_error, "mae": absolute_error}
CLASSIFICATION: Mapping[str, RowLoss] = {"accuracy": class_error, "brier": brier_of_rows, "nll_categorical": surprise}
METRICS_OF_ROWS = frozenset({*REGRESSION, *CLASSIFICATION})


def losses_of_rows(mean: FloatArray, observed: Observed) -> dict[str, FloatArray]:
    """Return the losses `[N]` of every metric in METRICS_OF_ROWS that fits the task."""
    of_task = CLASSIFICATION if mean.ndim > observed.ndim else REGRESSION
    return {name: loss(mean, observed) for name, loss in of_task.items()}
