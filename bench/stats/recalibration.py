"""Scores of stored predictions before and after their calibration is corrected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.metrics import Forecast, score
from bench.metrics.kept import Kept
from bench.metrics.recalibration import RAW, recalibrated
from bench.metrics.standard_normal import without_torch

# What corrections are for, one proper score, and what they must not spoil.
REGRESSION = ("nll_mixture", "crps_mixture", "mace", "coverage95", "width95", "interval_score95")
CLASSIFICATION = ("nll_categorical", "brier", "ece", "ece_classwise", "accuracy", "set_coverage", "set_size")
# Intervals and sets of one level: other scores of them would be of a distribution that they do not state.
CONFORMAL = frozenset({"coverage95", "width95", "interval_score95", "set_coverage", "set_size"})
PLACE = ["dataset", "split", "method", "seed"]
LITTLE = 25_000  # draws x rows of a regression whose quantiles are found before torch would be loaded
REPEATS, MOST_CELLS = 5, 600  # fewer repeats of each where there are many methods and datasets
QUANTILES = "isotonic"  # of a regression: the one correction that needs the quantiles of a mixture


def recalibration_frame(
    cells: pd.DataFrame,
    kept: Callable[[str], Kept | None],
    repeats: int | None = None,
    *,
    stored: pd.DataFrame | None = None,
    quick: bool = False,
) -> pd.DataFrame:
    """Return the values of every cell, one row each: its place, key, correction, metric, value.

    `cells` are those of a suite; `kept` returns the predictions of a key; `repeats`: of the first so many repeats of
    each dataset and method. Cells without predictions at validation rows have no row. `stored` has columns key, metric
    and value: raw scores in it are not computed again. `quick` leaves out what takes long: isotonic regression of more
    than 25,000 draws in all (of rows and functions), and raw scores of so many that are not stored.
    """
    rows = []
    done = cells[cells["status"] == "ok"].sort_values(PLACE)
    if repeats is not None:
        done = done[done.groupby(["dataset", "method"]).cumcount() < repeats]
    known = _known(stored, done)
    for *place, key in done[[*PLACE, "key"]].itertuples(index=False):
        one = kept(key)
        if one is None:
            continue
        little = one.test.task == "classification" or one.test.draws.size <= LITTLE
        with without_torch(little or quick):
            for correction, forecast in recalibrated(one, () if little or not quick else (QUANTILES,)).items():
                values = _scores(forecast, correction, known.get(key, {}), compute=little or not quick)
                rows += [(*place, key, correction, name, value) for name, value in values.items()]
    return pd.DataFrame(rows, columns=[*PLACE, "key", "correction", "metric", "value"])


def _known(stored: pd.DataFrame | None, cells: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the stored raw scores of each cell."""
    if stored is None:
        return {}
    own = stored[stored["metric"].isin([*REGRESSION, *CLASSIFICATION]) & stored["key"].isin(cells["key"])]
    return {str(key): dict(zip(part["metric"], part["value"], strict=True)) for key, part in own.groupby("key")}


def _scores(forecast: Forecast, correction: str, known: Mapping[str, float], *, compute: bool) -> dict[str, float]:
    """Return the scores of a forecast; raw ones from those that are known, the others where they are to be computed."""
    names = CLASSIFICATION if forecast.task == "classification" else REGRESSION
    shown = [name for name in names if correction != "conformal" or name in CONFORMAL]
    if correction != RAW:
        return score(forecast, shown)
    computed = score(forecast, [name for name in shown if name not in known]) if compute else {}
    both = {**computed, **known}
    return {name: both[name] for name in shown if name in both}


@dataclass(frozen=True)
class Scaling:
    """The correction of one task that is shown beside raw values, and the metric that shows what it changes."""

    metric: str
    correction: str
    title: str


SCALINGS = {
    "classification": Scaling("ece", "temperature", "temperature scaling"),
    "regression": Scaling("mace", "variance scaling", "variance scaling"),
}


@dataclass(frozen=True)
class Recalibrations:
    """Corrected values of a suite, of the first repeats of each dataset and method."""

    repeats: int
    values: pd.DataFrame  # as `recalibration_frame` returns it

    @property
    def fitted_on(self) -> str:
        """What the corrections are fitted on, in words."""
        return f"the validation rows of {_first(self.repeats)}"

    def column(self, task: str, datasets: Sequence[str]) -> "ScaledColumn | None":
        """Return the means over datasets before and after the scaling of a task; None where nothing was fitted.

        A method counts with values on all datasets that have any: means over other datasets cannot be compared.
        """
        scaling = SCALINGS.get(task)
        if scaling is None:
            return None
        rows = self.values[(self.values["metric"] == scaling.metric) & self.values["dataset"].isin(datasets)]
        chosen = rows[rows["correction"].isin([RAW, scaling.correction])]
        means = chosen.groupby(["method", "dataset", "correction"], sort=False)["value"].mean().unstack("correction")
        if not {RAW, scaling.correction} <= set(means.columns):
            return None
        complete = means.dropna()
        count = complete.groupby("method").size()
        pairs = complete.groupby("method", sort=False)[[RAW, scaling.correction]].mean()
        whole = pairs[count.reindex(pairs.index) == rows["dataset"].nunique()]
        found = {str(method): (float(raw), float(scaled)) for method, raw, scaled in whole.itertuples()}
        return ScaledColumn(scaling, self.repeats, found) if found else None


@dataclass(frozen=True)
class ScaledColumn:
    """Raw values and scaled ones of each method, of the same repeats: a column of a table beside raw values.

    They are no results of a method, because early stopping and the observation noise have seen the rows of the fit:
    never bold, and no ranking or test reads them.
    """

    scaling: Scaling
    repeats: int  # the first so many
    pairs: Mapping[str, tuple[float, float]]  # by method

    @property
    def name(self) -> str:
        """The head of the column."""
        return f"recalibrated {self.scaling.metric}"

    @property
    def note(self) -> str:
        """What the column is, for its head and for captions."""
        return f"{self.scaling.metric} raw → {self.after}"

    @property
    def after(self) -> str:
        """What the scaled values are."""
        rows = f"the validation rows of {_first(self.repeats)}"
        return f"after {self.scaling.title} fitted on {rows}; no result of the method itself, and not ranked"

    @property
    def parts(self) -> tuple[str, str]:
        """What the two numbers of a method are, for a file."""
        metric = self.scaling.metric
        return f"{metric} raw, {_first(self.repeats)}", f"{metric} after {self.scaling.title}"


def _first(repeats: int) -> str:
    return "the first repeat" if repeats == 1 else f"the first {repeats} repeats"


def recalibrations(
    cells: pd.DataFrame,
    kept: Callable[[str], Kept | None],
    stored: pd.DataFrame | None = None,
    corrected: pd.DataFrame | None = None,
) -> Recalibrations:
    """Return the corrected values of a suite: all that are kept, or of as many repeats as are read in a few seconds."""
    if corrected is not None and not corrected.empty:
        own = corrected[corrected["key"].isin(cells["key"])]
        repeats = own.groupby(["dataset", "method"])["key"].nunique().max() if len(own) else 0
        return Recalibrations(int(repeats), own[[*PLACE, "key", "correction", "metric", "value"]])
    groups = max(len(cells.groupby(["dataset", "method"])), 1)
    repeats = max(1, min(REPEATS, MOST_CELLS // groups))
    values = recalibration_frame(cells, kept, repeats, stored=stored, quick=True)
    read = values.drop_duplicates("key").groupby(["dataset", "method"]).size()
    return Recalibrations(int(read.max()) if len(read) else repeats, values)
