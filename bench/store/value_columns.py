"""The metric values of a suite as columns of numbers: a million of them take megabytes, as rows they take gigabytes."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Float, select, type_coerce

from bench.store.database import Database
from bench.store.tables import metrics, wanted

ROWS_AT_ONCE = 20_000
PLACE = ["suite", "dataset", "split", "method", "seed"]  # of a cell, before its key
DATASET, METHOD = PLACE.index("dataset"), PLACE.index("method")


@dataclass(frozen=True, eq=False)
class ValueColumns:
    """Values in the order of their places and the names of their metrics; names are kept once, as positions."""

    places: Sequence[tuple[Any, ...]]  # the columns of PLACE, and the key
    metrics: Sequence[str]
    place: NDArray[np.int32]  # of every value, its position among the places
    metric: NDArray[np.int32]
    value: NDArray[np.float64]  # NaN where it is undefined

    def only(self, names: Collection[str]) -> "ValueColumns":
        """Return the columns with the values of these metrics alone."""
        own = np.isin(self.metric, [number for number, name in enumerate(self.metrics) if name in names])
        return replace(self, place=self.place[own], metric=self.metric[own], value=self.value[own])

    def datasets(self) -> list[str]:
        """Return the datasets that have a value."""
        return list(dict.fromkeys(self.places[place][DATASET] for place in np.unique(self.place)))

    def methods(self) -> dict[str, set[str]]:
        """Return the methods that have a value of each metric."""
        numbers = {label: n for n, label in enumerate(dict.fromkeys(place[METHOD] for place in self.places))}
        label = np.array([numbers[place[METHOD]] for place in self.places], np.int64)
        pairs = np.unique(self.metric * max(len(numbers), 1) + label[self.place])
        found: dict[str, set[str]] = {}
        labels = list(numbers)
        for metric, method in zip(*np.divmod(pairs, max(len(labels), 1)), strict=True):
            found.setdefault(self.metrics[metric], set()).add(labels[method])
        return found

    def added(self, name: str, place: NDArray[np.int32], value: NDArray[np.float64]) -> "ValueColumns":
        """Return the columns with the values of one more metric."""
        names = sorted({*self.metrics, name})
        rank = np.array([names.index(each) for each in self.metrics], np.int32)
        metric = np.concatenate([rank[self.metric], np.full(len(place), names.index(name), np.int32)])
        return in_order(self.places, names, np.concatenate([self.place, place]), metric, np.append(self.value, value))


def in_order(
    places: Sequence[tuple[Any, ...]],
    names: Sequence[str],
    place: NDArray[np.int32],
    metric: NDArray[np.int32],
    value: NDArray[np.float64],
) -> ValueColumns:
    """Return columns in their order."""
    order = np.lexsort((metric, place))
    return ValueColumns(places, names, place[order], metric[order], value[order])


def read_values(database: Database, suite: str) -> ValueColumns:
    """Return all values of a suite."""
    order = [wanted.c.dataset, wanted.c.split, wanted.c.method, wanted.c.seed]
    own = select(wanted).where(wanted.c.suite == suite)
    keys = select(wanted.c.key).where(wanted.c.suite == suite)
    value_column = type_coerce(metrics.c.value, Float(53))  # None is NaN to numpy: no call for each value
    query = select(metrics.c.key, metrics.c.metric, value_column).where(metrics.c.key.in_(keys))
    known: dict[str, int] = {}  # keys, in the order in which they came
    names: dict[str, int] = {}
    parts: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]] = []
    with database.reading() as connection:
        places = [tuple(row) for row in connection.execute(own.order_by(*order))]
        found = connection.execution_options(stream_results=True).execute(query)
        for rows in found.partitions(ROWS_AT_ONCE):
            codes = [known.setdefault(row[0], len(known)) for row in rows]
            called = [names.setdefault(row[1], len(names)) for row in rows]
            values = [row[2] for row in rows]
            parts.append((np.array(codes, np.int32), np.array(called, np.int32), np.array(values, np.float64)))
    empty = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    key, metric, value = (np.concatenate(column) for column in zip(*(parts or [empty]), strict=True))
    return _of_places(places, list(known), sorted(names), _rank(names)[metric], key, value)


def _rank(names: dict[str, int]) -> NDArray[np.int32]:
    """Return the alphabetical position of every name, by its code."""
    rank = np.empty(len(names), np.int32)
    for position, name in enumerate(sorted(names)):
        rank[names[name]] = position
    return rank


def _of_places(
    places: list[tuple[Any, ...]],
    keys: list[str],
    names: list[str],
    metric: NDArray[np.int32],
    key: NDArray[np.int32],
    value: NDArray[np.float64],
) -> ValueColumns:
    """Return the values of every place in order; two places of a suite may want the same cell."""
    held: dict[str, list[int]] = defaultdict(list)
    for position, about in enumerate(places):
        held[about[-1]].append(position)
    most = max((len(positions) for positions in held.values()), default=1)
    found = []
    for number in range(most):
        place_of = np.array([held[each][number] if number < len(held[each]) else -1 for each in keys], np.int32)
        place = place_of[key] if len(key) else np.empty(0, np.int32)
        own = place >= 0
        found.append((place[own], metric[own], value[own]))
    place, metric, value = (np.concatenate(column) for column in zip(*found, strict=True))
    return in_order(places, names, place, metric, value)
