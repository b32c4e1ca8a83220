"""A forest plot: every method's difference to the baseline with its interval, one panel per metric."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bench.api import Figure, style
from bench.reports._standings import Board, Estimate, Standing
from bench.reports._words import arrow, verdict_word

COLOURS = {"better": style.BETTER, "worse": style.WORSE}  # of verdicts; EVEN of the others
MANY = 14  # methods from which on a row of panels is a figure
FAR = 3.0  # times the typical reach of a panel's intervals: what lies beyond is drawn at the edge
COLUMNS = ["metric", "method", "dataset", "gain", "95 % low", "95 % high", "verdict"]
Row = tuple[str, str, str, float, float, float, str]


def forests(name: str, baseline: str, boards: Sequence[Board]) -> list[Figure]:
    """Return the figure of one task's boards, none where nothing is compared with the baseline.

    With many methods every row of panels is a figure of its own, which fits half a printed page.
    """
    drawn = [board for board in boards if any(one.difference for one in board.standings.values())]
    methods = [m for m in dict.fromkeys(m for board in drawn for m in board.standings) if m != baseline]
    methods = drawn[0].order(methods) if drawn else []  # as in the table
    most = 3 if len(drawn) != 4 else 2
    each = most if len(methods) > MANY else max(len(drawn), 1)
    groups = [drawn[first : first + each] for first in range(0, len(drawn), each)]
    several = any(len(board.datasets) > 1 for board in drawn)
    every = [one for board in drawn for one in board.standings.values()]
    ends = " with its 95 % interval" if any(one.difference and one.difference.has_interval for one in every) else ""
    shape = (
        f"Diamonds: the mean over datasets{ends}; circles: single datasets" if several else f"Circles: the mean{ends}"
    )
    if any(one.tested for one in every):
        shape += (
            ", filled where a test shows the difference after correction (blue: better, orange: worse), open grey "
            "where none does"
        )
    figures = []
    for number, group in enumerate(groups, start=1):
        caption = (
            f"Gain over {style.title(baseline)} by each metric, on the same splits and seeds; to the right of 0 the "
            f"method is better. {shape}. An arrow at the edge: beyond the axis. "
            if number == 1
            else f"The same by {' and '.join(style.title(board.metric.name) for board in group)}. "
        )
        own = f"{name}-{number}" if number > 1 else name
        figures.append(_figure(own, caption + _finding(group), group, methods, most))
    return figures


def _figure(name: str, caption: str, boards: Sequence[Board], methods: Sequence[str], most: int) -> Figure:
    numbers: list[Row] = []
    with style.house_style():
        height = max(1.7, 0.75 + 0.25 * len(methods))
        width = 3.6 if most == 3 else 5.0
        figure, axes = style.panels(len(boards), width=width, height=height, most=most, sharey=True)
        for axis, board in zip(axes, boards, strict=True):
            numbers += _panel(axis, board, methods)
    return Figure(name, caption, figure, pd.DataFrame(numbers, columns=COLUMNS))


def _panel(axis: Axes, board: Board, methods: Sequence[str]) -> list[Row]:
    metric = board.metric
    sign = 1.0 if metric.direction == "higher" else -1.0
    factor = dict.fromkeys(board.datasets, 1.0)
    rows: list[Row] = []
    axis.axvline(0, color=style.INK, linewidth=0.8)
    known = {m: board.standings[m] for m in methods if m in board.standings and board.standings[m].difference}
    for method, one in known.items():
        rows += _rows(board, method, one, sign)
    reach = _reach([(gain, low, high) for _, _, _, gain, low, high, _ in rows])
    for method, one in known.items():
        place = methods.index(method)
        own = [row for row in rows if row[1] == method]
        for colour in dict.fromkeys(COLOURS.get(row[6], style.EVEN) for row in own if row[2] in factor):
            alike = [r for r in own if r[2] in factor and COLOURS.get(r[6], style.EVEN) == colour]
            x = [float(np.clip(row[3], -reach, reach)) for row in alike]
            face = style.PAPER if colour == style.EVEN else colour
            size = 4.0 if len(board.datasets) > 1 else 5.5
            (points,) = axis.plot(
                x, [place] * len(x), "o", markersize=size, color=colour, markerfacecolor=face, zorder=3
            )
            style.hover(points, [_hover(row, board.percent) for row in alike])
        _interval(axis, place, own[-1], reach, one, len(board.datasets) > 1, board.percent)
    axis.set_xlim(-1.08 * reach, 1.08 * reach)
    axis.set_yticks(range(len(methods)), [style.short(method) for method in methods])
    axis.set_ylim(len(methods) - 0.5, -0.5)
    axis.locator_params(axis="x", nbins=5)
    axis.set_title(f"{style.title(metric.name)} {arrow(metric)}", parse_math=False)
    unit = "%" if board.percent else metric.unit if metric.unit not in ("1", "", "probability") else ""
    distance = "distance to target, " if metric.direction == "target" else ""
    axis.set_xlabel(f"gain ({distance}{unit})" if unit else f"gain ({distance.rstrip(', ')})" if distance else "gain")
    return rows


def _rows(board: Board, method: str, one: Standing, sign: float) -> list[Row]:
    """Return the gains of a method on every dataset, then its mean over them."""
    rows: list[Row] = []
    for dataset, row in one.on.items():
        scale = 100 / abs(row.mean_b) if board.percent and row.mean_b else 1.0
        low, high = (row.interval.low, row.interval.high) if row.interval else (math.nan, math.nan)
        if math.isfinite(row.difference):
            gain = Estimate(row.difference, low, high).scaled(sign * scale)
            rows.append((board.metric.name, method, dataset, gain.value, *sorted_ends(gain), verdict_word(row)))
    if len(board.datasets) > 1 and one.difference is not None:
        gain = one.difference.scaled(sign)
        rows.append((board.metric.name, method, "all datasets", gain.value, *sorted_ends(gain), ""))
    return rows


def sorted_ends(estimate: Estimate) -> tuple[float, float]:
    """Return the ends of an interval, the lower one first, also after a change of sign."""
    return min(estimate.low, estimate.high), max(estimate.low, estimate.high)


def _reach(rows: Sequence[tuple[float, float, float]]) -> float:
    """Return how far a panel goes to both sides: to its farthest end, but not for one that is far from all others."""
    sizes = [max(abs(end) for end in row if math.isfinite(end)) for row in rows]
    typical = float(np.quantile(sizes, 0.75)) if sizes else 0.0
    farthest = max(sizes, default=1.0)
    return min(farthest, FAR * typical) if typical > 0 else farthest or 1.0


def _interval(axis: Axes, place: int, row: Row, reach: float, one: Standing, several: bool, percent: bool) -> None:
    _, _, _, gain, low, high, _ = row
    if math.isfinite(low) and math.isfinite(high) and low <= reach and high >= -reach:
        ends = [max(low, -reach), min(high, reach)]
        axis.plot(ends, [place, place], color=style.INK if several else style.SOFT, linewidth=1.4, zorder=2)
        for end, edge, marker in ((low, -reach, "<"), (high, reach, ">")):
            if abs(end) > reach and end * edge > 0:
                axis.plot(edge, place, marker, markersize=4, color=style.SOFT, zorder=2)
    if abs(gain) > reach:
        axis.plot(math.copysign(reach, gain), place, ">" if gain > 0 else "<", markersize=6, color=style.INK, zorder=5)
    elif several:
        (point,) = axis.plot(gain, place, "D", markersize=5, color=style.INK, zorder=5)
        style.hover(point, [_hover(row, percent)])


def _hover(row: Row, percent: bool) -> str:
    metric, method, dataset, gain, low, high, verdict = row
    unit = " %" if percent else ""
    ends = f" ({low:+.3g} to {high:+.3g})" if math.isfinite(low) and math.isfinite(high) else ""
    return f"{method}: {metric} on {dataset}, gain {gain:+.3g}{unit}{ends}" + (f", {verdict}" if verdict else "")


def _finding(boards: Sequence[Board]) -> str:
    """Return which method gains most by each metric among those that a test shows to be better somewhere."""
    if not any(one.tested for board in boards for one in board.standings.values()):
        return "Not tested: too few repeats."
    found = []
    for board in boards:
        sign = 1.0 if board.metric.direction == "higher" else -1.0
        gains = {m: sign * one.difference.value for m, one in board.standings.items() if one.difference is not None}
        shown = {m: gain for m, gain in gains.items() if board.standings[m].has_verdict("better") and gain > 0}
        if shown:
            found.append(f"{style.title(max(shown, key=lambda m: shown[m]))} by {style.title(board.metric.name)}")
    return (
        f"Largest gain that was shown: {'; '.join(found)}." if found else "No gain was shown by any of these metrics."
    )
