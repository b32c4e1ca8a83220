"""What methods cost: networks and epochs to train, forward passes per prediction, processor time, and latency."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from bench.api import Results, condition

LATENCY = ("latency_total", "latency_transfer", "latency_forward")  # the most complete one that was timed


@dataclass(frozen=True)
class Cost:
    """What one method costs on one dataset."""

    passes: int
    networks: int | None  # None: it is no network
    epochs: float  # of all networks together, mean over repeats; NaN: it has none


Costs = Mapping[tuple[str, str], Cost]  # by dataset and method


def costs_of(cells: pd.DataFrame) -> dict[tuple[str, str], Cost]:
    """Return the cost of every method on every dataset, from the records of its cells."""
    found: dict[tuple[str, str], Cost] = {}
    for (dataset, method), own in cells[cells["status"] == "ok"].groupby(["dataset", "method"], sort=False):
        records = [json.loads(text) for text in own["training"] if isinstance(text, str)]
        draws = {record["draws"] for record in records if isinstance(record.get("draws"), int)}
        if len(draws) != 1:
            continue  # a method whose draws differ from repeat to repeat has no one cost
        epochs = [record["epochs"] for record in records if record.get("epochs")]
        networks = len(epochs[0]) if epochs else None
        total = float(np.mean([sum(each) for each in epochs])) if epochs else math.nan
        found[str(dataset), str(method)] = Cost(draws.pop(), networks, total)
    return found


@dataclass(frozen=True)
class MethodCost:
    """What one method costs over some datasets; numbers that differ between datasets are given as all of them."""

    networks: tuple[int, ...]
    passes: tuple[int, ...]
    training: float  # epochs of all its networks over those of the baseline, geometric mean over datasets
    seconds: float  # processor time of a cell, mean; NaN: not known
    latency: float  # ms per 1,000 rows at its most passes, geometric mean over datasets; NaN: not timed

    @property
    def most_passes(self) -> float:
        """The passes of a prediction, the most where datasets differ; NaN: not known."""
        return float(max(self.passes)) if self.passes else math.nan


_known: "WeakKeyDictionary[Results, dict[tuple[str, str], Cost]]" = WeakKeyDictionary()


def method_costs(results: Results, datasets: Sequence[str]) -> dict[str, MethodCost]:
    """Return what every method costs on these datasets, relative to the baseline where there is one."""
    if results not in _known:
        _known[results] = costs_of(results.cells)
    known, cells = _known[results], results.cells[results.cells["dataset"].isin(list(datasets))]
    timed, baseline = _latencies(results, datasets), str(results.baseline)
    found: dict[str, MethodCost] = {}
    for method, own in cells[cells["status"] == "ok"].groupby("method", sort=False):
        costs = {d: known[d, str(method)] for d in datasets if (d, str(method)) in known}
        base = {d: known[d, baseline].epochs for d in costs if (d, baseline) in known}
        ratios = [costs[d].epochs / base[d] for d in base if base[d] > 0 and costs[d].epochs > 0]
        training = float(np.exp(np.mean(np.log(ratios)))) if ratios else math.nan
        seconds = pd.to_numeric(own["cpu_seconds"], errors="coerce").mean() if "cpu_seconds" in own else math.nan
        found[str(method)] = MethodCost(
            tuple(sorted({cost.networks for cost in costs.values() if cost.networks is not None})),
            tuple(sorted({cost.passes for cost in costs.values()})),
            training,
            float(seconds),
            timed.get(str(method), math.nan),
        )
    return found


def _latencies(results: Results, datasets: Sequence[str]) -> dict[str, float]:
    """Return the time of every method at the most draws for which it was timed, in the engine's own way of drawing."""
    frame = results.frame
    names = [str(name) for name in frame["metric"].unique() if str(name).partition("@")[0] in LATENCY]
    what = next((what for what in LATENCY if any(name.partition("@")[0] == what for name in names)), None)
    if what is None:
        return {}
    draws = {n: int(at[2:]) for n in names if n.partition("@")[0] == what and (at := condition(n))[2:].isdigit()}
    rows = frame[frame["metric"].isin(list(draws)) & frame["dataset"].isin(list(datasets))]
    rows = rows.assign(draws=rows["metric"].map(draws))
    found: dict[str, float] = {}
    for method, own in rows.groupby("method", sort=False):
        last = own[own["draws"] == own.groupby("dataset")["draws"].transform("max")]
        means = last.groupby("dataset")["value"].mean()
        found[str(method)] = float(np.exp(np.log(means[means > 0]).mean()))
    return found


def numbers_text(numbers: Sequence[int]) -> str:
    """Return a number, or the least and the most where datasets differ; a dash for none."""
    if not numbers:
        return "–"
    return f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"


def times_text(ratio: float) -> str:
    """Return a multiple of the baseline's cost."""
    return "–" if math.isnan(ratio) else f"{ratio:.2g} x" if ratio < 100 else f"{ratio:,.0f} x"
