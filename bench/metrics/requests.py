"""Metrics on request: which of them a suite asks for, and how a cell's key says so."""

from collections.abc import Iterable, Mapping

from bench.metrics.metric import Metric
from bench.spec.spec import ON_REQUEST


def requested_metrics(named: Iterable[str], metrics: Mapping[str, Metric]) -> frozenset[str]:
    """Return the metrics on request among some names; of a relative metric, the one that it is a difference of."""
    known = [metrics[bare] for name in named if (bare := name.partition("@")[0]) in metrics]
    wanted = {metric.relative_to or metric.name for metric in known}
    return frozenset(name for name in wanted if metrics[name].on_request)


def scored_by(named: Iterable[str], metrics: Mapping[str, Metric], files: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a cell's key that says by which metrics it is scored, beside those that score every cell.

    These are the metrics of plug-in files, with the hash of their file, and those on request that are named. A metric
    changes no other number, but a cell that was stored without it must not pass for one that has it.
    """
    requested = requested_metrics(named, metrics)
    own = {name: file for name, file in files.items() if name in requested or not metrics[name].on_request}
    return own | dict.fromkeys(sorted(requested - own.keys()), ON_REQUEST)
