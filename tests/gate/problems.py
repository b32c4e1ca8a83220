"""Measured suites whose truth is known, for the tests of the gate."""

from collections.abc import Mapping, Sequence

import numpy as np

from bench.gate.baseline import Baseline, Reason
from bench.gate.values import Measured, Place
from bench.stats.tests import Array

ENVIRONMENT = {
    "cpu": "Some CPU",
    "cores": 2,
    "threads": 2,
    "device": "cpu",
    "device_name": "Some CPU",
    "torch": "2.13.0",
}
ASKED: dict[str, object] = {"baseline": None, "datasets": {"toy": {}}, "methods": {"m": {}}, "protocol": {"draws": 5}}


def measured(values: Mapping[Place, Mapping[str, Sequence[float] | Array]], **about: object) -> Measured:
    """Return what was measured at seeds 0, 1, ..."""
    rows = {place: {name: np.array(row, dtype=float) for name, row in each.items()} for place, each in values.items()}
    seeds = max(len(row) for each in rows.values() for row in each.values())
    facts: dict[str, object] = {"environment": ENVIRONMENT, "codes": {"abc": seeds * len(rows)}, **about}
    return Measured(tuple(range(seeds)), rows, **facts)  # type: ignore[arg-type]


def baseline(made: Measured, suite: str = "tiny") -> Baseline:
    return Baseline(suite, ASKED, made, (Reason("2026-01-01", "abc", "first baseline"),))


def spread(mean: float, deviation: float, seeds: int = 10) -> Array:
    """Numbers with exactly this mean and standard deviation."""
    noise = np.random.default_rng(int(seeds)).normal(size=seeds)
    return np.asarray(mean + deviation * (noise - noise.mean()) / noise.std(ddof=1))
