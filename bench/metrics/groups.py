"""Every metric of a forecast within groups of its rows, and of the worst group."""

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.discovery import catalogue
from bench.metrics.forecast import Forecast
from bench.metrics.scoring import score
from bench.spec.names import LONGEST_GROUP, check_name

MOST_GROUPS = 100  # more are rather a number than a group
WORST = "worst-group"  # the condition of the worst value over the groups


def group_names(groups: ArrayLike, rows: int) -> list[str]:
    """Return the names of the groups `[rows]` in sorted order; raises UserError where they cannot be conditions."""
    given = np.asarray(groups)
    if given.shape != (rows,):
        raise UserError(f"groups: expected one name for each of the {rows} rows, got shape {list(given.shape)}")
    names = sorted({str(name) for name in given})
    for name in names:
        if "@" in check_name(name, "groups:", LONGEST_GROUP):
            raise UserError(f"groups: {name!r} cannot name a group: its name has no @")
    if len(names) > MOST_GROUPS:
        raise UserError(f"groups: {len(names)} different names, at most {MOST_GROUPS} can be told apart")
    return names


def score_by_group(
    forecast: Forecast, groups: ArrayLike, requested: Collection[str] = (), names: Collection[str] | None = None
) -> dict[str, float]:
    """Return every metric within each group as `METRIC@group=NAME`, and of the worst group as `METRIC@worst-group`.

    `names`: those metrics alone.

    The worst group is chosen for each metric by itself, and only where all groups have it; a metric without a better
    has none. Sagawa et al., Distributionally Robust Neural Networks, ICLR 2020, report the worst group's accuracy.
    """
    given = np.asarray(groups).astype(str)
    by_group = {
        name: score(forecast.at_rows(given == name), names, requested=requested)
        for name in group_names(groups, forecast.row_count)
    }
    values = {f"{metric}@group={name}": value for name, own in by_group.items() for metric, value in own.items()}
    return values | {f"{metric}@{WORST}": value for metric, value in _worst(by_group).items()}


def _worst(by_group: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    if len(by_group) < 2:
        return {}
    known, parts = catalogue(), list(by_group.values())
    shared = [name for name in parts[0] if known[name].has_better and all(name in own for own in parts)]
    return {name: max((own[name] for own in parts), key=known[name].loss) for name in shared}
