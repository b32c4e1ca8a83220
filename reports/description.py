"""What predictions look like by metrics of which no value is better: entropy, disagreement of draws, sizes of sets."""

from dataclasses import dataclass

import pandas as pd

from bench.api import Block, Report, Results, Section, Table, Text, catalogue, stats
from bench.reports._words import decimals, with_spread


@dataclass(frozen=True)
class Description(Report):
    """One table per dataset: mean and standard deviation over the seeds, with the number of draws."""

    order = 26

    def section(self, results: Results) -> Section | None:
        """Return the tables, or None where no such metric is stored."""
        described = [metric for metric in catalogue().values() if not metric.has_better]
        rows = results.frame[results.frame["metric"].isin([metric.name for metric in described])]
        if rows.empty:
            return None
        biased = [metric.name for metric in described if metric.biased_in_draws and metric.name in set(rows["metric"])]
        introduction = (
            "These values say what predictions are like, not how good they are: none is better, so nothing is ranked "
            "or marked. Mean ± standard deviation over the seeds; T is the number of drawn functions."
        )
        if biased:
            introduction += f" Compare rows of equal T only: {', '.join(biased)} grow with T by their very definition."
        counts = stats.CellCounts.of(results.cells)
        blocks: list[Block] = [Text(introduction)]
        blocks += [_table(str(dataset), own, counts) for dataset, own in rows.groupby("dataset", sort=True)]
        return Section("Description of the predictions", blocks)


def _table(dataset: str, rows: pd.DataFrame, counts: stats.CellCounts) -> Table:
    groups = rows.groupby(["method", "metric"], sort=False)["value"]
    numbers = pd.DataFrame({"mean": groups.mean(), "standard_deviation": groups.std(), "seeds": groups.size()})
    places = {
        metric: decimals(own["standard_deviation"], own["mean"]) for metric, own in numbers.groupby(level="metric")
    }
    texts = [
        with_spread(mean, spread, places[metric])
        for (_, metric), mean, spread in numbers[["mean", "standard_deviation"]].itertuples()
    ]
    table = pd.Series(texts, index=numbers.index).unstack("metric").fillna("–")
    table = table.reindex(index=list(dict.fromkeys(rows["method"])), columns=sorted(table.columns)).reset_index()
    table.insert(1, "T", [_draws(counts, dataset, str(method)) for method in table["method"]])
    return Table(dataset, table, name=f"description-{dataset}", numbers=numbers.reset_index(), folded=True)


def _draws(counts: stats.CellCounts, dataset: str, method: str) -> str:
    return " or ".join(str(count) for count in sorted(counts.draws(dataset, method))) or "–"
