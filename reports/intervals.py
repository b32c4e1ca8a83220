"""Predictive intervals over a one-dimensional input, one panel a method, like Figure 1 of the MCNI paper."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as MatplotlibFigure

from bench.api import Curves, Figure, Report, Results, Section


@dataclass(frozen=True)
class Intervals(Report):
    """Data, truth, mean prediction and the band of mean ± `width` standard deviations, for the first seed."""

    width: float = 3.0

    order = 20

    def section(self, results: Results) -> Section | None:
        """Return one figure for each dataset that can be drawn over its input."""
        figures = []
        cells = results.cells[results.cells["status"] == "ok"]
        for dataset, rows in cells.groupby("dataset", sort=True):
            first = rows[rows["seed"] == rows["seed"].min()]
            panels = {row.method: results.curves(row.key) for row in first.itertuples()}
            drawn = {
                method: c for method, c in panels.items() if c and c.x is not None and np.isfinite(c.variance).all()
            }
            if drawn:
                figures.append(self._figure(str(dataset), int(first["seed"].iloc[0]), drawn))
        return Section("Predictive intervals", figures) if figures else None

    def _figure(self, dataset: str, seed: int, panels: dict[str, Curves]) -> Figure:
        columns = 2 if len(panels) in (2, 4) else min(3, len(panels))
        rows = -(-len(panels) // columns)
        figure = MatplotlibFigure(figsize=(4.2 * columns, 3.1 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        said = []
        for axis, (method, curves) in zip(axes, panels.items(), strict=False):
            covered, wide = self._panel(axis, method, curves)
            said.append(f"{method}: {covered:.1%} of the points inside, mean width {wide:.3g}")
        axes[0].legend(loc="upper center", fontsize=8, ncols=2, frameon=False)
        caption = (
            f"{dataset}, seed {seed}. Points: observations; blue line: the function without noise; black line: mean "
            f"prediction; shaded: mean ± {self.width:g} standard deviations of the draws. {'; '.join(said)}."
        )
        return Figure(f"intervals-{dataset}", caption, figure)

    def _panel(self, axis: Axes, method: str, curves: Curves) -> tuple[float, float]:
        assert curves.x is not None
        order = np.argsort(curves.x[:, 0])
        x, mean, std = curves.x[order, 0], curves.mean[order], np.sqrt(curves.variance[order])
        low, high = mean - self.width * std, mean + self.width * std
        axis.scatter(curves.x[:, 0], curves.observed, s=6, color="#9ecae9", label="observed", zorder=1)
        axis.fill_between(
            x, low, high, color="#7f7f7f", alpha=0.45, linewidth=0, label=f"±{self.width:g} std", zorder=2
        )
        if curves.truth is not None:
            axis.plot(x, curves.truth[order], color="#08519c", linewidth=1.6, label="truth", zorder=3)
        axis.plot(x, mean, color="black", linewidth=1.3, label="mean", zorder=4)
        observed = curves.observed[order]
        covered = float(((observed >= low) & (observed <= high)).mean())
        wide = float((high - low).mean())
        axis.set_title(f"{method}\nMPIW = {wide:.4f}, PICP = {covered:.3f}", fontsize=10, parse_math=False)
        axis.set_xlabel("x")
        axis.set_ylabel("y")
        # The band of an extreme method must not squeeze the data of all panels.
        spread = np.ptp(curves.observed)
        axis.set_ylim(curves.observed.min() - 0.25 * spread, curves.observed.max() + 0.45 * spread)
        return covered, wide
