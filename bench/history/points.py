"""A series as points: the mean of every version with its interval."""

from dataclasses import dataclass

import numpy as np

from bench.history.series import Series, Version
from bench.metrics import declaration
from bench.stats import cut_interval, t_interval


@dataclass(frozen=True)
class Point:
    """The results of one version."""

    version: Version
    repeats: int
    mean: float
    low: float  # of Student's t over seeds; NaN for a single one
    high: float


def points(series: Series, level: float) -> list[Point]:
    """Return one point per version, the oldest first."""
    found, values = [], declaration(series.metric).value_range
    for version, row in zip(series.versions, series.values, strict=True):
        x = row[np.isfinite(row)]
        ends = t_interval(x, level) if len(x) > 1 else np.full(2, np.nan)
        low, high = cut_interval(ends, x.mean(), values)
        found.append(Point(version, len(x), float(x.mean()), float(low), float(high)))
    return found
