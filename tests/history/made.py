"""Stores whose history is known."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench.spec.cell import Cell, Outcome
from bench.spec.protocol import Protocol
from bench.stats.tests import Array
from bench.store.store import Store, SuiteRecord


def spec(
    version: int = 1, seed: int = 0, *, method: str = "m", options: Mapping[str, Any] | None = None, **protocol: Any
) -> dict[str, Any]:
    """What a plan writes of a cell."""
    return {
        "harness": 2,
        "dataset": ["toy", "built in", "1", {}],
        "method": [method, "built in", str(version), dict(options or {})],
        "protocol": {**json.loads(json.dumps(asdict(Protocol()))), **protocol},
        "space": {},
        "data": f"rows {seed}",
        "seed": seed,
    }


def cell(about: Mapping[str, Any], label: str = "m") -> Cell:
    """The cell of a specification, known by a label in its suite."""
    text = json.dumps(about, sort_keys=True)
    return Cell(text, "toy", about["seed"], label, about["seed"], text)


def save(
    store: Store,
    cells: Sequence[Cell],
    values: Sequence[float],
    code: str,
    finished: float,
    *,
    wanted: bool = True,
    metric: str = "rmse",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Store values, one a cell."""
    if wanted:
        store.want(SuiteRecord("tiny", "Tiny", None, [metric], "{}"), cells)
    environment = {"code": code, **(facts or {})}
    made = [
        Outcome("ok", metrics={metric: float(value)}, environment=environment, timing={"finished": finished})
        for value in values
    ]
    store.save(zip(cells, made, strict=True), "tiny")


def stored(path: Path, values: Array, codes: Sequence[str]) -> Store:
    """A store with values `[versions, seeds]` of rmse, the last version wanted."""
    store = Store(str(path))
    for version, (row, code) in enumerate(zip(values, codes, strict=True)):
        cells = [cell(spec(version, seed)) for seed in range(len(row))]
        save(store, cells, row, code, 100.0 + version)
    return store


def noisy(means: Sequence[float], seeds: int = 8) -> Array:
    """Values `[versions, seeds]`: what seeds have in common over versions is larger than what they have not."""
    generator = np.random.default_rng(1)
    common, own = generator.normal(size=seeds), generator.normal(size=(len(means), seeds))
    return np.array(means)[:, None] + 0.1 * common + 0.01 * own
