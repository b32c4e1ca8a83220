"""The catalogue of metrics: the built-in ones and those that installed packages declare."""

import functools
import warnings
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

from bench.errors import UserError, unknown_name
from bench.metrics import (
    calibration,
    classification,
    cost,
    crps,
    detection,
    intervals,
    quantiles,
    regression,
    robustness,
    selective,
    sets,
    uncertainty,
)
from bench.metrics.metric import Metric

GROUP = "bench.metrics"
_REGRESSION = (regression, crps, intervals, quantiles)
_CLASSIFICATION = (classification, calibration, selective, detection, uncertainty, sets)
_PARTS = (*_REGRESSION, *_CLASSIFICATION, robustness, cost)
BUILT_IN: tuple[Metric, ...] = tuple(metric for part in _PARTS for metric in part.METRICS)


def catalogue() -> dict[str, Metric]:
    """Return every metric by name: the built-in ones and the entry points of group "bench.metrics".

    Sorted by family, then name. Installed packages are searched once per process.
    """
    return dict(_installed())


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


@functools.cache
def _installed() -> dict[str, Metric]:
    return assemble(BUILT_IN, entry_points(group=GROUP))


def assemble(built_in: Iterable[Metric], points: Iterable[EntryPoint]) -> dict[str, Metric]:
    """Return metrics by name, sorted by family, then name.

    An entry point is a Metric or an iterable of them. One that cannot be loaded, or is something else, is reported as
    a warning and left out; a name declared twice raises UserError naming both origins.
    """
    metrics: dict[str, Metric] = {}
    origins: dict[str, str] = {}
    declared = [(metric, "uqbench itself") for metric in built_in]
    for point in points:
        package = point.dist.name if point.dist else "unknown"
        origin = f"entry point {point.name} = {point.value} of package {package}"
        declared += [(metric, origin) for metric in _load(point, origin)]
    for metric, origin in declared:
        if metric.name in metrics:
            raise UserError(f"metric {metric.name!r} is declared twice: by {origins[metric.name]} and by {origin}")
        metrics[metric.name] = metric
        origins[metric.name] = origin
    for name, metric in list(metrics.items()):
        if metric.relative_to is not None and metric.relative_to not in metrics:
            warnings.warn(
                f"metric {name!r} of {origins[name]} is left out: it is relative to {metric.relative_to!r}, "
                "which does not exist",
                stacklevel=2,
            )
            del metrics[name]
    return dict(sorted(metrics.items(), key=lambda item: (item[1].family, item[0])))


def _load(point: EntryPoint, origin: str) -> tuple[Metric, ...]:
    try:
        loaded = point.load()
        found = (loaded,) if isinstance(loaded, Metric) else tuple(loaded)
        strangers = [type(item).__name__ for item in found if not isinstance(item, Metric)]
        if strangers:
            raise TypeError(f"expected Metric instances, got {', '.join(strangers)}")
    # Whatever another package raises on import must not affect the other metrics.
    except Exception as error:
        warnings.warn(f"{origin} is left out: {type(error).__name__}: {error}", stacklevel=3)
        return ()
    return found
