"""The values of a suite: every gated metric by seed, the cells without a result, and the environment."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bench.metrics import catalogue, find_declaration
from bench.plan.suite import Suite
from bench.spec.spec import foreign_plugins, spec_or_none
from bench.stats.tests import Array

if TYPE_CHECKING:
    from bench.api import Results

Place = tuple[str, str]  # dataset, method


@dataclass(frozen=True, eq=False)
class Measured:
    """Values of a suite, seeds in one order everywhere; NaN where there is none."""

    seeds: tuple[int, ...]
    values: Mapping[Place, Mapping[str, Array]]
    lost: Mapping[Place, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)  # status: seeds
    environment: Mapping[str, Any] = field(default_factory=dict)
    codes: Mapping[str, int] = field(default_factory=dict)  # the code versions, and how many cells each made
    remarks: Mapping[Place, str] = field(default_factory=dict)  # why something could not run
    plugins: Mapping[str, str] | None = None  # that are not built in: packages, hashes of files; None: not recorded
    forms: Mapping[Place, str] = field(default_factory=dict)  # in which networks were trained, where that is recorded

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return sum(int(np.isfinite(row).sum()) for rows in self.values.values() for row in rows.values())

    def first(self, seeds: int) -> "Measured":
        """Return what the first seeds gave."""
        kept = self.seeds[:seeds]
        lost = {
            place: {status: tuple(s for s in all_ if s in kept) for status, all_ in statuses.items()}
            for place, statuses in self.lost.items()
        }
        values = {place: {m: row[:seeds] for m, row in rows.items()} for place, rows in self.values.items()}
        return replace(self, seeds=kept, values=values, lost=lost)

    def only(self, places: Collection[Place]) -> "Measured":
        """Return what was measured at some places."""
        values = {place: rows for place, rows in self.values.items() if place in places}
        lost = {place: statuses for place, statuses in self.lost.items() if place in places}
        return replace(self, values=values, lost=lost)


def gated_metrics(suite: Suite) -> list[str]:
    """Return the metrics that are gated: those that the suite lists for the gate or its tables, else all.

    A metric without a better is never gated.
    """
    names = suite.gate.metrics or suite.metrics or catalogue()
    return [name for name in names if (metric := find_declaration(name)) is None or metric.has_better]


def measured(results: "Results", metrics: Collection[str], seeds: Sequence[int]) -> Measured:
    """Return what a store holds of some metrics at some seeds."""
    frame, cells = results.frame, results.cells
    stored = [str(name) for name in frame["metric"].unique()]
    wanted = [name for name in stored if {name, name.partition("@")[0]} & set(metrics)]
    gated = [name for name in wanted if (metric := find_declaration(name)) is not None and metric.has_better]
    frame = frame[frame["metric"].isin(gated) & frame["seed"].isin(seeds)]
    cells = cells[cells["seed"].isin(seeds)]
    table = frame.pivot(index=["dataset", "method", "metric"], columns="seed", values="value")
    rows = table.reindex(columns=list(seeds)).to_numpy(dtype=np.float64)
    values: dict[Place, dict[str, Array]] = {}
    for (dataset, method, metric), row in zip(table.index, rows, strict=True):
        values.setdefault((dataset, method), {})[metric] = row
    lost: dict[Place, dict[str, list[int]]] = {}
    for dataset, method, seed, state in _columns(cells, "dataset", "method", "seed", "status"):
        status = "not run" if pd.isna(state) else str(state)
        if status != "ok":
            lost.setdefault((dataset, method), {}).setdefault(status, []).append(int(seed))
    remarks = {
        (dataset, method): str(text)
        for dataset, method, text in _columns(results.remarks, "dataset", "method", "text")
        if method or str(text).startswith("could not run")  # the others are about the data
    }
    return Measured(
        tuple(seeds),
        values,
        {place: {s: tuple(sorted(which)) for s, which in each.items()} for place, each in lost.items()},
        _environment(cells),
        _codes(cells),
        remarks,
        _plugins(cells),
        _forms(cells),
    )


def _columns(frame: pd.DataFrame, *names: str) -> Iterator[Any]:
    return zip(*(frame[name].tolist() for name in names), strict=True)


def _forms(cells: pd.DataFrame) -> dict[Place, str]:
    """Return how the networks of each place were trained; all seeds in the same way, if one machine made them."""
    found: dict[Place, str] = {}
    for dataset, method, record in _columns(cells, "dataset", "method", "training"):
        if (dataset, method) not in found and isinstance(record, str) and '"form"' in record:
            found[dataset, method] = str(json.loads(record)["form"])
    return found


def _codes(cells: pd.DataFrame) -> dict[str, int]:
    codes = _columns(cells.dropna(subset=["status"]), "code", "dirty")
    return dict(sorted(Counter(f"{code or ''}{'-dirty' if dirty else ''}" for code, dirty in codes).items()))


def _plugins(cells: pd.DataFrame) -> dict[str, str]:
    """Return the plug-ins that are not built in, with their package and version or the hash of their file."""
    found: dict[str, set[str]] = {}
    for text in cells["spec"].dropna().unique():
        if (spec := spec_or_none(text)) is not None:
            for name, origin in foreign_plugins(spec).items():
                found.setdefault(name, set()).add(origin)
    return {name: " | ".join(sorted(origins)) for name, origins in sorted(found.items())}


def _environment(cells: pd.DataFrame) -> dict[str, Any]:
    """Return the facts of the machine and the software; where cells differ in one, all its values."""
    all_facts = [_flat(json.loads(text)) for text in cells["environment"].dropna().unique()]
    merged: dict[str, Any] = {}
    for name in sorted({name for facts in all_facts for name in facts} - {"code"}):
        found = {str(facts[name]): facts[name] for facts in all_facts if name in facts}
        merged[name] = next(iter(found.values())) if len(found) == 1 else " | ".join(sorted(found))
    return merged


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    packages = facts.get("packages") or {}
    return {name: value for name, value in facts.items() if name != "packages"} | dict(packages)
