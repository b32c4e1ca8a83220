"""How many cells ended in which state, from which rows and with how many draws, by dataset and method."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Self

import pandas as pd

from bench.spec.replication import Replication
from bench.spec.spec import spec_or_none

States = Mapping[str, Counter[str]]  # of every method: how many cells are ok, diverged, failed, not run
Declared = tuple[Replication, float]  # how repeats are related, and the share of test rows
ByPlace = Mapping[str, Mapping[str, set[Any]]]  # values by dataset and method


class CellCounts:
    """The counts of a frame of cells, computed once for all metrics and pairs of methods."""

    def __init__(
        self,
        states: Mapping[str, States],
        prints: ByPlace,
        draws: ByPlace,
        repeats: ByPlace,
        splits: ByPlace,
        diverged: ByPlace,
    ) -> None:
        self._states = states
        self._prints = prints
        self._draws = draws
        self._repeats = repeats
        self._splits = splits
        self._diverged = diverged

    @classmethod
    def of(cls, cells: "Cells") -> "CellCounts":
        """Return the counts of a frame with dataset, method, status and, if available, spec and training."""
        if isinstance(cells, CellCounts):
            return cells
        states: dict[str, dict[str, Counter[str]]] = {}
        prints: dict[str, dict[str, set[str]]] = {}
        draws: dict[str, dict[str, set[int]]] = {}
        repeats: dict[str, dict[str, set[Declared]]] = {}
        splits: dict[str, dict[str, set[int]]] = {}
        diverged: dict[str, dict[str, set[tuple[int, int]]]] = {}
        if cells is not None:
            statuses = cells["status"].fillna("not run").tolist()
            specs = cells["spec"].tolist() if "spec" in cells else [None] * len(cells)
            trainings = cells["training"].tolist() if "training" in cells else [None] * len(cells)
            places = zip(cells["dataset"].tolist(), cells["method"].tolist(), statuses, specs, trainings, strict=True)
            for dataset, method, status, spec, training in places:
                states.setdefault(dataset, {}).setdefault(method, Counter())[status] += 1
                if (known := spec_or_none(spec)) is not None:
                    prints.setdefault(dataset, {}).setdefault(method, set()).add(known.data)
                count, declared, existing = _read(training)
                if count is not None:
                    draws.setdefault(dataset, {}).setdefault(method, set()).add(count)
                if declared is not None:
                    repeats.setdefault(dataset, {}).setdefault(method, set()).add(declared)
                if existing is not None:
                    splits.setdefault(dataset, {}).setdefault(method, set()).add(existing)
            lost = cells[cells["status"] == "diverged"]
            if len(lost) and {"split", "seed"} <= set(cells.columns):
                columns = (lost[name].tolist() for name in ("dataset", "method", "split", "seed"))
                for dataset, method, *repeat in zip(*columns, strict=True):
                    diverged.setdefault(dataset, {}).setdefault(method, set()).add((repeat[0], repeat[1]))
        return cls(states, prints, draws, repeats, splits, diverged)

    def only(self, methods: Collection[str]) -> Self:
        """Return the counts of these methods alone."""
        return type(self)(
            {dataset: {m: own[m] for m in methods if m in own} for dataset, own in self._states.items()},
            {dataset: {m: own[m] for m in methods if m in own} for dataset, own in self._prints.items()},
            {dataset: {m: own[m] for m in methods if m in own} for dataset, own in self._draws.items()},
            {dataset: {m: own[m] for m in methods if m in own} for dataset, own in self._repeats.items()},
            {dataset: {m: own[m] for m in methods if m in own} for dataset, own in self._splits.items()},
            {dataset: {m: own[m] for m in methods if m in own} for dataset, own in self._diverged.items()},
        )

    def states(self, dataset: str) -> States:
        """Return the counts of every method that has cells on a dataset."""
        return self._states.get(dataset, {})

    def methods(self) -> set[str]:
        """Return the methods that have cells on some dataset."""
        return {method for own in self._states.values() for method in own}

    def repeats(self, dataset: str) -> frozenset[Declared]:
        """Return how the cells of a dataset say that repeats are related; empty where none says it."""
        return frozenset[Declared]().union(*self._repeats.get(dataset, {}).values())

    def split_count(self, dataset: str) -> int | None:
        """Return how many splits a dataset has by its cells; None: as many as are asked for, or no cell says it."""
        return min(set[int]().union(*self._splits.get(dataset, {}).values()), default=None)

    def diverged(self, dataset: str, method: str) -> frozenset[tuple[int, int]]:
        """Return the splits and seeds of the cells in which a method diverged."""
        return frozenset(self._diverged.get(dataset, {}).get(method, ()))

    def rows_differ(self, dataset: str) -> bool | None:
        """Whether repeats differ in their rows, by the hashes of the data; None where no cell has one."""
        prints = set[str]().union(*self._prints.get(dataset, {}).values())
        return len(prints) > 1 if prints else None

    def draws(self, dataset: str, method: str) -> frozenset[int]:
        """Return the numbers of functions that a method's forecasts on a dataset have; empty where they are unknown."""
        return frozenset(self._draws.get(dataset, {}).get(method, ()))


def _read(training: object) -> tuple[int | None, Declared | None, int | None]:
    """Return from a cell's record the functions behind its forecast, how repeats are related, how many splits exist."""
    if not isinstance(training, str) or not ('"draws"' in training or '"repeats"' in training):
        return None, None, None
    record = json.loads(training)
    count, repeats = record.get("draws"), record.get("repeats")
    declared = (repeats["kind"], float(repeats["test_share"])) if repeats else None
    return count if isinstance(count, int) else None, declared, repeats.get("splits") if repeats else None


Cells = pd.DataFrame | CellCounts | None  # the cells of a suite, or their counts where they were counted before
