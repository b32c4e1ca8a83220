"""Critical-difference diagrams: average ranks on a line, bars over methods not shown to differ (Demsar 2006)."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure

from bench.api import Figure, Metric, Report, Results, Section, Text, plural, stats, style
from bench.reports._rankings import ranked_metrics, rankings
from bench.reports._words import arrow, probability

MOST_NAMED = 6  # methods of a caption
STEP = 0.3  # inches from one name to the next
WIDTH, MARGIN = 8.4, 2.45  # inches of the figure, and of the longest name beside the ranks
GAP = "\N{EN SPACE}"  # a browser would join plain spaces


@dataclass(frozen=True)
class CriticalDifference(Report):
    """One diagram for each metric whose ranks are tested and that at least `datasets` datasets have."""

    order = 13
    datasets: int = 3  # two ranks per method say nothing

    def section(self, results: Results) -> Section | None:
        """Return the diagrams, or None where nothing can be ranked."""
        ranked = rankings(results)
        chosen = [
            (metric, ranked[metric])
            for metric in ranked_metrics(results)
            if metric in ranked and len(ranked[metric].datasets) >= self.datasets
        ]
        if not chosen:
            return None
        introduction = (
            "Average ranks over datasets, 1 is the best. A bar joins methods whose ranks are closer than the critical "
            "difference (CD) of Nemenyi's test: they were not shown to differ. With few datasets the CD is wide."
        )
        figures = [_figure(metric, ranking) for metric, ranking in chosen]
        return Section("Critical differences", [Text(introduction), *figures])


def _figure(metric: Metric, ranking: stats.Ranking) -> Figure:
    with style.house_style():
        names = len(ranking.methods)
        bars = _bars(ranking)
        left = (names + 1) // 2
        height = 0.75 + 0.13 * len(bars) + STEP * left
        figure = MatplotlibFigure(figsize=(WIDTH, height))
        axis = figure.add_axes((MARGIN / WIDTH, 0.0, 1 - 2 * MARGIN / WIDTH, 1.0))
        _draw(axis, ranking, bars, height)
        title = f"{style.title(metric.name)} {arrow(metric)}"
        figure.text(0.01, 1 - 0.16 / height, title, weight="bold", va="center", parse_math=False)
    rows = [(one.method, one.average_rank, one.groups or "–") for one in ranking.methods]
    data = pd.DataFrame(rows, columns=["method", "average rank", "group"])
    order = ", ".join(f"{style.title(one.method)} {one.average_rank:.2f}" for one in ranking.methods[:MOST_NAMED])
    more = f" and {names - MOST_NAMED} more" if names > MOST_NAMED else ""
    caption = (
        f"{style.title(metric.name)}: average ranks over {plural(len(ranking.datasets), 'dataset')}, CD "
        f"{ranking.critical_difference:.2f} at level {ranking.settings.alpha:.3g}; Friedman p "
        f"{probability(ranking.friedman[1])}, Iman-Davenport p {probability(ranking.iman_davenport[1])}. From the "
        f"best: {order}{more}."
    )
    return Figure(f"critical-difference-{metric.name}", caption, figure, data)


def _bars(ranking: stats.Ranking) -> list[tuple[float, float]]:
    """Return the first and last rank of each group of at least two methods."""
    letters = dict.fromkeys(letter for one in ranking.methods for letter in one.groups)
    spans = [[one.average_rank for one in ranking.methods if letter in one.groups] for letter in letters]
    return [(min(span), max(span)) for span in spans if len(span) > 1]


def _draw(axis: Axes, ranking: stats.Ranking, bars: list[tuple[float, float]], height: float) -> None:
    """Draw in inches from the top, ranks along x."""
    methods, count = ranking.methods, len(ranking.methods)
    axis.set_xlim(1, max(count, 2))
    axis.set_ylim(height, 0)
    axis.set_axis_off()
    line = 0.5
    axis.plot([1, count], [line, line], color=style.INK, linewidth=1, clip_on=False)
    every = 1 if count <= 12 else 2
    for place in range(1, count + 1, every):
        axis.plot([place, place], [line - 0.06, line], color=style.INK, linewidth=1, clip_on=False)
        axis.text(place, line - 0.09, str(place), ha="center", va="bottom", color=style.SOFT, fontsize=8)
    width = min(ranking.critical_difference, count - 1)
    axis.plot([1, 1 + width], [0.12, 0.12], color=style.SOFT, linewidth=1.6, clip_on=False)
    axis.text(1 + width, 0.12, f"{GAP}CD {ranking.critical_difference:.2f}", va="center", fontsize=8, color=style.SOFT)
    for number, (low, high) in enumerate(bars):
        level = line + 0.12 + 0.13 * number
        bar: dict[str, Any] = {"color": style.INK, "linewidth": 3.2, "solid_capstyle": "round"}
        axis.plot([low - 0.04, high + 0.04], [level, level], clip_on=False, **bar)
    half = (count + 1) // 2
    first = line + 0.2 + 0.13 * len(bars)
    for number, one in enumerate(methods):
        leftward = number < half
        row = first + STEP * (number if leftward else count - 1 - number)
        end = 1 - 0.03 * (count - 1) if leftward else count + 0.03 * (count - 1)
        x, name, look = one.average_rank, style.short(one.method), style.look(one.method)
        axis.plot([x, x, end], [line, row, row], color=look.hex, linewidth=1.2, clip_on=False)
        axis.plot(x, line, clip_on=False, **look.of_points(5))
        label = f"{name}{GAP}{x:.2f}{GAP}" if leftward else f"{GAP}{x:.2f}{GAP}{name}"
        axis.text(end, row, label, ha="right" if leftward else "left", va="center", fontsize=8.5)
