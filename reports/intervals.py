"""Predictive intervals over a one-dimensional input, one panel per method, like Figure 1 of the MCNI paper."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bench.api import Curves, Figure, Report, Results, Section, style
from bench.reports._words import decimals

POINTS = "#56b4e9"
TRUTH = "#0173b2"
MOST_POINTS = 250  # drawn; more are one blot
MOST_PLACES = 150  # of bands and curves
MOST_PANELS = 9
TABLE_ROWS = 25  # of each method in the figure's table


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
            drawn: dict[str, Curves] = {}
            for row in first.itertuples():
                curves = results.curves(str(row.key))
                if curves is None or curves.x is None:
                    break  # the others of this dataset have no axis either
                if np.isfinite(curves.variance).all():
                    drawn[str(row.method)] = curves
            if drawn:
                figures.append(self._figure(str(dataset), int(first["seed"].iloc[0]), drawn))
        return Section("Predictive intervals", figures) if figures else None

    def _figure(self, dataset: str, seed: int, found: dict[str, Curves]) -> Figure:
        panels = dict(list(found.items())[:MOST_PANELS])
        findings, numbers = [], []
        widths = [2 * self.width * float(np.sqrt(curves.variance).mean()) for curves in panels.values()]
        places = max(decimals((), widths) - 1, 0)  # three digits
        with style.house_style():
            figure, axes = style.panels(len(panels), width=3.5, height=2.5, sharex=True, sharey=True)
            for axis, (method, curves) in zip(axes, panels.items(), strict=True):
                covered, wide = self._panel(axis, method, curves, places)
                findings.append(
                    f"{style.title(method)}: {100 * covered:.1f} % of the points inside, mean width {wide:.{places}f}"
                )
                numbers.append(self._rows(method, curves))
            handles, labels = axes[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=4)
        hidden = f" {len(found) - len(panels)} more methods are not drawn." if len(found) > len(panels) else ""
        caption = (
            f"{style.title(dataset)}, seed {seed}. Points: observations (at most {MOST_POINTS}); blue line: the "
            f"function without noise; the line without colour: mean prediction; shaded: mean ± {self.width:g} "
            f"standard deviations of the draws. {'; '.join(findings)}.{hidden}"
        )
        return Figure(f"intervals-{dataset}", caption, figure, pd.concat(numbers, ignore_index=True))

    def _rows(self, method: str, curves: Curves) -> pd.DataFrame:
        assert curves.x is not None
        order = np.argsort(curves.x[:, 0])
        chosen = order[np.linspace(0, len(order) - 1, min(TABLE_ROWS, len(order))).astype(int)]
        std = np.sqrt(curves.variance[chosen])
        mean, reach = curves.mean[chosen], self.width * std
        columns = {"x": curves.x[chosen, 0], "mean": mean, "low": mean - reach, "high": mean + reach}
        return pd.DataFrame({"method": method, **columns})

    def _panel(self, axis: Axes, method: str, curves: Curves, places: int) -> tuple[float, float]:
        assert curves.x is not None
        order = np.argsort(curves.x[:, 0])
        x, mean, std = curves.x[order, 0], curves.mean[order], np.sqrt(curves.variance[order])
        low, high = mean - self.width * std, mean + self.width * std
        some = np.linspace(0, len(x) - 1, min(MOST_POINTS, len(x))).astype(int)
        observed = curves.observed[order]
        covered = float(((observed >= low) & (observed <= high)).mean())
        wide = float((high - low).mean())
        style.dots(axis, x[some], observed[some], 2.4, label="observed", color=POINTS, alpha=0.8, zorder=1)
        band = f"±{self.width:g} std"
        drawn = np.linspace(0, len(x) - 1, min(MOST_PLACES, len(x))).astype(int)
        x, low, high, mean, order = x[drawn], low[drawn], high[drawn], mean[drawn], order[drawn]
        axis.fill_between(x, low, high, color="#949494", alpha=0.45, linewidth=0, label=band, zorder=2)
        if curves.truth is not None:
            axis.plot(x, curves.truth[order], color=TRUTH, linewidth=1.6, label="truth", zorder=3)
        axis.plot(x, mean, color=style.INK, linewidth=1.3, label="mean", zorder=4)
        axis.set_title(f"{style.short(method)}\nMPIW {wide:.{places}f}, PICP {covered:.3f}")
        axis.set_xlabel("x")
        axis.set_ylabel("y")
        # The band of an extreme method must not squeeze the data of all panels.
        spread = np.ptp(curves.observed)
        axis.set_ylim(curves.observed.min() - 0.25 * spread, curves.observed.max() + 0.45 * spread)
        return covered, wide
