"""From a frame of results to paired numbers, with account of every cell that is not among them."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.stats.paired import Array

Direction = Literal["lower", "higher", "target"]
REPEAT = ["split", "seed"]


class Declared(Protocol):
    """What statistics know about a metric: the metrics of `bench.metrics` are such, and so is `Measure`."""

    @property
    def name(self) -> str:
        """The name in the frame."""
        ...

    @property
    def direction(self) -> Direction:
        """Whether lower or higher is better, or the distance to a target counts."""
        ...

    @property
    def target(self) -> float | None:
        """The value to reach, with direction 'target' only."""
        ...


@dataclass(frozen=True)
class Measure:
    """A metric's declaration, as far as statistics need it."""

    name: str
    direction: Direction = "lower"
    target: float | None = None


def losses(values: ArrayLike, measure: Declared) -> Array:
    """Return values as numbers of which lower is better: themselves, their negatives, their distance to the target."""
    x = np.asarray(values, dtype=np.float64)
    if measure.direction == "target":
        return np.abs(x - (measure.target or 0.0))
    return -x if measure.direction == "higher" else x


@dataclass(frozen=True)
class Lost:
    """Cells of one method on one dataset that gave no number."""

    method: str
    diverged: int = 0
    failed: int = 0
    not_run: int = 0
    infinite: int = 0  # a value is there, but it is not finite

    def __bool__(self) -> bool:
        return bool(self.diverged or self.failed or self.not_run or self.infinite)

    def told(self) -> str:
        """Return the counts in words."""
        counts = {
            "diverged": self.diverged, "failed": self.failed, "not run": self.not_run, "not finite": self.infinite,
        }  # fmt: skip
        return f"{self.method}: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count)


@dataclass(frozen=True)
class Repeats:
    """Numbers of several methods on one dataset, paired by split and seed: `values[method, pair]`."""

    dataset: str
    values: Array
    lost: tuple[Lost, ...]
    unpaired: int  # repeats that some of the methods have and others do not
    overlap: bool  # the repeats are different splits of the data, not only different seeds
    messages: tuple[str, ...] = field(default=())


def repeats(
    frame: pd.DataFrame, measure: Declared, methods: Sequence[str], cells: pd.DataFrame | None = None
) -> list[Repeats]:
    """Return the paired repeats of every dataset on which all the methods have the metric, or should have it.

    A repeat counts where every method has a finite number (paired deletion); `messages` and `lost` say what did not.
    """
    chosen = frame[(frame["metric"] == measure.name) & frame["method"].isin(list(methods))]
    if chosen.duplicated(["dataset", *REPEAT, "method"]).any():
        raise UserError(f"{measure.name}: several values of one dataset, split, method and seed; choose one suite")
    found = []
    for dataset, rows in chosen.groupby("dataset", sort=True):
        table = rows.pivot(index=REPEAT, columns="method", values="value").reindex(columns=list(methods))
        own = None if cells is None else cells[cells["dataset"] == dataset]
        found.append(_repeats(str(dataset), table, methods, own))
    return found


def _repeats(dataset: str, table: pd.DataFrame, methods: Sequence[str], cells: pd.DataFrame | None) -> Repeats:
    numbers = table.to_numpy(dtype=np.float64)
    finite = np.isfinite(numbers)
    whole = finite.all(axis=1)
    infinite = {method: int(np.isinf(numbers[:, i]).sum()) for i, method in enumerate(methods)}
    states = statuses(cells)
    lost = tuple(one for method in methods if (one := _lost(method, infinite[method], states)))
    unpaired = int((finite.any(axis=1) & ~whole).sum())
    messages = [one.told() for one in lost]
    if unpaired:
        messages.append(
            f"{unpaired} of {len(numbers)} repeats are not there for every method and were left out (paired deletion)"
        )
    worse = [one.method for one in lost if one.diverged or one.infinite]
    if worse:
        messages.append(f"what diverged is not in the means, which flatters {' and '.join(worse)}")
    return Repeats(dataset, numbers[whole].T, lost, unpaired, splits_overlap(table[whole], cells), tuple(messages))


def statuses(cells: pd.DataFrame | None) -> dict[str, Counter[str]]:
    """Return how many cells of every method are ok, diverged, failed or not run (a status that is missing)."""
    counts: dict[str, Counter[str]] = {}
    if cells is not None:
        told = cells["status"].fillna("not run")
        for method, status in zip(cells["method"].tolist(), told.tolist(), strict=True):
            counts.setdefault(method, Counter())[status] += 1
    return counts


def _lost(method: str, infinite: int, states: dict[str, Counter[str]]) -> Lost:
    own = states.get(method, Counter())
    return Lost(method, own["diverged"], own["failed"], own["not run"], infinite)


@lru_cache(maxsize=50_000)
def _fingerprint(spec: str) -> str:
    """Return the hash of the data in a cell's specification; a suite's are read again for each of its metrics."""
    return str(json.loads(spec).get("data"))


def splits_overlap(table: pd.DataFrame, cells: pd.DataFrame | None) -> bool:
    """Whether repeats differ in their rows: by the hash of the data in a cell's specification, else by split."""
    if cells is not None and "spec" in cells:
        prints = {_fingerprint(text) for text in cells["spec"].tolist() if isinstance(text, str)} - {"None"}
        if prints:
            return len(prints) > 1
    return table.index.get_level_values("split").nunique() > 1
