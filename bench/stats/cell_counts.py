"""How many cells ended in which state, and from which data, by dataset and method."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Self

import pandas as pd

from bench.spec.spec import spec_or_none

States = Mapping[str, Counter[str]]  # of every method: how many cells are ok, diverged, failed, not run


class CellCounts:
    """The counts of a frame of cells, computed once for all metrics and pairs of methods."""

    def __init__(self, states: Mapping[str, States], prints: Mapping[str, Mapping[str, set[str]]]) -> None:
        self._states = states
        self._prints = prints

    @classmethod
    def of(cls, cells: "Cells") -> "CellCounts":
        """Return the counts of a frame with the columns dataset, method, status and, if available, spec."""
        if isinstance(cells, CellCounts):
            return cells
        states: dict[str, dict[str, Counter[str]]] = {}
        prints: dict[str, dict[str, set[str]]] = {}
        if cells is not None:
            statuses = cells["status"].fillna("not run").tolist()
            specs = cells["spec"].tolist() if "spec" in cells else [None] * len(cells)
            places = zip(cells["dataset"].tolist(), cells["method"].tolist(), statuses, specs, strict=True)
            for dataset, method, status, spec in places:
                states.setdefault(dataset, {}).setdefault(method, Counter())[status] += 1
                if (known := spec_or_none(spec)) is not None:
                    prints.setdefault(dataset, {}).setdefault(method, set()).add(known.data)
        return cls(states, prints)

    def only(self, methods: Collection[str]) -> Self:
        """Return the counts of these methods alone."""
        return type(self)(
            {dataset: {m: own[m] for m in methods if m in own} for dataset, own in self._states.items()},
            {dataset: {m: own[m] for m in methods if m in own} for dataset, own in self._prints.items()},
        )

    def states(self, dataset: str) -> States:
        """Return the counts of every method that has cells on a dataset."""
        return self._states.get(dataset, {})

    def methods(self) -> set[str]:
        """Return the methods that have cells on some dataset."""
        return {method for own in self._states.values() for method in own}

    def splits_overlap(self, dataset: str) -> bool | None:
        """Whether repeats differ in their rows, by the hashes of the data; None where no cell has one."""
        prints = set[str]().union(*self._prints.get(dataset, {}).values())
        return len(prints) > 1 if prints else None


Cells = pd.DataFrame | CellCounts | None  # the cells of a suite, or their counts where they were counted before
