"""Predictions of a few seeds, as curves are drawn from them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Curves, Results


@dataclass(frozen=True)
class Predicted:
    """The predictions of one method on one dataset, one per seed."""

    dataset: str
    method: str
    curves: list[Curves]

    @property
    def classes(self) -> bool:
        """Whether they are of classes."""
        return self.curves[0].mean.ndim == 2


def predictions(results: Results, datasets: int, seeds: int) -> Iterator[tuple[str, list[Predicted]]]:
    """Yield the predictions of the first datasets that have some, of their first seeds."""
    cells = results.cells[results.cells["status"] == "ok"]
    found = 0
    for dataset, rows in cells.groupby("dataset", sort=True):
        if found == datasets:
            return
        by_method = rows.groupby("method", sort=False)
        predicted = [one for method, own in by_method if (one := _of(results, own, method, seeds))]
        if predicted:
            found += 1
            yield str(dataset), predicted


def _of(results: Results, rows: pd.DataFrame, method: object, seeds: int) -> Predicted | None:
    keys = rows.sort_values("seed")["key"].iloc[:seeds]
    known = [c for key in keys if (c := results.curves(str(key))) is not None and np.isfinite(c.mean).all()]
    return Predicted(str(rows["dataset"].iloc[0]), str(method), known) if known else None


def has_curves(results: Results) -> bool:
    """Return whether predictions are stored beside the values; an export of values has none, and no figure of them."""
    return next(predictions(results, 1, 1), None) is not None


def left_out(results: Results, drawn: int) -> str:
    """Return in words how many datasets are not in a figure."""
    cells = results.cells[results.cells["status"] == "ok"]
    count = cells["dataset"].nunique() - drawn
    return f" {count} more datasets are not drawn." if count > 0 and drawn else ""
