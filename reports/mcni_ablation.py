"""Ablation: variants of one method that differ in an option, each against the variant in the middle, seed by seed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure

from bench.api import Block, Figure, Metric, Report, Results, Section, Table, Text, catalogue, stats, style
from bench.reports._variants import Options, swept, variants_of
from bench.reports._words import arrow, better_in_words, decimals, direction, rounded

Compared = Mapping[tuple[str, str, str], stats.DatasetComparison]  # by variant, dataset and metric
MOST_NAMED = 3  # variants in a caption, per metric
NUMBERS = ["dataset", "metric", "variant", "difference", "95 % low", "95 % high"]


@dataclass(frozen=True)
class MCNIAblation(Report):
    """Tables and a figure for every plug-in of which a suite holds at least `variants` labelled variants."""

    variants: int = 3
    panels: int = 2  # metrics of a dataset in the figure: the first that the suite names

    order = 40
    subject = True

    def section(self, results: Results) -> Section | None:
        """Return the differences that options make, or None where no method has variants."""
        blocks: list[Block] = []
        curves = {sweep.plugin for sweep in swept(results)}  # levels of one number: the section on sensitivity has them
        for plugin, variants in variants_of(results.cells).items():
            if len(variants) < self.variants or plugin in curves:
                continue
            reference = middle(variants)
            changes = {label: change(options, variants[reference]) for label, options in variants.items()}
            rows = results.frame[results.frame["method"].isin(list(variants))]
            if rows.empty:
                continue
            compared = _compared(results, rows, list(variants), reference)
            by_dataset = rows.groupby("dataset")
            introduction = (
                f"{plugin}: every variant against {reference}, which differs least from the others. In brackets: the "
                "mean of the differences on the same split and seed with its 95 % interval, each by itself (of a "
                "metric with a target, such as picp, differences of the distances to it: below 0 is nearer). Which "
                "differences were shown after correction for all tests is in the other sections."
            )
            metrics = {str(name): _metrics(results, own) for name, own in by_dataset}
            tables = [_table(str(name), own, changes, metrics[str(name)], compared) for name, own in by_dataset]
            blocks += [Text(introduction), *tables]
            blocks.append(self._figure(plugin, reference, changes, metrics, compared))
        return Section("Ablation", blocks) if blocks else None

    def _figure(
        self,
        plugin: str,
        reference: str,
        changes: Mapping[str, str],
        metrics: Mapping[str, list[Metric]],
        compared: Compared,
    ) -> Figure:
        panels = {dataset: own for dataset, own in metrics.items() if own}
        others = [label for label in changes if label != reference]
        width = max(min(len(own), self.panels) for own in panels.values())
        numbers, findings = [], []
        with style.house_style():
            height = 0.9 + (0.95 + 0.22 * len(others)) * len(panels)
            figure = MatplotlibFigure(figsize=(2.6 + 3.2 * width, height), layout="constrained")
            axes = figure.subplots(len(panels), width, squeeze=False, sharey=True)
            for axis in axes.flatten():
                axis.set_axis_off()
            for row, (dataset, own) in zip(axes, panels.items(), strict=True):
                for axis, metric in zip(row, own, strict=False):
                    found = {label: compared.get((label, dataset, metric.name)) for label in others}
                    numbers += _panel(axis, dataset, metric, changes, found)
                    findings.append(f"{style.title(dataset)}, {_finding(metric, changes, found)}")
        caption = (
            f"{style.title(plugin)}: difference of each variant to {style.title(reference)} on the same split and "
            "seed, mean and 95 % interval, each by itself; with many variants some intervals miss 0 by chance. "
            f"Those that do are filled: {'; '.join(findings)}."
        )
        return Figure(f"ablation-{plugin}", caption, figure, pd.DataFrame(numbers, columns=NUMBERS))


def middle(variants: Mapping[str, Options]) -> str:
    """Return the label that differs from all others in the fewest options; of equals the first."""
    apart = {label: sum(len(_changed(o, own)) for o in variants.values()) for label, own in variants.items()}
    return min(apart, key=lambda label: apart[label])


def change(options: Options, reference: Options) -> str:
    """Return in words how a variant differs from the reference."""
    return ", ".join(f"{name} = {options.get(name)}" for name in _changed(options, reference)) or "reference"


def _changed(options: Options, reference: Options) -> list[str]:
    return [name for name in sorted({*options, *reference}) if options.get(name) != reference.get(name)]


def _compared(results: Results, rows: pd.DataFrame, labels: list[str], reference: str) -> Compared:
    """Return every variant against the reference by dataset and metric."""
    others = [label for label in labels if label != reference]
    found = stats.compare_each(rows, others, reference, _metrics(results, rows), cells=results.cells)
    return {(one.a, row.dataset, row.metric): row for one in found for row in one.rows}


def _metrics(results: Results, rows: pd.DataFrame) -> list[Metric]:
    """Return the suite's metrics that the rows hold."""
    declared, present = catalogue(), set(rows["metric"])
    named = [name for name in results.metrics if name in present and name in declared]
    return [declared[name] for name in named or sorted(present & set(declared)) if declared[name].has_better]


