"""Why a method has no value of a metric: the reasons that were stored with its cells."""

import json
from collections.abc import Mapping, Sequence

import pandas as pd

from bench.api import Metric

Gaps = Sequence[tuple[str, Metric]]  # a method and a metric that it has no value of


def explain(cells: pd.DataFrame, dataset: str, gaps: Gaps) -> str:
    """Return one sentence with the reasons for the gaps in a dataset's table; empty where none is known."""
    if not gaps or "training" not in cells:
        return ""
    own = cells[cells["dataset"] == dataset]
    known = {method: _reasons(own[own["method"] == method]["training"]) for method in {method for method, _ in gaps}}
    found: dict[str, dict[str, list[str]]] = {}  # by reason and method
    for method, metric in gaps:
        base = (metric.relative_to or metric.name).partition("@")[0]
        if base in known[method]:
            found.setdefault(known[method][base], {}).setdefault(method, []).append(metric.name)
    told = [
        f"{', '.join(names)} of {', '.join(methods)}: {why}"
        for why, by_method in found.items()
        for names, methods in _shared(by_method).items()
    ]
    return f"Without a value (–): {'; '.join(told)}." if told else ""


def _reasons(trainings: "pd.Series[str]") -> dict[str, str]:
    """Return the reason of each metric, from the first cell that has one."""
    reasons: dict[str, str] = {}
    for text in trainings.dropna():
        for why, names in json.loads(text).get("left_out", {}).items():
            for name in names:
                reasons.setdefault(name, why)
    return reasons


def _shared(by_method: Mapping[str, list[str]]) -> dict[tuple[str, ...], list[str]]:
    """Return the methods by the metrics that they lack."""
    shared: dict[tuple[str, ...], list[str]] = {}
    for method, names in by_method.items():
        shared.setdefault(tuple(names), []).append(method)
    return shared
