"""What probes share that score one cell under many conditions."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

ALL = "all"  # the mean over the shifts of one severity, and the clean test rows as severity 0


def conditioned(metrics: Mapping[str, float], condition: str) -> dict[str, float]:
    """Return the metrics without a condition, under this one."""
    return {f"{name}@{condition}": value for name, value in metrics.items() if "@" not in name}


def means(values: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean over shifts of each metric that all of them have.

    A mean over some would be a mean over others for another method: where nothing was wrong under one corruption,
    `error_auroc` has no value there and no mean.
    """
    shared = [name for name in values[0] if all(name in each for each in values)]
    found = {name: float(np.mean([each[name] for each in values])) for name in shared}
    return {name: value for name, value in found.items() if not math.isnan(value)}
