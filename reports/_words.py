"""Words and numbers that several sections share: metrics, arrows, intervals, plurals."""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from bench.api import Array, Metric, Results, catalogue, declaration, style

if TYPE_CHECKING:
    from bench.api import stats

T = TypeVar("T")
MOST_COLUMNS = 9  # metrics of a table
GAP = "\N{EN SPACE}"  # a browser would join plain spaces


def metrics_of(results: Results, rows: pd.DataFrame | None = None) -> list[Metric]:
    """Return the suite's metrics that some rows (by default all) hold; all they hold where it names none of them."""
    known, present = catalogue(), set((results.frame if rows is None else rows)["metric"].unique())
    named = [declaration(name) for name in results.metrics if name in present and name.partition("@")[0] in known]
    return named or [metric for name, metric in known.items() if name in present]


def lead_metrics(results: Results) -> list[Metric]:
    """Return the first metric of each task: the metric that a suite names first."""
    leads: dict[str, Metric] = {}
    for metric in metrics_of(results):
        if metric.family != "cost" and metric.has_better and not metric.only_with:
            leads.setdefault(metric.task, metric)
    return list(leads.values())


def arrow(metric: Metric) -> str:
    """Return the sign for which direction is better."""
    target = f"→ {metric.target:g}" if metric.target is not None else ""
    return {"lower": "↓", "higher": "↑"}.get(metric.direction, target)


def about_draws(metrics: Iterable[Metric]) -> str:
    """Return the sentence of a caption that says which metrics leave out the observation noise; '' where none does."""
    names = [metric.name for metric in metrics if metric.draws_alone]
    if not names:
        return ""
    return f"Draws alone, without observation noise: {', '.join(names)}."


def labelled(metric: Metric) -> str:
    """Return the words for an axis: the metric and its unit."""
    name = style.title(metric.name)
    return name if metric.unit in ("1", "") else f"{name} ({metric.unit})"


def direction(metric: Metric) -> str:
    """Return the words for an axis of differences: on which side a value is better."""
    unit = "" if metric.unit in ("1", "") else f" ({metric.unit})"
    sides = {"lower": ("← better", "worse →"), "higher": ("← worse", "better →")}.get(metric.direction)
    if sides is None:
        return f"difference{unit}" + (f", target {metric.target:g}" if metric.target is not None else "")
    return f"{sides[0]}{GAP}difference{unit}{GAP}{sides[1]}"


def better_in_words(metrics: Iterable[Metric]) -> str:
    """Return one sentence for a caption that says which values of metrics are better; names are in backquotes."""
    sides = {"lower": "lower", "higher": "higher"}
    words = [
        f"`{metric.name}` {sides[metric.direction]}"
        if metric.direction in sides
        else f"`{metric.name}` near {metric.target:g}"
        for metric in metrics
        if metric.has_better
    ]
    return f"Better is: {', '.join(words)}." if words else ""


def column_parts(columns: list[T]) -> list[list[T]]:
    """Return the columns of metrics of each table, where one would be too wide: equally many, as a page is wide."""
    count = -(-len(columns) // MOST_COLUMNS)
    each = -(-len(columns) // count)
    return [columns[first : first + each] for first in range(0, len(columns), each)]


def methods_of(frame: pd.DataFrame) -> list[str]:
    """Return the methods in the order in which they are stored."""
    return [str(method) for method in frame["method"].unique()]


def probability(p: float) -> str:
    """Return a p-value as it is printed."""
    return "–" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def verdict_word(row: "stats.DatasetComparison") -> str:
    """Return the verdict of a comparison; where there were too few repeats for a test, there is none."""
    return "not tested" if math.isnan(row.p) else str(row.verdict)


def band(values: Array, value_range: tuple[float, float]) -> tuple[Array, Array, Array]:
    """Return mean, low and high over the first axis: the 95 % t interval, cut at the range of the values.

    The ends are the mean where there is one value.
    """
    from bench.api import stats

    mean = values.mean(axis=0)
    if len(values) < 2:
        return mean, mean, mean
    with np.errstate(invalid="ignore"):
        ends = stats.cut_interval(stats.t_interval(np.moveaxis(values, 0, -1)), mean, value_range)
    return mean, ends[..., 0], ends[..., 1]


def named(frame: pd.DataFrame, wanted: Callable[[str, str], bool]) -> pd.DataFrame:
    """Return the rows whose metric and condition are wanted; few names are asked, however many rows there are."""
    names = [name for name in frame["metric"].unique() if wanted(*str(name).partition("@")[::2])]
    return frame[frame["metric"].isin(names)]


def parts_of(names: pd.Series) -> pd.DataFrame:
    """Return the metric and the condition of stored names, as columns 0 and 2; also where there are none."""
    places, known = pd.factorize(names, use_na_sentinel=False)  # few names, in thousands of rows
    parts = pd.DataFrame([str(name).partition("@") for name in known], columns=[0, 1, 2], dtype=str)
    return parts.take(places).set_axis(names.index)


def decimals(widths: Iterable[float], values: Iterable[float]) -> int:
    """Return the decimal places of a column: two digits of the typical half-width, else four of the typical value."""
    known = [abs(width) for width in widths if math.isfinite(width) and width]
    sizes = known or [abs(value) for value in values if math.isfinite(value) and value]
    if not sizes:
        return 3
    digits = 2 if known else 4
    return min(max(digits - 1 - math.floor(math.log10(float(np.median(sizes)))), 0), 6)


def rounded(value: float, places: int, *, sign: bool = False) -> str:
    """Return a number with so many decimal places; no minus sign before zero, powers of ten where it is huge."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:.2e}" if abs(value) >= 1e6 else f"{value:.{places}f}"
    text = text.removeprefix("-") if float(text) == 0.0 else text
    return f"+{text}" if sign and float(text) > 0 else text


def with_spread(mean: float, spread: float, places: int) -> str:
    """Return "mean ± standard deviation" with so many decimal places, more where the deviation needs them; or a mean.

    `places` are those of a column, by `decimals`, so that its points align; a deviation much larger than others has
    fewer, for four digits at most.
    """
    if math.isinf(mean):
        return str(mean)
    if not math.isfinite(spread):
        return rounded(mean, places)
    own = decimals([spread], ()) if spread else places
    if float(f"{spread:.{places}f}") == 0 < float(f"{spread:.{own}f}"):
        places = own
    if spread:
        places = min(places, max(3 - math.floor(math.log10(spread)), 0))
    return f"{rounded(mean, places)} ± {rounded(spread, places)}"
