"""The test over seeds and rows of two methods, from the stored predictions of their cells."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.metrics.row_losses import METRICS_OF_ROWS, losses_of_rows
from bench.stats.row_sampling import RowTest, row_test

Untested = Literal[
    "not a mean of losses that stored predictions give",
    "predictions are not stored",
    "stored predictions are damaged",
    "test rows differ",
    "losses are not finite",
    "fewer than 2 repeats or rows",
]
Keys = tuple[str, ...]  # of the cells of one method on one dataset, repeat by repeat
ARRAYS = ("observed", "mean")  # of a cell: targets and predictions at its test rows


@dataclass(frozen=True)
class _Predicted:
    """What one method predicted: targets, the same for all repeats, and losses `[repeat, row]` by metric."""

    observed: NDArray[Any]
    losses: Mapping[str, NDArray[np.float64]]


class StoredRows:
    """Tests two methods for other seeds and other rows (`row_test`) from the stored predictions of their cells.

    It knows the metrics that are means of losses at rows, by the squared error for RMSE. `read` returns the arrays of a
    cell by name. The cells of a pair of methods are read once for all metrics. Ask for the pairs of one baseline one
    after another: the predictions of two methods are kept.
    """

    def __init__(self, read: Callable[[str], Mapping[str, NDArray[Any]] | None]) -> None:
        self._read = read
        self._predicted = lru_cache(maxsize=2)(self._load)
        self._tests = lru_cache(maxsize=None)(self._compare)

    def test(self, metric: str, a: Keys, b: Keys) -> RowTest | Untested:
        """Return the test of a against b (positive differences are worse), or why there is none."""
        if metric not in METRICS_OF_ROWS:
            return "not a mean of losses that stored predictions give"
        tests = self._tests(a, b)
        if isinstance(tests, str):
            return tests
        return tests.get(metric, "predictions are not stored")

    def _compare(self, a: Keys, b: Keys) -> dict[str, RowTest | Untested] | Untested:
        base = self._predicted(b)
        if isinstance(base, str):
            return base
        own = self._predicted(a)
        if isinstance(own, str):
            return own
        if not np.array_equal(own.observed, base.observed):
            return "test rows differ"
        found: dict[str, RowTest | Untested] = {}
        for metric in own.losses.keys() & base.losses.keys():
            x, y = own.losses[metric], base.losses[metric]
            finite = bool(np.isfinite(x).all() and np.isfinite(y).all())
            found[metric] = row_test(x - y) if finite else "losses are not finite"
        return found

    def _load(self, keys: Keys) -> _Predicted | Untested:
        try:
            return self._losses(keys)
        except (UserError, ValueError, TypeError, IndexError):  # a file that is damaged, or holds other arrays
            return "stored predictions are damaged"

    def _losses(self, keys: Keys) -> _Predicted | Untested:
        observed: NDArray[Any] | None = None
        losses: dict[str, list[NDArray[np.float64]]] = {}
        for key in keys:
            arrays = self._read(key) or {}
            if not arrays.keys() >= set(ARRAYS):
                return "predictions are not stored"
            if observed is None:
                observed = arrays["observed"]
            if not np.array_equal(arrays["observed"], observed):
                return "test rows differ"
            for metric, own in losses_of_rows(arrays["mean"], observed).items():
                losses.setdefault(metric, []).append(own)
        if observed is None or len(keys) < 2 or len(observed) < 2:
            return "fewer than 2 repeats or rows"
        return _Predicted(observed, {metric: np.array(own) for metric, own in losses.items()})
