"""Pair the values of a frame of results by split and seed, and report every cell that is not among them."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bench.errors import UserError
from bench.stats.cell_counts import CellCounts, States
from bench.stats.failures import failures_as_losses
from bench.stats.replication import Repetition, repetition
from bench.stats.shared_splits import are_shared, means_of_splits
from bench.stats.tests import Array

Direction = Literal["lower", "higher", "target", "none"]
REPEAT = ["split", "seed"]


class MetricLike(Protocol):
    """What statistics need to know about a metric; `bench.metrics.Metric` and `Measure` have it."""

    @property
    def name(self) -> str:
        """The name in the frame."""
        ...

    @property
    def direction(self) -> Direction:
        """Whether lower or higher values are better, or those close to a target, or none ("none")."""
        ...

    @property
    def target(self) -> float | None:
        """The best value, with direction 'target' only."""
        ...

    @property
    def biased_in_draws(self) -> bool:
        """Whether its expectation depends on the number of draws, so that methods are compared at equal ones only."""
        ...

    @property
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        ...


@dataclass(frozen=True)
class Measure:
    """The name and direction of a metric, for values that no `Metric` declares."""

    name: str
    direction: Direction = "lower"
    target: float | None = None
    biased_in_draws: bool = False
    value_range: tuple[float, float] = (-math.inf, math.inf)


def widest_difference(measure: MetricLike) -> float:
    """Return the largest difference that two values can have (by a target: two distances to it)."""
    low, high = measure.value_range
    return high - low if measure.target is None else max(high - measure.target, measure.target - low)


def require_better(measure: MetricLike) -> None:
    """Raise UserError if no value of a metric is better than another."""
    if measure.direction == "none":
        raise UserError(
            f"{measure.name} describes predictions: no value of it is better, so it is not compared or ranked"
        )


def losses(values: ArrayLike, measure: MetricLike) -> Array:
    """Return values as losses (lower is better): unchanged, negated, or as distance to the target."""
    require_better(measure)
    x = np.asarray(values, dtype=np.float64)
    if measure.direction == "target":
        return np.abs(x - (measure.target or 0.0))
    return -x if measure.direction == "higher" else x


@dataclass(frozen=True)
class LostCells:
    """Counts of the cells of one method on one dataset that have no finite value."""

    method: str
    diverged: int = 0
    failed: int = 0
    not_run: int = 0
    infinite: int = 0  # with a value that is not finite

    def __bool__(self) -> bool:
        return bool(self.diverged or self.failed or self.not_run or self.infinite)

    def __str__(self) -> str:
        states = ("diverged", "failed", "not run", "not finite")
        counts = zip((self.diverged, self.failed, self.not_run, self.infinite), states, strict=True)
        return f"{self.method}: " + ", ".join(f"{count} {state}" for count, state in counts if count)


@dataclass(frozen=True)
class Repeats:
    """Values of several methods on one dataset, paired by split and seed: `values[method, pair]`."""

    dataset: str
    values: Array
    splits: NDArray[Any]  # of every pair
    failed: NDArray[np.bool_]  # `[method, repeat]` of the repeats in which some method failed, and none is missing
    failed_splits: NDArray[Any]  # of these
    lost: tuple[LostCells, ...]
    unpaired: int  # repeats that only some of the methods have
    repetition: Repetition  # how the repeats are related
    messages: tuple[str, ...] = field(default=())
    split_count: int | None = None  # how many splits the dataset has; None: as many as are asked for
    refused: str = ""  # why the methods cannot be compared by this metric; there are no values then

    def without_values(self, reason: str) -> "Repeats":
        """Return the repeats of methods that cannot be compared."""
        none = (self.values[:, :0], self.splits[:0], self.failed[:, :0], self.failed_splits[:0])
        return Repeats(
            self.dataset, *none, self.lost, self.unpaired, self.repetition, self.messages, self.split_count, reason
        )

    @property
    def shares_splits(self) -> bool:
        """Whether several seeds were run on each split: only the means of splits are independent then."""
        return self.repetition.kind != "seeds" and are_shared(np.concatenate([self.splits, self.failed_splits]))

    @property
    def count(self) -> int:
        """The number of repeats that count as independent: pairs, or splits where pairs share them."""
        return len(np.unique(self.splits)) if self.shares_splits else self.values.shape[1]

    def over_splits(self, numbers: Array) -> Array:
        """Return numbers `[..., pair]` as `[..., repeat]`: averaged over the seeds of a split where these share it."""
        return means_of_splits(numbers, self.splits) if self.shares_splits and len(self.splits) else numbers

    def losses(self, measure: MetricLike) -> Array:
        """Return the losses `[method, repeat]`."""
        return self.over_splits(losses(self.values, measure))

    def with_failures(self, differences: Array) -> Array:
        """Return differences of the losses of two methods with those of repeats in which one of them failed."""
        splits = (self.splits, self.failed_splits) if self.shares_splits else None
        return failures_as_losses(differences, self.failed, splits)


@dataclass(frozen=True)
class Grid:
    """All values of one metric on one dataset: `[repeat, method]`, repeats in the order of their splits and seeds."""

    dataset: str
    metric: str
    methods: tuple[str, ...]
    values: Array  # NaN where there is none
    present: NDArray[np.bool_]  # whether a value is stored, even NaN
    splits: NDArray[Any]  # of every repeat
    seeds: NDArray[Any]

    def failures(self, counts: CellCounts) -> NDArray[np.bool_]:
        """Return where a method diverged or has an infinite value `[repeat, method]`."""
        failed = np.isinf(self.values)
        for column, method in enumerate(self.methods):
            if places := counts.diverged(self.dataset, method):
                there = zip(self.splits.tolist(), self.seeds.tolist(), strict=True)
                failed[:, column] |= np.fromiter((place in places for place in there), bool, len(self.splits))
        return failed

    def of(self, methods: Sequence[str]) -> "Grid":
        """Return the grid of some methods, with the repeats that at least one of them has."""
        columns = [self.methods.index(method) for method in methods]
        kept = self.present[:, columns].any(axis=1)
        values, present = np.ascontiguousarray(self.values[kept][:, columns]), self.present[kept][:, columns]
        return Grid(self.dataset, self.metric, tuple(methods), values, present, self.splits[kept], self.seeds[kept])


def grids(frame: pd.DataFrame, metrics: Sequence[str], methods: Sequence[str] | None = None) -> list[Grid]:
    """Return the values of every dataset (in alphabetical order) and metric (in the given order) that has any.

    Columns are the given methods, with or without values; by default those with a value, in alphabetical order.
    """
    chosen = frame["metric"].isin(list(metrics))
    if methods is not None:
        chosen &= frame["method"].isin(list(methods))
    rows = frame[chosen]
    dataset, datasets = pd.factorize(rows["dataset"], sort=True)
    names = sorted(rows["method"].unique()) if methods is None else list(methods)
    method, metric = _positions(rows["method"], names), _positions(rows["metric"], metrics)
    repeat = rows.groupby(REPEAT, sort=True, dropna=False).ngroup().to_numpy()
    split, seed, value = rows["split"].to_numpy(), rows["seed"].to_numpy(), rows["value"].to_numpy(dtype=np.float64)
    order = np.lexsort((metric, dataset))
    ends = np.flatnonzero(np.diff(dataset[order]) | np.diff(metric[order])) + 1
    found = []
    for own in np.split(order, ends) if len(order) else ():
        kept, first, place = np.unique(repeat[own], return_index=True, return_inverse=True)
        columns = method[own]
        used = np.arange(len(names)) if methods is not None else np.unique(columns)
        values, present = np.full((len(kept), len(names)), np.nan), np.zeros((len(kept), len(names)), dtype=bool)
        values[place, columns], present[place, columns] = value[own], True
        name, own_names = metrics[metric[own[0]]], tuple(str(names[i]) for i in used)
        if present.sum() < len(own):
            raise UserError(f"{name}: several values of one dataset, split, method and seed; choose one suite")
        values, present = np.ascontiguousarray(values[:, used]), present[:, used]
        places = (split[own][first], seed[own][first])
        found.append(Grid(str(datasets[dataset[own[0]]]), name, own_names, values, present, *places))
    return found


def _positions(column: pd.Series, names: Sequence[str]) -> NDArray[np.int64]:
    """Return the index of every row's name in `names`."""
    codes, known = pd.factorize(column)
    return np.array([names.index(name) for name in known], dtype=np.int64)[codes]


