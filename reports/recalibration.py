"""Recalibration: calibration as it is, and after corrections that are fitted on stored validation predictions."""

import math
from dataclasses import dataclass

import pandas as pd

from bench.api import Block, Metric, Report, Results, Section, Table, Text, catalogue, plural
from bench.reports._recalibrated import recalibrations
from bench.reports._words import arrow, decimals, methods_of, rounded

RAW = "raw"
FIRST = frozenset({"mace", "ece", "nll_mixture", "nll_categorical"})  # open; the others are folded


@dataclass(frozen=True)
class Recalibration(Report):
    """One table per dataset and metric: methods as rows, the raw value and one column per correction."""

    order = 28
    datasets: int = 6

    def section(self, results: Results) -> Section | None:
        """Return the tables, or None where no validation predictions are stored."""
        found = recalibrations(results)
        if found.values.empty:
            return None
        every = sorted(found.values["dataset"].unique())
        values = found.values[found.values["dataset"].isin(every[: self.datasets])]
        blocks: list[Block] = []
        for (dataset, metric), rows in values.groupby(["dataset", "metric"], sort=False):
            if (table := _table(str(dataset), str(metric), rows, methods_of(values))) is not None:
                blocks.append(table)
        introduction = (
            f"Means of stored predictions, raw and with a correction fitted on {found.fitted_on} (variance or "
            "temperature and vector scaling, isotonic regression, split conformal intervals or sets of 95 %). Early "
            "stopping and the observation noise have seen these rows, too, so a corrected value is no result of a "
            "method: rankings and tests use raw values alone."
        )
        regression = values[values["metric"] == "mace"]
        skipped = set(regression["dataset"]) - set(regression[regression["correction"] == "isotonic"]["dataset"])
        introduction += f" Without isotonic regression, which takes long there: {', '.join(sorted(skipped))}." * bool(
            skipped
        )
        rest = len(every) - self.datasets
        more = f" {rest} more datasets are not shown." * (rest > 0)
        return Section("Recalibration after the fact", [Text(introduction + more), *blocks])


def _table(dataset: str, metric: str, rows: pd.DataFrame, methods: list[str]) -> Table | None:
    means = rows.groupby(["method", "correction"])["value"].mean().unstack("correction")
    order = [name for name in dict.fromkeys(rows["correction"]) if name in means.columns]
    if order == [RAW]:
        return None
    columns = [*([RAW] if RAW in order else []), *(name for name in order if name != RAW)]
    present = [method for method in methods if method in means.index]
    table = means.reindex(index=present, columns=columns)
    declared = catalogue()[metric]
    corrections = [name for name in columns if name != RAW]
    caption = f"{dataset}: {metric} {arrow(declared)}".rstrip()
    caption += f", raw and corrected{_finding(declared, table, corrections)}" if RAW in order else ", corrected"
    places = decimals((), table.to_numpy().ravel())  # the same in all columns: rows are compared across them
    texts = table.map(lambda value: str(value) if math.isinf(value) else rounded(value, places))
    whole, shown = (each.rename_axis("method").rename_axis(None, axis=1).reset_index() for each in (table, texts))
    name = f"recalibration-{dataset}-{metric}"
    return Table(caption, shown, name=name, numbers=whole, folded=metric not in FIRST)


def _finding(metric: Metric, table: pd.DataFrame, corrections: list[str]) -> str:
    """Return for how many methods each correction has a better mean than the raw predictions."""
    if RAW not in table or not metric.has_better or metric.only_with:
        return ""
    losses = table.map(metric.loss)
    counts = [f"{name} for {int((losses[name] < losses[RAW]).sum())}" for name in corrections]
    return f"; better mean than raw, of {plural(len(table), 'method')}: {', '.join(counts)} (not tested)"
