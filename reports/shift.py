"""Under shift: metrics against the severity of a corruption, and the detection of data from elsewhere."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bench.api import Array, Block, Figure, Metric, Report, Results, Section, Table, Text, catalogue, style
from bench.reports._highlights import about_grey, highlighted, line_of
from bench.reports._lost_cells import best_method, lost_cells
from bench.reports._words import arrow, band, better_in_words, labelled, methods_of, named, parts_of, with_spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CORRUPTION = re.compile(r"(?P<corruption>[^:,=@]+):(?P<severity>\d+(?:\.\d+)?)")
DETECTION = [f"ood_{kind}{by}" for by in ("", "_mutual_information") for kind in ("auroc", "aupr", "fpr95")]
Point = tuple[str, float, float, float, float]  # method, severity, mean, low, high
ALL = "all"  # the name under which means over corruptions are stored, and the clean test set as severity 0


@dataclass(frozen=True)
class Shift(Report):
    """Curves over severity for each metric (mean over corruptions), and tables of each corruption."""

    order = 28
    subject = True
    metrics: int = 4
    corruptions: int = 6  # panels of the first metric

    def section(self, results: Results) -> Section | None:
        """Return curves and tables for each dataset that was shifted, or None."""
        rows = shifted(results.frame)
        blocks: list[Block] = []
        lost = lost_cells(results)
        for dataset, own in rows.groupby("dataset", sort=True):
            metrics = _metrics(results, own)
            gone, shown = lost.get(str(dataset), set()), metrics[: self.metrics]
            blocks.append(_mean_figure(str(dataset), own, shown, gone, results.baseline))
            if len(_corruptions(own)) > 1:
                blocks.append(self._corruption_figure(str(dataset), own, metrics[0], results.baseline))
            blocks.append(_table(str(dataset), own, metrics))
        blocks += _detection(results.frame)
        if not blocks:
            return None
        introduction = (
            "Severity 0 is the clean test set. What to look for: accuracy falls for every method; a method is worth "
            "its draws where its calibration suffers less, and where its uncertainty tells foreign data from its own."
        )
        return Section("Under shift", [Text(introduction), *blocks])

    def _corruption_figure(self, dataset: str, rows: pd.DataFrame, metric: Metric, baseline: str | None) -> Figure:
        own = rows[rows["base"] == metric.name]
        names, clean = _corruptions(own), (own["corruption"] == ALL) & (own["severity"] == 0)
        panels = names[: self.corruptions]
        numbers, coloured, falls = [], set[str](), {}
        with style.house_style():
            figure, axes = style.panels(len(panels), width=3.0, height=2.2, sharey=True)
            for axis, corruption in zip(axes, panels, strict=True):
                part = own[(own["corruption"] == corruption) | clean]
                found, chosen = _curves(axis, part, metric, baseline)
                numbers += [(corruption, *row) for row in found]
                coloured |= chosen
                falls[corruption] = _mean_fall(found, metric)
                axis.set_title(style.short(corruption))
                axis.set_xlabel("severity")
                axis.set_ylabel(f"{labelled(metric)} {arrow(metric)}".rstrip())
            style.legend(figure, [method for method in methods_of(own) if method in coloured], points=True)
        data = pd.DataFrame(numbers, columns=["corruption", "method", "severity", "mean", "95 % low", "95 % high"])
        rest = f" {len(names) - len(panels)} more are in the table." if len(names) > len(panels) else ""
        worst = max(falls, key=lambda corruption: falls[corruption])
        caption = (
            f"{style.title(dataset)}: {style.title(metric.name)} {arrow(metric)} under each corruption, mean over "
            f"seeds with its 95 % interval as a band. Hardest of those drawn, by the mean of all methods from severity "
            f"0 to the greatest: {worst} ({falls[worst]:.2g} worse), easiest: {min(falls, key=lambda c: falls[c])} "
            f"({min(falls.values()):.2g}).{about_grey(own['method'].nunique(), 'at the greatest severity')}{rest}"
        )
        return Figure(f"shift-{dataset}-corruptions", caption, figure, data)


def shifted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the values under a corruption, with its name, its severity and the metric's own name."""
    frame = named(frame, lambda _, condition: bool(condition))
    parts = parts_of(frame["metric"])
    found = parts[2].str.extract(f"^{CORRUPTION.pattern}$")
    rows = frame.assign(base=parts[0], corruption=found["corruption"], severity=found["severity"].astype(float))
    # Infinite values count: a mean without them would be better than it is.
    kept = rows["corruption"].notna() & rows["base"].isin(list(catalogue())) & rows["value"].notna()
    return pd.DataFrame(rows[kept])


