"""Wins, ties and losses of every method against every other, with effect sizes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as MatplotlibFigure

from bench.api import Array, Figure, Metric, Report, Results, Section, Text, plural, stats, style
from bench.reports._page_tests import Tested, page_tests
from bench.reports._words import arrow, lead_metrics

# Tints of the colours for worse and better that dark words can be read on. They are none of the theme's: a page in the
# dark would replace the ends of the scale and leave what lies between.
LOSING, WINNING = "#ec9159", "#5aaddb"
MOST_ANNOTATED = 12  # methods up to which the matrix holds numbers; beyond, its colours and its table do


@dataclass(frozen=True)
class Wins(Report):
    """One matrix for each leading metric: on how many datasets the row is better, open, worse than the column."""

    order = 14

    def section(self, results: Results) -> Section | None:
        """Return the matrices, or None where no two methods have enough repeats for a test."""
        figures, tested, sizes = [], [], []
        for metric in lead_metrics(results):
            found = [one for one in page_tests(results).of_metric(metric) if np.isfinite(one.tests.p).any()]
            if found:  # without a test, colours would pass for verdicts
                figures.append(_figure(metric, found))
                sizes.append(len({method for one in found for method in one.tests.methods}))
                tested += [(one.tests.dataset, one.tests.repetition) for one in found]
        if not figures:
            return None
        share = "the share of pairs (the same split and seed) in which the row beats the column, mean over datasets"
        counts = (
            "on how many datasets the row is better / open / worse (open: neither was shown; corrected for all tests)"
        )
        numbers = f"Row against column: {counts}, and below it {share}; ties count half."
        colours = (
            f"Row against column, by colour: {share}; ties count half. The numbers of a figure also have {counts}."
        )
        introduction = (
            f"{numbers if min(sizes) <= MOST_ANNOTATED else colours} Tests: {stats.datasets_by_test(tested)}."
        )
        return Section("Wins, ties and losses", [Text(introduction), *figures])


def _figure(metric: Metric, found: list[Tested]) -> Figure:
    methods = list(dict.fromkeys(method for one in found for method in one.tests.methods))
    counts, effect = _counted(found, methods)
    order = np.argsort(-np.nanmean(np.where(np.isnan(effect), 0.5, effect), axis=1), kind="stable")
    methods, counts, effect = [methods[i] for i in order], counts[:, order][:, :, order], effect[order][:, order]
    size = len(methods)
    with style.house_style():
        cell = 0.78 if size <= 8 else 0.62 if size <= MOST_ANNOTATED else max(7.4 / size, 0.22)  # inches
        figure = MatplotlibFigure(figsize=(2.2 + cell * size, 1.5 + 0.72 * cell * size), layout="constrained")
        axis = figure.subplots()
        colours = LinearSegmentedColormap.from_list("wins", [LOSING, "#f3f4f6", WINNING])
        hidden = np.eye(size, dtype=bool) | np.isnan(effect)
        shares = np.ma.masked_where(hidden, effect)
        mesh = axis.pcolormesh(shares, cmap=colours, vmin=0, vmax=1, linewidths=1.2, edgecolor="#ffffff")
        axis.set(xlim=(0, size), ylim=(size, 0))  # the first row on top
        axis.spines[:].set_visible(False)
        if size > 2:
            bar = figure.colorbar(mesh, ax=axis, label="share of pairs in which the row is better", shrink=0.8)
            bar.outline.set_linewidth(0)
        if size <= MOST_ANNOTATED:
            look: Any = {"ha": "center", "va": "center", "fontsize": 7.5 if size <= 8 else 6, "color": "#101418"}
            for i, j in zip(*np.nonzero(~hidden), strict=True):
                axis.text(j + 0.5, i + 0.5, _cell(counts[:, i, j], effect[i, j]), **look)
        names, places = [style.short(m) for m in methods], np.arange(size) + 0.5
        axis.set_xticks(places, names, rotation=40, ha="right", color=style.INK)
        axis.set_yticks(places, names, rotation=0, va="center", color=style.INK)
        shown = ": better / open / worse" if size <= MOST_ANNOTATED else ""
        axis.set_title(f"{style.title(metric.name)} {arrow(metric)}{shown}", parse_math=False)
        axis.grid(False)
        for text in axis.texts:
            text.set_in_layout(False)  # they are inside of the matrix: hundreds that the layout need not measure
    rows = [
        (methods[i], methods[j], *(int(n) for n in counts[:, i, j]), effect[i, j])
        for i in range(size)
        for j in range(size)
        if i != j and not np.isnan(effect[i, j])
    ]
    columns = ["method", "against", "better", "open", "worse", "pairs won"]
    won = counts[0].sum(axis=1)
    most = methods[int(np.argmax(won))]
    winner = "No method was shown to beat another on any dataset"
    if won.max():
        winner = f"Most wins that were shown: {style.title(most)}, {int(won.max())} over all others and datasets"
    caption = (
        f"{style.title(metric.name)} on {plural(len(found), 'dataset')}: blue, the row beats the column in more "
        f"than half of the pairs; orange, in fewer, whether or not a test shows it. {winner}."
    )
    return Figure(f"wins-{metric.name}", caption, figure, pd.DataFrame(rows, columns=columns))


def _counted(found: list[Tested], methods: list[str]) -> tuple[Array, Array]:
    """Return `[better | open | worse, row, column]` counts of datasets, and the mean share of pairs won."""
    size = len(methods)
    counts, total, seen = np.zeros((3, size, size)), np.zeros((size, size)), np.zeros((size, size))
    for one in found:
        places = np.array([methods.index(method) for method in one.tests.methods])
        grid, known = np.ix_(places, places), ~np.isnan(one.tests.wins)
        for number, sign in enumerate((1, 0, -1)):
            counts[number][grid] += (one.verdicts == sign) & known
        total[grid] += np.where(known, one.tests.wins, 0.0)
        seen[grid] += known
    with np.errstate(invalid="ignore"):
        return counts, np.where(seen > 0, total / np.maximum(seen, 1), np.nan)


def _cell(counts: Array, effect: float) -> str:
    return "" if np.isnan(effect) else f"{'/'.join(str(int(n)) for n in counts)}\n{effect:.2f}"
