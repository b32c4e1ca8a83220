"""Which methods of a suite may be compared: those with the same rows, protocol and versions of the metrics.

Merged stores may name different things alike: a table that has changed since, an edited suite, an older uqbench. On
each dataset the methods are held against the form that most of them have, the baseline's where as many have another.
"""

import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlalchemy import select

from bench.errors import UserError
from bench.spec.plugin import SUBMITTED
from bench.spec.spec import ON_REQUEST, CellSpec, spec_or_none
from bench.store.store import Store
from bench.store.tables import rescored

OF_METHODS = ("training", "network", "grid")  # the parts of a protocol that a suite may change for one method
ROWS = "other rows: the fingerprints of its data differ"
HARNESS = "another version of the harness, which gives other numbers"
PROTOCOL = "another protocol"
METRICS = "other versions of metrics"
ADVICE = {
    ROWS: "run it again on the same rows",
    HARNESS: "run it again",
    PROTOCOL: "run it again under the same suite",
    METRICS: "'uqbench rescore' brings values up to date where predictions are stored",
}
FIRST = "1"  # the version of a metric that is not stated
Versions = Mapping[str, Mapping[str, str]]  # by the key of a cell, then by metric


@dataclass(frozen=True)
class Difference:
    """Why a method on a dataset may not be compared with the others there."""

    dataset: str
    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.dataset}: {self.method} has {self.reason}"


def rescored_versions(store: Store) -> Versions:
    """Return the versions of metrics that were computed anew from stored predictions, by the key of their cell."""
    found: dict[str, dict[str, str]] = {}
    with store.database.reading() as connection:
        for key, metric, version in connection.execute(select(rescored.c.key, rescored.c.metric, rescored.c.version)):
            found.setdefault(key, {})[metric] = str(version)
    return found


def differences(
    cells: Iterable[Mapping[Any, Any]],
    baseline: str | None,
    methods: Collection[str] = (),
    metrics: Collection[str] | None = None,
    versions: Versions = MappingProxyType({}),
) -> list[Difference]:
    """Return the methods that may not be compared with the others on their dataset, of all or of these methods.

    `cells` are rows of `Store.cells`; those without a result, or whose specification cannot be read, say nothing.
    Versions are compared of these metrics (None: all), as the run states them or `rescored_versions` does.
    """
    forms: dict[str, dict[str, dict[str, set[Any]]]] = {}
    bases = None if metrics is None else {name.partition("@")[0] for name in metrics}
    for cell in cells:
        spec = spec_or_none(cell["spec"]) if cell["status"] in ("ok", "diverged") else None
        if spec is None or (methods and cell["method"] not in methods):
            continue
        own = forms.setdefault(str(cell["dataset"]), {}).setdefault(str(cell["method"]), {})
        for reason, form in _forms(spec):
            own.setdefault(reason, set()).add(form)
        if cell["status"] == "ok":
            stated = _versions(spec, cell["training"]) | dict(versions.get(cell.get("key", ""), {}))
            later = {n: v for n, v in stated.items() if v != FIRST and (bases is None or n in bases)}
            own.setdefault(METRICS, set()).add(frozenset(later.items()))
    found = []
    for dataset, by_method in sorted(forms.items()):
        for reason in ADVICE:
            found += [Difference(dataset, name, reason) for name in _odd(by_method, reason, baseline)]
    return found


def require_comparable(
    cells: Iterable[Mapping[Any, Any]],
    baseline: str | None,
    methods: Collection[str] = (),
    metrics: Collection[str] | None = None,
    versions: Versions = MappingProxyType({}),
) -> None:
    """Raise UserError where the values of methods may not be compared; see `differences`."""
    if refused := differences(cells, baseline, methods, metrics, versions):
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        advice = ADVICE[refused[0].reason]
        raise UserError(f"not comparable: {refused[0]}{more}; {advice}, or leave it out")


def _forms(spec: CellSpec) -> Iterable[tuple[str, Any]]:
    """Yield what the methods of a dataset must have in common, by the reason that a difference is."""
    yield ROWS, (spec.split, spec.seed, spec.data)
    yield HARNESS, spec.harness
    if spec.method.origin != SUBMITTED:  # of a submission nobody knows the protocol, and its mark says so
        shared = {key: value for key, value in spec.plain()["protocol"].items() if key not in OF_METHODS}
        yield PROTOCOL, json.dumps(shared, sort_keys=True)


def _versions(spec: CellSpec, training: Any) -> dict[str, str]:
    """Return the versions of the metrics of a cell that are not the first: numbers, or hashes of files."""
    record = json.loads(training) if isinstance(training, str) and '"metric_versions"' in training else {}
    by_file = {name: file for name, file in spec.metrics.items() if file != ON_REQUEST}
    return {name: str(version) for name, version in record.get("metric_versions", {}).items()} | by_file


def _odd(by_method: Mapping[str, Mapping[str, set[Any]]], reason: str, baseline: str | None) -> list[str]:
    """Return the methods that have not the form of most; rows are compared where split and seed are the same."""
    forms = {method: own[reason] for method, own in by_method.items() if reason in own}
    if reason == ROWS:
        odd: dict[str, None] = {}
        places: dict[Hashable, dict[str, Hashable]] = {}
        for method, own in forms.items():
            for split, seed, data in own:
                places.setdefault((split, seed), {})[method] = data
        for at in places.values():
            odd |= dict.fromkeys(_minority(at, baseline))
        return sorted(odd)
    return _minority({method: frozenset(own) for method, own in forms.items()}, baseline)


def _minority(forms: Mapping[str, Hashable], baseline: str | None) -> list[str]:
    counts = Counter(forms.values())
    if len(counts) < 2:
        return []
    usual = max(counts, key=lambda form: (counts[form], forms.get(baseline or "") == form))
    return sorted(method for method, form in forms.items() if form != usual)
