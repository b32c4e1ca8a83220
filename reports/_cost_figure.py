"""Quality against cost: which methods nothing beats in both, by training and by passes per prediction."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from bench.api import Figure, style
from bench.reports._costs import MethodCost
from bench.reports._standings import Board
from bench.reports._words import arrow

# Groups that are drawn beside the metric that the suite names first, as far as there are two.
PANELS = ("prediction", "likelihood", "calibration")
MOST = 2
AXES = {
    "training": "epochs of all networks, times the baseline's",
    "passes": "forward passes per prediction",
    "latency": "latency (ms per 1,000 rows)",
}


def pareto(name: str, boards: Sequence[Board], costs: Mapping[str, MethodCost]) -> Figure | None:
    """Return quality against every cost in which methods differ; None where they do not."""
    chosen = [board for board in boards if board is boards[0] or board.headline.group in PANELS][:MOST]
    values = {
        "training": {m: cost.training for m, cost in costs.items()},
        "passes": {m: cost.most_passes for m, cost in costs.items()},
        "latency": {m: cost.latency for m, cost in costs.items()},
    }
    kinds = [kind for kind, own in values.items() if len({v for v in own.values() if v > 0}) > 1]
    if "latency" in kinds and "passes" in kinds:
        kinds.remove("passes")  # a time says more than a count
    panels = [(board, kind, points) for kind in kinds for board in chosen if (points := _points(board, values[kind]))]
    if not panels:
        return None
    tables, findings, longest = [], [], 0
    with style.house_style():
        figure, axes = style.panels(len(panels), width=5.0, height=2.6, most=2)
        for axis, (board, kind, points) in zip(axes, panels, strict=True):
            front = unbeaten(points, board)
            longest = max(longest, len(front))
            line = sorted((points[method] for method in front), key=lambda point: point[0])
            axis.step(*zip(*line, strict=True), where="post", color=style.SOFT, linewidth=1, linestyle=(0, (3, 2)))
            for method, (cost, value) in points.items():
                interval = board.standings[method].value
                if interval.has_interval:
                    ends = [interval.low, interval.high]
                    axis.plot([cost, cost], ends, color=style.look(method).hex, linewidth=0.9, alpha=0.5)
                (point,) = axis.plot(cost, value, linestyle="none", **style.look(method).of_points())
                style.hover(point, [f"{method}: {board.metric.name} {value:.4g}, {kind} {cost:.3g}"])
            style.plain_logarithmic(axis, x=True)
            axis.set_xlabel(AXES[kind])
            axis.set_ylabel(
                f"{style.title(board.metric.name)} {arrow(board.metric)}" + (" (%)" if board.percent else "")
            )
            findings.append(f"{style.title(board.metric.name)} by {kind}: {', '.join(map(style.title, front))}")
            rows = [(board.metric.name, kind, m, *points[m], "yes" if m in front else "no") for m in points]
            tables.append(pd.DataFrame(rows, columns=["metric", "cost", "method", "cost of it", "value", "front"]))
        style.legend(figure, list(dict.fromkeys(m for _, _, points in panels for m in points)), points=True)
    where = "On the dashed front no other method is both cheaper and better"
    if longest == 1:  # a single point has no line
        where = "No other method is both cheaper and better than the one named"
    caption = (
        "Quality against cost, one point per method: means with their 95 % intervals, without tests. "
        f"{where}: {'; '.join(findings)}."
    )
    return Figure(name, caption, figure, pd.concat(tables, ignore_index=True))


def _points(board: Board, costs: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return cost and value of each method that has both, and a finite value in every planned repeat."""
    found = {
        method: (costs[method], one.value.value)
        for method, one in board.standings.items()
        if one.whole and costs.get(method, math.nan) > 0
    }
    return found if len(found) > 1 else {}


def unbeaten(points: Mapping[str, tuple[float, float]], board: Board) -> list[str]:
    """Return the methods that no other beats in cost or value without being worse in the other, the cheapest first."""
    losses = {method: (cost, board.standings[method].loss) for method, (cost, _) in points.items()}
    kept = [
        method
        for method, own in losses.items()
        if not any(a <= own[0] and b <= own[1] and (a, b) != own for a, b in losses.values())
    ]
    return sorted(kept, key=lambda method: losses[method])
