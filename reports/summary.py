"""One table a dataset: mean and standard deviation over the seeds, the best mean in bold."""

import math
from dataclasses import dataclass

import pandas as pd

from bench.api import Report, Results, Section, Table, Text
from bench.metrics import Metric, catalogue


@dataclass(frozen=True)
class Summary(Report):
    """The numbers of a suite at a glance."""

    order = 10

    def section(self, results: Results) -> Section | None:
        """Return the tables, or None where nothing is stored."""
        frame = results.frame
        if frame.empty:
            return None
        declared = catalogue()
        intro = "Mean ± standard deviation over the seeds. Bold: the best mean; it says nothing about significance."
        if results.baseline:
            intro += f" Relative metrics are differences to {results.baseline} on the same split."
        blocks: list[Text | Table] = [Text(intro)]
        for dataset, rows in frame.groupby("dataset", sort=True):
            present = set(rows["metric"])
            shown = [declared[m] for m in results.metrics if m in present and m in declared]
            shown = shown or [metric for name, metric in declared.items() if name in present]
            blocks.append(_table(str(dataset), rows, shown))
        return Section("Results", blocks)


def _table(dataset: str, rows: pd.DataFrame, metrics: list[Metric]) -> Table:
    methods = list(dict.fromkeys(rows["method"]))
    seeds = rows["seed"].nunique()
    data, bold = {}, set()
    for column, metric in enumerate(metrics, start=1):
        groups = rows[rows["metric"] == metric.name].groupby("method")["value"]
        means, spreads, counts = groups.mean(), groups.std(), groups.size()
        data[f"{metric.name} {arrow(metric)}"] = [
            _cell(means.get(m), spreads.get(m), counts.get(m, 0), seeds) for m in methods
        ]
        losses = {m: metric.loss(float(means[m])) for m in methods if m in means.index}
        best = min((loss for loss in losses.values() if not math.isnan(loss)), default=math.inf)
        if math.isfinite(best) and len(losses) > 1:
            bold |= {(methods.index(m), column) for m, loss in losses.items() if loss == best}
    frame = pd.DataFrame({"method": methods, **data})
    return Table(f"{dataset} ({seeds} {'seed' if seeds == 1 else 'seeds'})", frame, frozenset(bold))


def arrow(metric: Metric) -> str:
    """Return the sign that tells which way is better."""
    return {"lower": "↓", "higher": "↑"}.get(
        metric.direction, f"→ {metric.target:g}" if metric.target is not None else ""
    )


def _cell(mean: float | None, spread: float | None, count: int, seeds: int) -> str:
    if mean is None:
        return "–"
    fewer = f" ({count} of {seeds})" if count < seeds else ""  # the others failed, diverged or have no value
    if spread is None or math.isnan(spread):
        return f"{mean:.4g}{fewer}"
    return f"{mean:.4g} ± {spread:.2g}{fewer}"
