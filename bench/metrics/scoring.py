"""Compute all metrics that apply to a forecast."""

import math
import traceback
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from bench.errors import UserError, raise_if_stop, unknown_name
from bench.metrics.discovery import catalogue
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric

HERE = Path(__file__).parent


class MetricError(UserError):
    """A metric that raised, or returned something other than a number."""


def left_out(forecast: Forecast, requested: Collection[str] = ()) -> dict[str, str]:
    """Return why each metric of the forecast's task that a forecast can have does not apply to this one."""
    reasons = {name: metric.unmet(forecast) for name, metric in _of_task(forecast, requested).items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def reasons_without_value(
    forecast: Forecast, values: Mapping[str, float], requested: Collection[str] = ()
) -> dict[str, list[str]]:
    """Return the metrics of the forecast's task that are not among its values, by the reason; compact to store."""
    reasons = left_out(forecast, requested)
    for name in _of_task(forecast, requested):
        if name not in values:
            reasons.setdefault(name, "it is undefined on this data")
    grouped: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        grouped.setdefault(reason, []).append(name)
    return grouped


def _of_task(forecast: Forecast, requested: Collection[str]) -> dict[str, Metric]:
    """Return the metrics that a forecast of this task can have: those on request only where they are requested."""
    return {
        name: metric
        for name, metric in catalogue().items()
        if metric.compute is not None
        and metric.task in ("any", forecast.task)
        and (name in requested or not metric.on_request)
    }


def score(
    forecast: Forecast, names: Iterable[str] | None = None, *, requested: Collection[str] = ()
) -> dict[str, float]:
    """Return the value of every applicable metric, or of those of `names` that apply, in the catalogue's order.

    Metrics on request are among them where they are `requested`, or in `names`.

    A metric is left out, never replaced by a default, where its task is another, its needs are not met (T = 1, no
    noise fitted, no scale, relative to a baseline; see `left_out`), or its value is undefined on this data (NaN).
    Infinity is a value.
    """
    wanted = None if names is None else set(names)
    for name in sorted((wanted or set()) - catalogue().keys()):
        raise unknown_name("metric", name, catalogue())
    values: dict[str, float] = {}
    for name, metric in _of_task(forecast, requested if wanted is None else wanted).items():
        if (wanted is not None and name not in wanted) or not metric.applies_to(forecast):
            continue
        value = compute(metric, forecast)
        if not math.isnan(value):
            values[name] = value
    return values


def compute(metric: Metric, forecast: Forecast) -> float:
    """Return the value of one metric; raise MetricError with metric, file and line where it cannot be computed."""
    assert metric.compute is not None, "metrics of probes and relative ones are not computed from a forecast"
    try:
        value = metric.compute(forecast)
    except BaseException as error:  # of any type: a metric may be a plug-in
        raise_if_stop(error)
        reason = " ".join(str(error).split())
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        raise MetricError(f"metric {metric.name!r}: {kind}{reason}{_place(error)}") from error
    try:
        return float(value)
    except (TypeError, ValueError):
        code = getattr(metric.compute, "__code__", None)
        place = f" ({Path(code.co_filename).name}, line {code.co_firstlineno})" if code else ""
        raise MetricError(
            f"metric {metric.name!r}: it must return one number, got a {type(value).__name__}{place}"
        ) from None


def _place(error: BaseException) -> str:
    """Return file and line of the last call outside of this package; inside of it where there is no other."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is `compute` itself
    own = [
        frame for frame in frames if HERE not in Path(frame.filename).parents and "site-packages" not in frame.filename
    ]
    chosen = (own or frames)[-1:]
    return "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in chosen)
