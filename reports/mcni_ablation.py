"""Ablation: variants of one method that differ in an option, each against the variant in the middle, seed by seed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure

from bench.api import Block, Figure, Metric, Report, Results, Section, Table, Text, catalogue, spec_or_none, style

Options = Mapping[str, Any]
NUMBERS = ["dataset", "metric", "variant", "difference", "two standard errors", "verdict"]


@dataclass(frozen=True)
class MCNIAblation(Report):
    """Tables and a figure for every plug-in of which a suite holds at least `variants` labelled variants."""

    variants: int = 3
    panels: int = 2  # metrics of a dataset in the figure: the first that the suite names

    order = 40

    def section(self, results: Results) -> Section | None:
        """Return the differences that options make, or None where no method has variants."""
        blocks: list[Block] = []
        for plugin, variants in variants_of(results.cells).items():
            if len(variants) < self.variants:
                continue
            reference = middle(variants)
            changes = {label: change(options, variants[reference]) for label, options in variants.items()}
            compared = _differences(results, list(variants), reference)
            if compared.empty:
                continue
            by_dataset = compared.groupby("dataset")
            introduction = (
                f"{plugin}: every variant against {reference}, which differs least from the others. In brackets: the "
                "mean of the differences on the same split and seed ± its standard error."
            )
            tables = [_table(str(name), rows, changes, _metrics(results, rows)) for name, rows in by_dataset]
            blocks += [Text(introduction), *tables]
            blocks.append(self._figure(plugin, reference, changes, compared, results))
        return Section("Ablation", blocks) if blocks else None

    def _figure(
        self, plugin: str, reference: str, changes: Mapping[str, str], compared: pd.DataFrame, results: Results
    ) -> Figure:
        panels = {
            str(dataset): [(metric, rows[rows["metric"] == metric.name]) for metric in _metrics(results, rows)]
            for dataset, rows in compared.groupby("dataset")
            if _metrics(results, rows)
        }
        others = [label for label in changes if label != reference]
        width = max(min(len(found), self.panels) for found in panels.values())
        findings, numbers = [], []
        with style.house_style():
            height = 0.9 + (0.8 + 0.27 * len(others)) * len(panels)
            figure = MatplotlibFigure(figsize=(2.6 + 3.2 * width, height), layout="constrained")
            axes = figure.subplots(len(panels), width, squeeze=False, sharey=True)
            for axis in axes.flatten():
                axis.set_axis_off()
            for row, (dataset, found) in zip(axes, panels.items(), strict=True):
                for axis, (metric, rows) in zip(row, found, strict=False):
                    title = f"{style.short(dataset)}: {metric.name}"
                    drawn = _panel(axis, title, metric, others, changes, rows)
                    better = ", ".join(changes[label] for label, *_, word in drawn if word == "better")
                    findings.append(f"{dataset}, {metric.name}: {better or 'none'}")
                    numbers += [(dataset, metric.name, *one) for one in drawn]
        caption = (
            f"{plugin}: difference of each variant to {reference} on the same split and seed, mean ± two standard "
            "errors; blue is better by more than that, orange is worse, grey could be either. With few seeds and many "
            f"variants some differences pass by chance; nothing is corrected for that. Better: {'; '.join(findings)}."
        )
        return Figure(f"ablation-{plugin}", caption, figure, pd.DataFrame(numbers, columns=NUMBERS))


def variants_of(cells: pd.DataFrame) -> dict[str, dict[str, Options]]:
    """Return the labels of each plug-in with the options they stand for."""
    found: dict[str, dict[str, Options]] = {}
    for label, spec in cells.dropna(subset="spec").groupby("method", sort=False)["spec"].first().items():
        if (known := spec_or_none(spec)) is not None:
            found.setdefault(known.method.name, {})[str(label)] = known.method.options
    return found


def middle(variants: Mapping[str, Options]) -> str:
    """Return the label that differs from all others in the fewest options; of equals the first."""
    apart = {label: sum(len(_changed(o, own)) for o in variants.values()) for label, own in variants.items()}
    return min(apart, key=lambda label: apart[label])


def change(options: Options, reference: Options) -> str:
    """Return in words how a variant differs from the reference."""
    return ", ".join(f"{name} = {options.get(name)}" for name in _changed(options, reference)) or "reference"


def _changed(options: Options, reference: Options) -> list[str]:
    return [name for name in sorted({*options, *reference}) if options.get(name) != reference.get(name)]


def _differences(results: Results, labels: list[str], reference: str) -> pd.DataFrame:
    """Return the values of the variants with their difference to the reference on the same split and seed."""
    frame = results.frame
    frame = frame[frame["method"].isin(labels)]
    place = ["dataset", "split", "seed", "metric"]
    base = frame[frame["method"] == reference].set_index(place)["value"].rename("reference")
    joined = frame.join(base, on=place)
    return joined.assign(difference=joined["value"] - joined["reference"])


def _metrics(results: Results, rows: pd.DataFrame) -> list[Metric]:
    """Return the suite's metrics that the rows hold."""
    declared, present = catalogue(), set(rows["metric"])
    named = [name for name in results.metrics if name in present and name in declared]
    return [declared[name] for name in named or sorted(present & set(declared)) if declared[name].has_better]


