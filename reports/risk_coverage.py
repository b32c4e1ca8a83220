"""Risk-coverage curves: the error of the rows kept when the most uncertain are left to others (paper, Fig. 3)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Array, Curves, Figure, Report, Results, Section, Text, risk_coverage_curve, sort_by_score, style
from bench.reports._lost_cells import best_method, lost_cells
from bench.reports._predictions import Predicted, left_out, predictions
from bench.reports._words import band

GRID = np.linspace(0.05, 1.0, 20)  # of coverage


@dataclass(frozen=True)
class RiskCoverage(Report):
    """One panel per dataset, one curve per method, bands over seeds."""

    order = 25
    datasets: int = 6
    seeds: int = 5

    def section(self, results: Results) -> Section | None:
        """Return the figure, or None where no method has an uncertainty to sort by."""
        found = {}
        for dataset, predicted in predictions(results, self.datasets, self.seeds):
            curves = {one.method: risks for one in predicted if (risks := _risks(one)) is not None}
            if curves:
                found[dataset] = (predicted[0].classes, curves)
        if not found:
            return None
        introduction = (
            "Rows are sorted by predicted uncertainty (variance; for classes, 1 minus the confidence), "
            "and only the most certain share is kept. A method that knows what it does not know has a curve that falls "
            "to the left."
        )
        return Section("Risk and coverage", [Text(introduction), self._figure(results, found)])

    def _figure(self, results: Results, found: dict[str, tuple[bool, dict[str, Array]]]) -> Figure:
        methods = list(dict.fromkeys(method for _, curves in found.values() for method in curves))
        numbers, best, lost = [], [], lost_cells(results)
        with style.house_style():
            figure, axes = style.panels(len(found), width=3.3, height=2.5)
            for axis, (dataset, (classes, curves)) in zip(axes, found.items(), strict=True):
                means = {}
                for method, risks in curves.items():
                    mean, low, high = band(risks, (0.0, 1.0 if classes else np.inf))
                    means[method] = float(mean.mean())
                    axis.plot(GRID, mean, **style.look(method).of_line())
                    if len(curves) <= 8:  # beyond, bands hide each other
                        axis.fill_between(GRID, low, high, **style.look(method).of_band())
                    numbers += list(zip([dataset] * 20, [method] * 20, GRID.round(2), mean, low, high, strict=True))
                best.append(f"{dataset}: {best_method(means, lost.get(dataset, ()))}")
                axis.set_title(style.short(dataset))
                axis.set_xlabel("coverage (share of rows kept)")
                axis.set_ylabel("error rate" if classes else "RMSE (target unit)")
                axis.set_xlim(0, 1)
            style.legend(figure, methods)
        data = pd.DataFrame(numbers, columns=["dataset", "method", "coverage", "risk", "95 % low", "95 % high"])
        caption = (
            f"Risk against coverage, mean over up to {self.seeds} seeds with the 95 % interval of the mean as a band; "
            f"lower is better. Lowest curve on average: {'; '.join(best)}.{left_out(results, len(found))}"
        )
        return Figure("risk-coverage", caption, figure, data)


def _risks(one: Predicted) -> Array | None:
    curves = [risks for curves in one.curves if (risks := _risk(curves)) is not None]
    return np.array(curves) if curves else None


def _risk(curves: Curves) -> Array | None:
    if curves.mean.ndim == 2:
        uncertainty = 1.0 - curves.mean.max(axis=1)
        loss = (curves.mean.argmax(axis=1) != curves.observed).astype(float)
    else:
        uncertainty, loss = curves.variance, np.square(curves.mean - curves.observed)
        if not np.isfinite(uncertainty).all():
            return None  # one draw has no variance
    curve = risk_coverage_curve(sort_by_score(uncertainty, loss), root=curves.mean.ndim == 1)
    kept = np.ceil(GRID * len(loss) - 1e-9).astype(int) - 1
    return np.asarray(curve.risk[np.maximum(kept, 0)])