def _metrics(results: Results, rows: pd.DataFrame) -> list[Metric]:
    declared, present = catalogue(), list(dict.fromkeys(rows["base"]))
    named = [name for name in results.metrics if name in present]
    return [declared[name] for name in dict.fromkeys([*named, *present])]


def _corruptions(rows: pd.DataFrame) -> list[str]:
    return [str(name) for name in dict.fromkeys(rows["corruption"]) if name != ALL]


def _curves(axis: "Axes", rows: pd.DataFrame, metric: Metric, baseline: str | None) -> tuple[list[Point], set[str]]:
    """Draw one curve per method, mean and band over the seeds; return the numbers, and the methods that stand out."""
    found: dict[str, tuple[Array, Array, Array, Array]] = {}
    for method in methods_of(rows):
        # A seed's mean over the corruptions first: corruptions of one seed are no repeats.
        own = rows[rows["method"] == method].groupby(["severity", "split", "seed"])["value"].mean()
        table = own.unstack("severity").dropna()
        if not table.empty:
            found[method] = (table.columns.to_numpy(dtype=float), *band(table.to_numpy(), metric.value_range))
    ends = {method: float(mean[-1]) for method, (_, mean, _, _) in found.items()}
    chosen = highlighted({m: metric.loss(end) if metric.has_better else end for m, end in ends.items()}, baseline)
    numbers: list[Point] = []
    for method, (x, mean, low, high) in found.items():
        axis.plot(x, mean, **line_of(method, chosen, 4))
        if method in chosen:
            axis.fill_between(x, low, high, **style.look(method).of_band(0.14))
        numbers += list(zip([method] * len(x), x, mean, low, high, strict=True))
    return numbers, set(chosen)


def _mean_fall(points: list[Point], metric: Metric) -> float:
    """Return by how much the mean over the methods is worse at the greatest severity than at the least."""
    ends = [max(point[1] for point in points), min(point[1] for point in points)] if points else []
    high, low = (np.mean([metric.loss(point[2]) for point in points if point[1] == end]) for end in ends or (0, 0))
    return float(high - low)


def _mean_figure(
    dataset: str, rows: pd.DataFrame, metrics: list[Metric], lost: set[str], baseline: str | None
) -> Figure:
    numbers, findings, coloured = [], [], set[str]()
    count = len(_corruptions(rows))
    whole = rows[rows["corruption"] == ALL]
    rows = rows if whole.empty else whole
    with style.house_style():
        figure, axes = style.panels(len(metrics), width=3.4, height=2.5)
        for axis, metric in zip(axes, metrics, strict=True):
            own = rows[rows["base"] == metric.name]
            found, chosen = _curves(axis, own, metric, baseline)
            coloured |= chosen
            numbers += [(metric.name, *row) for row in found]
            worst = max((row[1] for row in found), default=0.0)
            ends = {row[0]: row[2] for row in found if row[1] == worst}
            if ends and metric.has_better:
                losses = {method: metric.loss(end) for method, end in ends.items()}
                first, last = (choose(losses, key=lambda m: losses[m]) for choose in (min, max))
                span = f"all methods: {ends[first]:.3f} to {ends[last]:.3f}, {style.title(last)}"
                findings.append(f"{style.title(metric.name)}: {best_method(losses, lost)} ({span})")
            axis.set_title(f"{style.title(metric.name)} {arrow(metric)}".rstrip(), parse_math=False)
            axis.set_xlabel("severity")
            axis.set_ylabel(labelled(metric))
        style.legend(figure, [method for method in methods_of(rows) if method in coloured], points=True)
    data = pd.DataFrame(numbers, columns=["metric", "method", "severity", "mean", "95 % low", "95 % high"])
    over = f"mean over {count} corruptions and all seeds" if count > 1 else "mean over all seeds"
    caption = (
        f"{style.title(dataset)}: metrics against the severity of the shift, {over}, with the 95 % interval over seeds "
        "as a band. "
        + (f"Best at the greatest severity: {'; '.join(findings)}. Not tested." if findings else "")
        + _not_drawn(data)
        + about_grey(rows["method"].nunique(), "at the greatest severity")
    )
    return Figure(f"shift-{dataset}", caption, figure, data)


