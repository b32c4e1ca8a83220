"""Recalibration: calibration as it is, and after corrections that are fitted on stored validation predictions."""

from dataclasses import dataclass

import pandas as pd

from bench.api import Block, Report, Results, Section, Table, Text, catalogue
from bench.reports._recalibrated import recalibrations
from bench.reports._words import arrow, methods_of

RAW = "raw"


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
    caption = f"{dataset}: {metric} {arrow(declared)}".rstrip() + ", raw and corrected"
    data = table.rename_axis("method").reset_index()
    data.columns = pd.Index([str(name) for name in data.columns])
    return Table(caption, data, name=f"recalibration-{dataset}-{metric}", folded=metric not in FIRST)


FIRST = frozenset({"mace", "ece", "nll_mixture", "nll_categorical"})  # open; the others are folded
