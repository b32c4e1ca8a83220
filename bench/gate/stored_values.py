"""Every value of a metric that a store has for the cells of a suite, also those that older code made.

A key changes with the harness and with the versions of plug-ins, so the cells that a suite wants today are not those it
wanted then. They are recognised by what they are: the same plug-ins, options, protocol and seed.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.store import Store


@dataclass(frozen=True)
class Value:
    """One number, and the code that made it."""

    dataset: str
    method: str
    seed: int
    code: str
    finished: float
    value: float


def stored_values(store: Store, metric: str, suite: str) -> Iterator[Value]:
    """Yield the values of a metric for the datasets and methods of a suite."""
    wanted: dict[str, tuple[str, str]] = {}
    for row in store.cells(suite):
        if row["spec"]:
            wanted.setdefault(_kind(json.loads(row["spec"])), (row["dataset"], row["method"]))
    kinds = [(json.loads(kind), place) for kind, place in wanted.items()]
    places: dict[str, tuple[str, str] | None] = dict(wanted)
    for row in store.values_of(metric):
        spec = json.loads(row["spec"])
        kind = _kind(spec)
        if kind not in places:
            about = json.loads(kind)
            places[kind] = next((place for known, place in kinds if _alike(about, known)), None)
        if (place := places[kind]) is not None:
            code = f"{row['code'] or ''}{'-dirty' if row['dirty'] else ''}"
            yield Value(*place, int(spec["seed"]), code, float(row["finished"] or 0.0), float(row["value"]))


def _kind(spec: Mapping[str, Any]) -> str:
    """Return what a cell is, without what changes from version to version and from seed to seed."""
    parts = {kind: [spec[kind][0], spec[kind][-1]] for kind in ("dataset", "method")}  # name and options
    return json.dumps({**parts, "protocol": spec["protocol"]}, sort_keys=True)


def _alike(a: Any, b: Any) -> bool:
    """Whether two specs agree in all they both have: an option that is new has its old behaviour as default."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return all(_alike(a[key], b[key]) for key in a.keys() & b.keys())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_alike(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
