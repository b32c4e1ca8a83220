"""The catalogue of metrics: the built-in ones, those that installed packages declare, and those of plug-in files.

The metrics of a file belong to the run, report or gate that was given the file, not to the process: `using_metrics`
makes a catalogue the current one for a block, in this thread of execution only.
"""

import functools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

from bench.errors import UserError, raise_if_stop, unknown_name
from bench.metrics import (
    calibration,
    classification,
    cost,
    crps,
    detection,
    intervals,
    public_code,
    quantile_scores,
    quantiles,
    regression,
    robustness,
    selective,
    sets,
    truth,
    uncertainty,
    variance_calibration,
)
from bench.metrics.metric import Metric

GROUP = "bench.metrics"
_REGRESSION = (regression, crps, intervals, quantiles, quantile_scores, variance_calibration)
_CLASSIFICATION = (classification, calibration, selective, detection, uncertainty, sets)
_PARTS = (*_REGRESSION, *_CLASSIFICATION, robustness, cost, public_code, truth)
BUILT_IN: tuple[Metric, ...] = tuple(metric for part in _PARTS for metric in part.METRICS)


Declared = tuple[Metric, str]  # a metric, and who declares it
_current: ContextVar[Mapping[str, Metric] | None] = ContextVar("current", default=None)


def catalogue() -> dict[str, Metric]:
    """Return every metric by name: built-in ones, entry points of group "bench.metrics", and the files of this run.

    Sorted by family, then name. Installed packages are searched once per process.
    """
    current = _current.get()
    return dict(_installed() if current is None else current)


@contextmanager
def using_metrics(metrics: Mapping[str, Metric]) -> Iterator[None]:
    """Use these metrics as the catalogue inside the block; it must not yield to other code."""
    token = _current.set(metrics)
    try:
        yield
    finally:
        _current.reset(token)


def condition(name: str) -> str:
    """Return the condition that a stored metric's name states: 'accuracy@fog:3' is the accuracy under 'fog:3'."""
    return name.partition("@")[2]


def find_declaration(name: str) -> Metric | None:
    """Return the declaration of a stored metric (`name` or `name@condition`), or None where nobody declares it."""
    found = catalogue().get(name.partition("@")[0])
    return replace(found, name=name) if found else None


def declaration(name: str) -> Metric:
    """Return the declaration of a stored metric (`name` or `name@condition`); raise UserError where there is none."""
    found = find_declaration(name)
    if found is None:
        raise unknown_name("metric", name.partition("@")[0], catalogue())
    return found


def assemble_with(files: Sequence[Declared]) -> dict[str, Metric]:
    """Return the installed metrics and those of plug-in files; a mistake in a file raises UserError."""
    if not files:
        return _installed()
    metrics = _by_name([*_declared_by_installed(), *files])
    for metric, origin in files:
        if metric.relative_to is not None and metric.relative_to not in metrics:
            raise unknown_name("metric", metric.relative_to, metrics, f"{origin}: metric {metric.name!r}: relative_to")
    return _without_orphans(metrics)


@functools.cache
def _installed() -> dict[str, Metric]:
    return _without_orphans(_by_name(_declared_by_installed()))


@functools.cache
def _declared_by_installed() -> tuple[Declared, ...]:
    return _declared(BUILT_IN, entry_points(group=GROUP))


def assemble(built_in: Iterable[Metric], points: Iterable[EntryPoint]) -> dict[str, Metric]:
    """Return metrics by name, sorted by family, then name.

    An entry point is a Metric or an iterable of them. One that cannot be loaded, or is something else, is reported as
    a warning and left out; a name declared twice raises UserError naming both origins.
    """
    return _without_orphans(_by_name(_declared(built_in, points)))


def _declared(built_in: Iterable[Metric], points: Iterable[EntryPoint]) -> tuple[Declared, ...]:
    declared = [(metric, "uqbench itself") for metric in built_in]
    for point in points:
        package = point.dist.name if point.dist else "unknown"
        origin = f"entry point {point.name} = {point.value} of package {package}"
        declared += [(metric, origin) for metric in _load(point, origin)]
    return tuple(declared)


def _by_name(declared: Iterable[Declared]) -> dict[str, Metric]:
    metrics: dict[str, Metric] = {}
    origins: dict[str, str] = {}
    for metric, origin in declared:
        if metric.name in metrics:
            raise UserError(f"metric {metric.name!r} is declared twice: by {origins[metric.name]} and by {origin}")
        metrics[metric.name] = metric
        origins[metric.name] = origin
    return dict(sorted(metrics.items(), key=lambda item: (item[1].family, item[0])))


def _without_orphans(metrics: dict[str, Metric]) -> dict[str, Metric]:
    """Return the metrics without those of packages that are relative to one that does not exist, with a warning."""
    orphans = [m for m in metrics.values() if m.relative_to is not None and m.relative_to not in metrics]
    for metric in orphans:
        missing = f"it is relative to {metric.relative_to!r}, which does not exist"
        warnings.warn(f"metric {metric.name!r} is left out: {missing}", stacklevel=3)
    return {name: metric for name, metric in metrics.items() if metric not in orphans}


def _load(point: EntryPoint, origin: str) -> tuple[Metric, ...]:
    try:
        loaded = point.load()
        found = (loaded,) if isinstance(loaded, Metric) else tuple(loaded)
        strangers = [type(item).__name__ for item in found if not isinstance(item, Metric)]
        if strangers:
            raise TypeError(f"expected Metric instances, got {', '.join(strangers)}")
    # Whatever another package raises on import must not affect the other metrics.
    except BaseException as error:
        raise_if_stop(error)
        warnings.warn(f"{origin} is left out: {type(error).__name__}: {error}", stacklevel=3)
        return ()
    return found
