"""Compute all metrics that apply to a forecast."""

import math
from collections.abc import Iterable

from bench.errors import unknown_name
from bench.metrics.discovery import catalogue
from bench.metrics.forecast import Forecast


def score(forecast: Forecast, names: Iterable[str] | None = None) -> dict[str, float]:
    """Return the value of every applicable metric, or of those of `names` that apply, in the catalogue's order.

    A metric is left out, never replaced by a default, where its task is another, its needs are not met (T = 1, no
    noise fitted, no scale, relative to a baseline), or its value is undefined on this data (NaN). Infinity is a value.
    """
    metrics = catalogue()
    if names is not None:
        wanted = set(names)
        for name in sorted(wanted - metrics.keys()):
            raise unknown_name("metric", name, metrics)
        metrics = {name: metric for name, metric in metrics.items() if name in wanted}
    values: dict[str, float] = {}
    for name, metric in metrics.items():
        if metric.compute is None or not metric.applies_to(forecast):
            continue
        try:
            value = float(metric.compute(forecast))
        except Exception as error:
            error.add_note(f"while computing the metric {name!r}")
            raise
        if not math.isnan(value):
            values[name] = value
    return values
