"""Groups of rows: every method within each group of the test rows, and on its worst group."""

from dataclasses import dataclass

import pandas as pd

from bench.api import Block, Metric, Report, Results, Section, Table, Text, catalogue
from bench.reports._words import arrow, methods_of, named, parts_of

GROUP, WORST = "group=", "worst-group"  # the conditions under which values are stored


@dataclass(frozen=True)
class Groups(Report):
    """For each dataset with groups and each of the suite's metrics: means over the seeds by group, and the worst."""

    order = 27
    metrics: int = 4  # where the suite names none

    def section(self, results: Results) -> Section | None:
        """Return the tables, or None where no dataset names groups of rows."""
        rows = named(results.frame, lambda _, condition: condition.startswith(GROUP) or condition == WORST)
        parts = parts_of(rows["metric"])
        rows = rows.assign(base=parts[0], condition=parts[2])
        blocks: list[Block] = []
        for dataset, own in rows.groupby("dataset", sort=True):
            blocks += [_table(str(dataset), own, metric) for metric in self._metrics(results, own)]
        if not blocks:
            return None
        introduction = (
            "Means over the seeds within each group of the test rows. The last column is the mean of the worst group's "
            "value, chosen anew for each seed; a small group is the worst one by chance more often than a large one."
        )
        return Section("Groups of rows", [Text(introduction), *blocks])

    def _metrics(self, results: Results, rows: pd.DataFrame) -> list[Metric]:
        present, known = set(rows["base"]), catalogue()
        named = [name for name in results.metrics if name in present and name in known]
        return [known[name] for name in named or [name for name in known if name in present][: self.metrics]]


def _table(dataset: str, rows: pd.DataFrame, metric: Metric) -> Table:
    own = rows[rows["base"] == metric.name]
    means = own.groupby(["method", "condition"])["value"].mean().unstack("condition")
    groups = sorted(name for name in means.columns if name != WORST)
    columns = [*groups, *([WORST] if WORST in means.columns else [])]
    table = means.reindex(index=methods_of(own), columns=columns)
    table.columns = pd.Index([name.removeprefix(GROUP).replace(WORST, "worst group") for name in columns])
    caption = f"{dataset}: {metric.name} {arrow(metric)}".rstrip() + " by group"
    return Table(caption, table.rename_axis("method").reset_index(), name=f"groups-{dataset}-{metric.name}")
