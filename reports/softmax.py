"""Softmax under growing noise: one image, the outputs of its class and of the rival, draw by draw (paper, Fig. 2)."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bench.api import Array, Block, Figure, Report, Results, Section, Table, Text, plural, style

TRUE, RIVAL = style.COLOURS[0], style.COLOURS[3]
MOST_PANELS = 12
MOST_DRAWS = 60  # points per level and class


@dataclass(frozen=True)
class Softmax(Report):
    """One panel per method for the first seed; the level at which the mean prediction flips, over all seeds."""

    order = 27
    subject = True

    def section(self, results: Results) -> Section | None:
        """Return a figure and a table for each dataset with the demonstration, or None."""
        blocks: list[Block] = []
        cells = results.cells[results.cells["status"] == "ok"]
        for dataset, rows in cells.groupby("dataset", sort=True):
            first = rows[rows["seed"] == rows["seed"].min()]
            found = {str(row.method): pair for row in first.itertuples() if (pair := _stored(results, str(row.key)))}
            if found:
                blocks.append(_figure(str(dataset), int(first["seed"].iloc[0]), found))
                blocks.append(_flips(results, str(dataset), rows, found))
        if not blocks:
            return None
        introduction = (
            "Gaussian noise of growing standard deviation is added to one test image. Points are draws, lines their "
            "means. A method that doubts spreads its draws before it changes its mind."
        )
        return Section("Softmax under noise", [Text(introduction), *blocks])


def _stored(results: Results, key: str) -> tuple[Array, Array] | None:
    arrays = results.arrays(key)
    if "levels" not in arrays or "softmax" not in arrays:
        return None
    levels, softmax = np.asarray(arrays["levels"]), np.asarray(arrays["softmax"])
    fits = softmax.ndim == 3 and softmax.shape[0] == len(levels) and softmax.shape[2] == 2
    return (levels, softmax) if fits else None


def _figure(dataset: str, seed: int, found: dict[str, tuple[Array, Array]]) -> Figure:
    panels = dict(list(found.items())[:MOST_PANELS])
    numbers, findings = [], []
    with style.house_style():
        figure, axes = style.panels(len(panels), width=3.6, height=2.5, most=2, sharex=True, sharey=True)
        for axis, (method, (levels, softmax)) in zip(axes, panels.items(), strict=True):
            _panel(axis, method, levels, softmax)
            mean, std = softmax.mean(axis=1), softmax.std(axis=1, ddof=1 if softmax.shape[1] > 1 else 0)
            numbers += [(method, level, *mean[i], *std[i]) for i, level in enumerate(levels)]
            flips = np.flatnonzero(mean[:, 1] > mean[:, 0])
            findings.append(f"{style.title(method)} {f'from {levels[flips[0]]:g}' if len(flips) else 'never'}")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    columns = ["method", "noise std", "true class", "rival class", "std of true class", "std of rival class"]
    caption = (
        f"{style.title(dataset)}, seed {seed}: softmax outputs of the true class (blue) and of its rival (orange) "
        f"against the standard deviation of the noise on the image. The rival's mean is above: {'; '.join(findings)}."
    )
    return Figure(f"softmax-{dataset}", caption, figure, pd.DataFrame(numbers, columns=columns))


def _panel(axis: Axes, method: str, levels: Array, softmax: Array) -> None:
    step = float(np.min(np.diff(levels))) if len(levels) > 1 else 1.0
    some = softmax[:, :MOST_DRAWS]
    # A fixed fan instead of random jitter, so that the same results give the same figure.
    fan = np.linspace(-0.18, 0.18, some.shape[1]) * step if some.shape[1] > 1 else np.zeros(1)
    for number, (colour, words, marker) in enumerate(((TRUE, "true class", "o"), (RIVAL, "rival class", "^"))):
        x, line = (levels[:, None] + fan[None, :]).ravel(), "-" if number == 0 else "--"
        axis.plot(x, some[:, :, number].ravel(), marker, markersize=2, color=colour, alpha=0.35)
        axis.plot(levels, softmax[:, :, number].mean(axis=1), line, color=colour, linewidth=1.6, label=words)
    axis.set_title(style.short(method))
    axis.set_xlabel("noise on the image (standard deviation)")
    axis.set_ylabel("softmax output")
    axis.set_ylim(-0.03, 1.03)


def _flips(results: Results, dataset: str, cells: pd.DataFrame, found: dict[str, tuple[Array, Array]]) -> Table:
    frame = results.frame
    flips = frame[(frame["dataset"] == dataset) & (frame["metric"] == "flip_level")]
    rows = []
    for method in found:
        runs = int((cells["method"] == method).sum())
        values = flips.loc[flips["method"] == method, "value"].to_numpy(dtype=float)
        # An image that keeps its class has a level above the highest: left out, it would lower the mean of the others.
        levels = np.sort(np.append(values, np.full(runs - len(values), math.inf)))
        rows.append(
            {
                "method": method,
                "median level of the flip": _level(levels[(len(levels) - 1) // 2]),
                "lowest": _level(levels[0]),
                "highest": _level(levels[-1]),
                "flipped in": f"{len(values)} of {plural(runs, 'run')}",
            }
        )
    caption = f"{dataset}: noise at which the mean prediction flips, over all runs (higher is better)"
    paper = (
        f"Standard deviation of the noise on an image of `{dataset}` at which the mean prediction changes to the rival "
        "class, interpolated between levels: (lower) median, lowest and highest of all runs; a run whose prediction "
        "never changes counts as beyond the highest level. Higher is better."
    )
    return Table(caption, pd.DataFrame(rows), name=f"flip-level-{dataset}", paper_caption=paper)


def _level(value: float) -> str:
    return "beyond the highest" if math.isinf(value) else f"{value:.4g}"