def _table(
    dataset: str, rows: pd.DataFrame, changes: Mapping[str, str], metrics: list[Metric], compared: Compared
) -> Table:
    data: dict[str, list[str]] = {"variant": list(changes), "option": list(changes.values())}
    for metric in metrics:
        means = rows[rows["metric"] == metric.name].groupby("method")["value"].mean()
        found = {label: compared.get((label, dataset, metric.name)) for label in changes}
        widths = [(row.interval.high - row.interval.low) / 2 for row in found.values() if row and row.interval]
        places = decimals(widths, means)
        data[metric.name] = [_cell(means.get(label), found[label], places) for label in changes]
    paper = (
        f"Variants on `{dataset}`: mean over repeats and, in parentheses, the mean of the differences to the reference "
        "on the same split and seed with the ends of its 95 % interval, each by itself and without correction for the "
        f"number of comparisons. {better_in_words(metrics)} A dash: without a value."
    )
    return Table(f"{dataset}: what each option changes", pd.DataFrame(data), paper_caption=paper)


def _cell(mean: float | None, row: stats.DatasetComparison | None, places: int) -> str:
    if mean is None:
        return "–"
    text = rounded(mean, places)
    if row is None or math.isnan(row.difference):
        return text
    ends = f", {rounded(row.interval.low, places)} to {rounded(row.interval.high, places)}" if row.interval else ""
    return f"{text}\n({rounded(row.difference, places, sign=True)}{ends})"


def _finding(metric: Metric, changes: Mapping[str, str], found: Mapping[str, stats.DatasetComparison | None]) -> str:
    """Return the variants whose intervals miss 0, the largest differences first; that is no verdict."""
    sided = [(row.difference, changes[label]) for label, row in found.items() if row is not None and _misses_zero(row)]
    sided.sort(key=lambda one: -abs(one[0]))
    words = ", ".join(f"{change} ({difference:+.2g})" for difference, change in sided[:MOST_NAMED])
    more = f" and {len(sided) - MOST_NAMED} more" if len(sided) > MOST_NAMED else ""
    return f"{style.title(metric.name)}: {words + more or 'none'}"


def _misses_zero(row: stats.DatasetComparison) -> bool:
    return row.interval is not None and (row.interval.low > 0 or row.interval.high < 0)


def _panel(
    axis: Axes,
    dataset: str,
    metric: Metric,
    changes: Mapping[str, str],
    found: Mapping[str, stats.DatasetComparison | None],
) -> list[tuple[str, str, str, float, float, float]]:
    """Draw one metric's differences; return them with the ends of their intervals."""
    axis.set_axis_on()
    axis.axvline(0, color=style.INK, linewidth=0.8)
    drawn = []
    for place, (label, row) in enumerate(found.items()):
        if row is None or not math.isfinite(row.difference):
            continue
        low, high = (row.interval.low, row.interval.high) if row.interval else (math.nan, math.nan)
        axis.plot([low, high], [place, place], color=style.SOFT, linewidth=1.4)
        face = style.INK if _misses_zero(row) else style.PAPER
        axis.plot(row.difference, place, "o", color=style.INK, markerfacecolor=face, markersize=4.5)
        drawn.append((row.dataset, row.metric, label, row.difference, low, high))
    axis.set_yticks(range(len(found)), [changes[label] for label in found], fontsize=8)
    axis.set_ylim(len(found) - 0.5, -0.5)
    axis.set_title(f"{style.short(dataset)}: {style.title(metric.name)} {arrow(metric)}", fontsize=9, parse_math=False)
    axis.set_xlabel(direction(metric), fontsize=8)
    axis.tick_params(axis="x", labelsize=7)
    axis.locator_params(axis="x", nbins=4)
    return drawn
