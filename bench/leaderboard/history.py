"""How the numbers of a row changed from one version of the code to the next, where the store has kept both.

A store keeps the cells of earlier versions: a plug-in or harness whose numbers changed has other keys. Results belong
to one line where all but versions, data and seed is the same.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sqlalchemy import select

from bench.database import chunks
from bench.leaderboard.listing import Row
from bench.leaderboard.provenance import Provenance, provenance
from bench.protocol import Protocol
from bench.schema import cells, environments, metrics
from bench.stats import t_interval
from bench.store import Store

DEFAULTS = asdict(Protocol())


@dataclass(frozen=True)
class Point:
    """The results of one version."""

    code: str
    version: str  # of the method, the dataset and the harness
    finished: float  # when its last result was
    repeats: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """One metric of one row over versions, the oldest first."""

    suite: str
    dataset: str
    method: str
    metric: str
    points: tuple[Point, ...]


def histories(store: Store, rows: Sequence[Row], shown: Mapping[str, Sequence[str]], level: float) -> list[Line]:
    """Return the lines that have at least two points; `shown` names the metrics of every suite."""
    by_identity: dict[str, list[tuple[Provenance, float, str]]] = {}
    for key, source, finished in _all_cells(store):
        by_identity.setdefault(_identity(source.spec), []).append((source, finished, key))
    candidates = []
    for row in rows:
        versions: dict[tuple[str, str], list[tuple[float, str]]] = {}
        for source, finished, key in by_identity.get(_identity(row.spec), []):
            versions.setdefault((source.code, _version(source.spec)), []).append((finished, key))
        if len(versions) > 1:
            candidates.append((row, versions))
    keys = {key for _, versions in candidates for made in versions.values() for _, key in made}
    values = _values(store, sorted(keys))
    lines = []
    for row, versions in candidates:
        for metric in shown[row.suite]:
            points = [
                _point(version, made, [values.get((key, metric), np.nan) for _, key in made], level)
                for version, made in versions.items()
            ]
            told = sorted((point for point in points if point.repeats), key=lambda point: (point.finished, point.code))
            if len(told) > 1:
                lines.append(Line(row.suite, row.dataset, row.method, metric, tuple(told)))
    return lines


def _point(
    version: tuple[str, str], made: Sequence[tuple[float, str]], values: Sequence[float], level: float
) -> Point:  # fmt: skip
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    low, high = t_interval(x, level) if len(x) > 1 else (np.nan, np.nan)
    mean = float(x.mean()) if len(x) else np.nan
    return Point(*version, max(finished for finished, _ in made), len(x), mean, float(low), float(high))


def _identity(spec: Mapping[str, Any]) -> str:
    """Return what stays the same from version to version."""
    named = {kind: [spec[kind][0], spec[kind][3]] for kind in ("dataset", "method")}
    # A key that a later version added to the protocol stands at its default in what was run before.
    protocol = _beside(spec["protocol"], DEFAULTS)
    return json.dumps([named, protocol, spec["space"]], sort_keys=True)


def _beside(given: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs from the defaults."""
    own = {}
    for key, value in given.items():
        usual = default.get(key)
        inner = isinstance(value, Mapping) and isinstance(usual, Mapping)
        left = _beside(value, usual) if inner else value  # type: ignore[arg-type]  # both are mappings here
        if left != ({} if inner else usual):
            own[key] = left
    return own


def _version(spec: Mapping[str, Any]) -> str:
    return f"method {spec['method'][2]}, dataset {spec['dataset'][2]}, harness {spec['harness']}"


def _all_cells(store: Store) -> list[tuple[str, Provenance, float]]:
    """Return all results of full provenance, also those that no suite asks for any more."""
    query = select(cells.c.key, cells.c.spec, cells.c.finished, environments.c.content.label("environment"))
    query = query.join(environments, environments.c.hash == cells.c.environment).where(cells.c.status == "ok")
    found = []
    for row in store.database.rows(query.order_by(cells.c.key)):
        source = provenance(row)
        if not source.missing:
            found.append((str(row["key"]), source, float(row["finished"] or 0.0)))
    return found


def _values(store: Store, keys: Sequence[str]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    with store.database.reading() as connection:
        for part in chunks(keys):
            for row in connection.execute(select(metrics).where(metrics.c.key.in_(part))):
                found[row.key, row.metric] = row.value
    return found
