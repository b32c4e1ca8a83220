"""The stored results of one suite, in the form that reports use."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.metrics import catalogue
from bench.store.store import Store
from bench.store.value_columns import PLACE, ValueColumns

if TYPE_CHECKING:
    from bench.api import Curves
    from bench.metrics.kept import Kept

CACHE_BYTES = 256 * 2**20  # of arrays in memory: several sections use the same ones
MOST_ROWS = 600_000  # of frames in memory: 500,000 and the columns that they are made of took 105 MB


@dataclass
class FrameCache:
    """The frames of several suites that were used last; of large ones only one, because a frame is large."""

    most_rows: int = MOST_ROWS
    _frames: dict[str, pd.DataFrame] = field(default_factory=dict)

    def get(self, suite: str, rows: int, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Return the frame of a suite, which has so many rows."""
        found = self._frames.pop(suite, None)
        while self._frames and rows + sum(map(len, self._frames.values())) > self.most_rows:
            del self._frames[next(iter(self._frames))]
        self._frames[suite] = make() if found is None else found
        return self._frames[suite]

    def forget(self, suite: str) -> None:
        """Forget the frame of a suite."""
        self._frames.pop(suite, None)


class StoredResults:
    """The results of one suite in a store; several suites of a report share `frames`.

    `shown` has the names of datasets as a page shows them; those that it lacks are shown as they are.
    """

    def __init__(
        self, store: Store, suite: str, frames: FrameCache | None = None, shown: Mapping[str, str] | None = None
    ) -> None:
        self.store = store
        self._shown = {name: short for name, short in (shown or {}).items() if short != name}
        self._frames = FrameCache() if frames is None else frames
        record = store.suites()[suite]
        self.suite: str = suite
        self.title: str = record["title"]
        self.baseline: str | None = record["baseline"]
        self.metrics: list[str] = record["metrics"]
        self.declarations = catalogue()  # those of plug-in files included, where these were given
        self._arrays: dict[str, dict[str, NDArray[Any]]] = {}
        self._held = 0

    @cached_property
    def columns(self) -> ValueColumns:
        """The same values as `frame` in a tenth of its memory."""
        found = self._with_relative(self.store.value_columns(self.suite))
        if not self._shown:
            return found
        return replace(found, places=[(p[0], self._shown.get(p[1], p[1]), *p[2:]) for p in found.places])

    @property
    def frame(self) -> pd.DataFrame:
        """Metric values, one row each: suite, dataset, split, method, seed, key, metric, value."""
        return self._frames.get(self.suite, len(self.columns.value), lambda: self._frame_of(self.columns))

    def frame_of(self, metrics: Collection[str]) -> pd.DataFrame:
        """Return the rows of `frame` with these metrics, without making the frame of all."""
        return self._frame_of(self.columns.only(metrics))

    def forget(self) -> None:
        """Free what was read so far; it is read again where it is asked for."""
        self._frames.forget(self.suite)
        for name in ("columns", "cells", "remarks", "rescored", "corrected", "_files_of_predictions"):
            vars(self).pop(name, None)
        self._arrays, self._held = {}, 0

    def _frame_of(self, found: ValueColumns) -> pd.DataFrame:
        places = pd.DataFrame(found.places, columns=[*PLACE, "key"])
        columns = {name: places[name].array.take(found.place) for name in places}
        metric = pd.array(found.metrics, dtype="str").take(found.metric)
        return pd.DataFrame({**columns, "metric": metric, "value": found.value}, copy=False)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Cells, one row each: place, key, spec, status (missing: not run yet), message, training, environment.

        Also its cost (seconds, cpu_seconds; missing where another run had kept its networks), when it started and
        finished, the version of the code, and the number of configurations that its search tried (1 without a search).
        Where datasets are shown by other names than those that they are stored by, `stored_as` has the latter.
        """
        columns = [*PLACE, "key", "spec", "status", "message", "training", "environment"]
        columns += ["seconds", "cpu_seconds", "started", "finished", "code", "dirty", "suite_hash"]
        found = pd.DataFrame(self.store.cells(self.suite), columns=columns)
        found = found.assign(configurations=[_configurations(text) for text in found["training"]])
        # Their time is that of the draws and scores alone, which would compare as the cost of a method.
        untrained = [isinstance(text, str) and '"stored_networks"' in text for text in found["training"]]
        found.loc[untrained, ["seconds", "cpu_seconds"]] = np.nan
        if not self._shown:
            return found
        return found.assign(stored_as=found["dataset"], dataset=found["dataset"].replace(self._shown))

    @cached_property
    def remarks(self) -> pd.DataFrame:
        """Remarks on the data, or on methods that could not run, one row each: dataset, method, text."""
        found = pd.DataFrame(self.store.remarks(self.suite), columns=["dataset", "method", "text"])
        return found.assign(dataset=found["dataset"].replace(self._shown)) if self._shown else found

    @property
    def failures(self) -> pd.DataFrame:
        """Cells that failed or diverged, one row each, with the reason in one line."""
        lost = self.cells[self.cells["status"].isin(["failed", "diverged"])]
        reasons = [str(message).partition("\n")[0] for message in lost["message"]]
        return lost[[*PLACE, "status"]].assign(message=reasons)

    @cached_property
    def rescored(self) -> pd.DataFrame:
        """Values computed from stored predictions after the runs: metric, version, precision, values (their number)."""
        from bench.store.rescore import rescored_counts

        return pd.DataFrame(
            rescored_counts(self.store, self.suite), columns=["metric", "version", "precision", "values"]
        )

    @cached_property
    def corrected(self) -> pd.DataFrame:
        """Values after corrections of the calibration that are kept without predictions, one row each."""
        from bench.store.recalibrated import COLUMNS, recalibrated_rows

        values = pd.DataFrame(recalibrated_rows(self.store, self.suite), columns=list(COLUMNS))
        return self.cells[[*PLACE[1:], "key"]].merge(values, on="key")

    def kept(self, key: str) -> "Kept | None":
        """Return all stored predictions of one cell, or None where they are not stored, or lost."""
        from bench.store.bank import read_predictions

        file = self._files_of_predictions.get(key)
        return None if file is None else read_predictions(self.store, file)

    @cached_property
    def _files_of_predictions(self) -> dict[str, str]:
        from bench.store.bank import kept_files

        return {key: str(row["file"]) for key, row in kept_files(self.store, self.cells["key"]).items()}

    def curves(self, key: str) -> "Curves | None":
        """Return mean and variance of the predictions of one cell."""
        from bench.api import Curves  # imports torch, which an export does not need

        parts = {f.name for f in fields(Curves)}
        arrays = {name: array for name, array in self.arrays(key).items() if name in parts}
        return Curves(**arrays) if {"observed", "mean", "variance"} <= arrays.keys() else None

    def arrays(self, key: str) -> dict[str, NDArray[Any]]:
        """Return all stored arrays of one cell, by name."""
        if key not in self._arrays:
            loaded = self.store.load_arrays(key) or {}
            self._held += sum(array.nbytes for array in loaded.values())
            self._arrays[key] = loaded
            while self._held > CACHE_BYTES and len(self._arrays) > 1:
                oldest = self._arrays.pop(next(iter(self._arrays)))
                self._held -= sum(array.nbytes for array in oldest.values())
        return self._arrays[key]

    def _with_relative(self, own: ValueColumns) -> ValueColumns:
        """Add the metrics that are differences to the baseline method on the same split."""
        methods = np.array([place[3] for place in own.places])
        split = np.array(pd.factorize(pd.Series([(place[1], place[2]) for place in own.places], dtype=object))[0])
        found = own
        for metric in self.declarations.values():
            if metric.relative_to not in own.metrics or self.baseline is None:
                continue
            base = own.metric == own.metrics.index(metric.relative_to)
            place, values = own.place[base], own.value[base]
            lead = methods[place] == self.baseline
            reference = pd.Series(values[lead]).groupby(split[place][lead]).mean()
            against = reference.reindex(split[place]).to_numpy(dtype=float)
            # Two infinite likelihoods have no difference.
            known = np.isfinite(against) & ~np.isnan(values)
            found = found.added(metric.name, place[known], values[known] - against[known])
        return found


def _configurations(training: Any) -> int:
    """Return how many configurations the search of a cell tried, from its record."""
    if not isinstance(training, str) or '"search"' not in training:  # most records have none, and are long
        return 1
    return int(json.loads(training).get("search", {}).get("configurations", 1))