def pair_repeats(
    frame: pd.DataFrame, measure: MetricLike, methods: Sequence[str], cells: pd.DataFrame | CellCounts | None = None
) -> list[Repeats]:
    """Return the paired repeats of every dataset on which all the methods have the metric, or should have it.

    A repeat counts where every method has a finite value (paired deletion); `messages` and `lost` report the others.
    """
    counts = CellCounts.of(cells)
    return [pair_grid(grid, counts) for grid in grids(frame, [measure.name], methods)]


def pair_grid(grid: Grid, counts: CellCounts) -> Repeats:
    """Return the paired repeats of all methods of a grid."""
    finite = np.isfinite(grid.values)
    whole = np.asarray(finite.all(axis=1))
    infinite = np.isinf(grid.values).sum(axis=0)
    states = counts.states(grid.dataset)
    found = (_lost(method, int(infinite[i]), states) for i, method in enumerate(grid.methods))
    lost = tuple(one for one in found if one)
    unpaired = int((finite.any(axis=1) & ~whole).sum())
    messages = [str(one) for one in lost]
    if unpaired:
        messages.append(
            f"{unpaired} of {len(whole)} repeats are missing for some method and were left out (paired deletion)"
        )
    worse = [one.method for one in lost if one.diverged or one.infinite]
    if worse:
        messages.append(f"diverged and infinite values are not in the means, which favours {' and '.join(worse)}")
    related = repetition(grid.dataset, grid.splits[whole], counts)
    failed = grid.failures(counts)
    some = np.asarray(failed.any(axis=1) & (finite | failed).all(axis=1))
    pairs = (grid.values[whole].T, grid.splits[whole], failed[some].T, grid.splits[some])
    existing = counts.split_count(grid.dataset)
    return Repeats(grid.dataset, *pairs, lost, unpaired, related, tuple(messages), existing)


def _lost(method: str, infinite: int, states: States) -> LostCells:
    own = states.get(method, Counter())
    return LostCells(method, own["diverged"], own["failed"], own["not run"], infinite)
