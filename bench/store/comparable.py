"""Which methods of a suite may be compared: those with the same rows, protocol and versions of the metrics.

Merged stores may name different things alike: a table that has changed since, an edited suite, an older uqbench. On
each dataset the methods are held against the form that most of them have, the baseline's where as many have another.
"""

import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.errors import UserError
from bench.spec.plugin import SUBMITTED
from bench.spec.spec import CellSpec, spec_or_none

OF_METHODS = ("training", "network", "grid")  # the parts of a protocol that a suite may change for one method
ROWS = "other rows: the fingerprints of its data differ"
HARNESS = "another version of the harness, which gives other numbers"
PROTOCOL = "another protocol"
METRICS = "other versions of metrics"


@dataclass(frozen=True)
class Difference:
    """Why a method on a dataset may not be compared with the others there."""

    dataset: str
    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.dataset}: {self.method} has {self.reason}"


def differences(
    cells: Iterable[Mapping[Any, Any]], baseline: str | None, methods: Collection[str] = ()
) -> list[Difference]:
    """Return the methods that may not be compared with the others on their dataset, of all or of these methods.

    `cells` are rows of `Store.cells`; those without a result, or whose specification cannot be read, say nothing.
    """
    forms: dict[str, dict[str, dict[str, set[Any]]]] = {}
    for cell in cells:
        spec = spec_or_none(cell["spec"]) if cell["status"] in ("ok", "diverged") else None
        if spec is None or (methods and cell["method"] not in methods):
            continue
        own = forms.setdefault(str(cell["dataset"]), {}).setdefault(str(cell["method"]), {})
        for reason, form in _forms(spec, cell["training"]):
            own.setdefault(reason, set()).add(form)
    found = []
    for dataset, by_method in sorted(forms.items()):
        for reason in (ROWS, HARNESS, PROTOCOL, METRICS):
            found += [Difference(dataset, name, reason) for name in _odd(by_method, reason, baseline)]
    return found


def require_comparable(
    cells: Iterable[Mapping[Any, Any]], baseline: str | None, methods: Collection[str] = ()
) -> list[Difference]:
    """Return in what methods differ that readers should know; raise UserError where their values cannot be paired."""
    found = differences(cells, baseline, methods)
    if refused := [each for each in found if each.reason in (ROWS, HARNESS)]:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise UserError(f"not comparable: {refused[0]}{more}; run it again on the same rows, or leave it out")
    return found


def _forms(spec: CellSpec, training: Any) -> Iterable[tuple[str, Any]]:
    """Yield what the methods of a dataset must have in common, by the reason that a difference is."""
    yield ROWS, (spec.split, spec.seed, spec.data)
    yield HARNESS, spec.harness
    if spec.method.origin != SUBMITTED:  # of a submission nobody knows the protocol, and its mark says so
        shared = {key: value for key, value in spec.plain()["protocol"].items() if key not in OF_METHODS}
        yield PROTOCOL, json.dumps(shared, sort_keys=True)
    record = json.loads(training) if isinstance(training, str) and '"metric_versions"' in training else {}
    yield METRICS, json.dumps([spec.metrics, record.get("metric_versions", {})], sort_keys=True)


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
