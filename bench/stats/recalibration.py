"""Scores of stored predictions before and after their calibration is corrected."""

from collections.abc import Callable

import pandas as pd

from bench.metrics import score
from bench.metrics.kept import Kept
from bench.metrics.recalibration import recalibrated

# What corrections are for, one proper score, and what they must not spoil.
REGRESSION = ("nll_mixture", "crps_mixture", "quantile_error", "coverage95", "width95", "interval_score95")
CLASSIFICATION = ("nll_categorical", "brier", "ece", "ece_classwise", "accuracy", "set_coverage", "set_size")
# Intervals and sets of one level: other scores of them would be of a distribution that they do not state.
CONFORMAL = frozenset({"coverage95", "width95", "interval_score95", "set_coverage", "set_size"})
PLACE = ["dataset", "split", "method", "seed"]


def recalibration_frame(
    cells: pd.DataFrame, kept: Callable[[str], Kept | None], repeats: int | None = None
) -> pd.DataFrame:
    """Return the values of every cell, one row each: its place, key, correction, metric, value.

    `cells` are those of a suite; `kept` returns the predictions of a key; `repeats`: of the first so many repeats of
    each dataset and method. Cells without predictions at validation rows have no row.
    """
    rows = []
    done = cells[cells["status"] == "ok"].sort_values(PLACE)
    if repeats is not None:
        done = done[done.groupby(["dataset", "method"]).cumcount() < repeats]
    for *place, key in done[[*PLACE, "key"]].itertuples(index=False):
        one = kept(key)
        for correction, forecast in ({} if one is None else recalibrated(one)).items():
            names = CLASSIFICATION if forecast.task == "classification" else REGRESSION
            shown = [name for name in names if correction != "conformal" or name in CONFORMAL]
            rows += [(*place, key, correction, name, value) for name, value in score(forecast, shown).items()]
    return pd.DataFrame(rows, columns=[*PLACE, "key", "correction", "metric", "value"])