def _table(dataset: str, rows: pd.DataFrame, changes: Mapping[str, str], metrics: list[Metric]) -> Table:
    data: dict[str, list[str]] = {"variant": list(changes), "option": list(changes.values())}
    for metric in metrics:
        own = rows[rows["metric"] == metric.name]
        data[metric.name] = [_cell(own[own["method"] == label], text == "reference") for label, text in changes.items()]
    return Table(f"{dataset}: what each option changes", pd.DataFrame(data))


def _cell(rows: pd.DataFrame, reference: bool) -> str:
    if rows.empty:
        return "–"
    if reference:
        return f"{rows['value'].mean():.4g}"
    difference, error = _mean_and_error(rows["difference"])
    within = f" ± {error:.1g}" if math.isfinite(error) else ""
    return f"{rows['value'].mean():.4g}" + (f" ({difference:+.2g}{within})" if math.isfinite(difference) else "")


def _mean_and_error(differences: "pd.Series[float]") -> tuple[float, float]:
    known = differences[differences.abs() < math.inf]  # NaN and infinite ones have no mean
    error = float(known.std() / math.sqrt(len(known))) if len(known) > 1 else math.nan
    return float(known.mean()), error


def _panel(
    axis: Axes, title: str, metric: Metric, labels: list[str], changes: Mapping[str, str], rows: pd.DataFrame
) -> list[tuple[str, float, float, str]]:
    """Draw one metric's differences; return them with two standard errors and a word."""
    axis.set_axis_on()
    axis.axvline(0, color=style.INK, linewidth=0.8)
    drawn = []
    for place, label in enumerate(labels):
        own = rows[rows["method"] == label]
        mean, error = _mean_and_error(own["difference"])
        if not math.isfinite(mean):
            continue
        reach = 2 * error if math.isfinite(error) else 0.0
        clear = abs(mean) > reach > 0
        gain = metric.better(float(own["value"].mean()), float(own["reference"].mean()))
        color = (style.BETTER if gain else style.WORSE) if clear else style.EVEN
        axis.errorbar(mean, place, xerr=reach, fmt="o", color=color, markersize=4, capsize=2, linewidth=1.2)
        drawn.append((label, mean, reach, ("better" if gain else "worse") if clear else "either"))
    axis.set_yticks(range(len(labels)), [changes[label] for label in labels], fontsize=8)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    axis.set_title(title, fontsize=9)
    axis.tick_params(axis="x", labelsize=7)
    axis.locator_params(axis="x", nbins=4)
    return drawn