def _not_drawn(data: pd.DataFrame) -> str:
    """Return the sentence of a caption on curves that end where their mean is infinite; empty where none does."""
    ended = data[~np.isfinite(data["mean"])].groupby(["metric", "method"], sort=False)["severity"].min()
    words = [f"{style.title(metric)} of {style.title(method)} from {at:g} on" for (metric, method), at in ended.items()]
    return f" Infinite, and so not drawn: {'; '.join(words)}." if words else ""


def _table(dataset: str, rows: pd.DataFrame, metrics: list[Metric]) -> Table:
    names = [metric.name for metric in metrics]
    groups = rows[rows["base"].isin(names)].groupby(["corruption", "severity", "method", "base"], sort=False)
    means = groups["value"].mean().unstack("base")
    table = means[[name for name in names if name in means.columns]].reset_index()
    table = table.sort_values(["corruption", "severity"], kind="stable", ignore_index=True)
    caption = f"{dataset}: means by corruption and severity"
    paper = (
        f"`{dataset}` under shift: means over seeds by corruption and severity; severity 0 is the clean test set, "
        f"{ALL} the mean over corruptions. {better_in_words(metrics)} A dash: without a value."
    )
    return Table(caption, table, name=f"shift-{dataset}", folded=True, paper_caption=paper)


def _detection(frame: pd.DataFrame) -> list[Block]:
    frame = named(frame, lambda _, condition: condition != "" and not set(condition) & {":", "="})
    parts = parts_of(frame["metric"])
    known = frame.assign(base=parts[0], foreign=parts[2])
    rows = known[known["base"] == "ood_auroc"]
    if rows.empty:
        return []
    groups = rows.groupby(["dataset", "method", "foreign"], sort=False)["value"]
    numbers = pd.DataFrame({"mean": groups.mean(), "standard_deviation": groups.std(), "seeds": groups.size()})
    pairs = zip(numbers["mean"], numbers["standard_deviation"], strict=True)
    texts = pd.Series([with_spread(mean, spread, 3) for mean, spread in pairs], index=numbers.index)
    table = texts.unstack("foreign").fillna("–").reset_index()
    caption = "AUROC of the uncertainty for telling foreign data from test data (higher is better, 0.5 is chance)"
    paper = f"{caption}: mean ± standard deviation over seeds; the columns are the kinds of foreign data."
    return [
        Table(caption, table, name="foreign-data", numbers=numbers.reset_index(), paper_caption=paper),
        *_detection_table(pd.DataFrame(known[known["base"].str.startswith("ood_")])),
    ]


def _detection_table(rows: pd.DataFrame) -> list[Block]:
    """Return all metrics of detection, by entropy and by mutual information, where there are more than the first."""
    names = [name for name in DETECTION if name in set(rows["base"])]
    if len(names) < 2:
        return []
    groups = rows[rows["base"].isin(names)].groupby(["dataset", "foreign", "method", "base"], sort=False)["value"]
    table = groups.mean().unstack("base")[names].reset_index()
    caption = (
        "Detection of foreign data (the positive class) among as many test rows: AUROC and AUPR (higher is better, 0.5 "
        "is chance), FPR95 (lower is better, 0.95 is chance), by predictive entropy and by mutual information"
    )
    return [Table(caption, table, name="foreign-data-detection", folded=True)]
