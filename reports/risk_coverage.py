"""Risk-coverage curves: the error of the rows kept when the most uncertain are left to others (paper, Fig. 3)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Array, Curves, Figure, Report, Results, Section, Text, risk_coverage_curve, sort_by_score, style
from bench.reports._highlights import about_grey, highlighted, line_of
from bench.reports._lost_cells import best_method, lost_cells
from bench.reports._predictions import Predicted, left_out, predictions
from bench.reports._words import band

GRID = np.linspace(0.05, 1.0, 20)  # of coverage
HEIGHT = 2.7  # inches of a panel


@dataclass(frozen=True)
class RiskCoverage(Report):
    """One panel per dataset; the best methods have colours, bands over seeds and their names beside the curves."""

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
            "to the left. Two methods are not told apart where the 95 % interval of the difference of their mean risk "
            "on the same seeds holds 0, each pair by itself."
        )
        return Section("Risk and coverage", [Text(introduction), self._figure(results, found)])

    def _figure(self, results: Results, found: dict[str, tuple[bool, dict[str, Array]]]) -> Figure:
        numbers, best, lost = [], [], lost_cells(results)
        with style.house_style():
            figure, axes = style.panels(len(found), width=4.3, height=HEIGHT, most=2)
            for axis, (dataset, (classes, curves)) in zip(axes, found.items(), strict=True):
                bands = {method: band(risks, (0.0, 1.0 if classes else np.inf)) for method, risks in curves.items()}
                means = {method: float(mean.mean()) for method, (mean, _, _) in bands.items()}
                chosen = highlighted(means, results.baseline)
                for method, (mean, low, high) in bands.items():
                    axis.plot(GRID, mean, **line_of(method, chosen))
                    if method in chosen:
                        axis.fill_between(GRID, low, high, **style.look(method).of_band(0.1))
                    numbers += list(zip([dataset] * 20, [method] * 20, GRID.round(2), mean, low, high, strict=True))
                best.append(f"{style.title(dataset)}: {_finding(curves, means, lost.get(dataset, set()))}")
                axis.set_title(style.short(dataset))
                axis.set_xlabel("coverage (share of rows kept)")
                axis.set_ylabel("error rate (lower is better)" if classes else "RMSE (target unit, lower is better)")
                axis.set_xlim(0, 1)
                tops = {method: float(mean.max()) for method, (mean, _, _) in bands.items()}
                # A method that is far off must not squeeze the curves that stand out.
                top = min(max(tops.values()), 2 * max(tops[method] for method in chosen))
                least = min(float(mean.min()) for mean, _, _ in bands.values())
                least = 0.0 if least < 0.4 * top else least - 0.15 * (top - least)
                axis.set_ylim(least, top + 0.08 * (top - least) if top > least else None)
                style.label_ends(axis, {method: (1.0, float(bands[method][0][-1])) for method in chosen}, HEIGHT - 0.7)
        data = pd.DataFrame(numbers, columns=["dataset", "method", "coverage", "risk", "95 % low", "95 % high"])
        methods = max(len(curves) for _, curves in found.values())
        seeds = max(len(risks) for _, curves in found.values() for risks in curves.values())
        over = (
            f"mean over up to {seeds} seeds with the 95 % interval of the mean as a band" if seeds > 1 else "one seed"
        )
        caption = (
            f"Risk against coverage, {over}. "
            f"Lowest curve on average: {'; '.join(best)}.{about_grey(methods, 'by that average')}"
            f"{left_out(results, len(found))}"
        )
        return Figure("risk-coverage", caption, figure, data)


def _finding(curves: Mapping[str, Array], means: Mapping[str, float], lost: Collection[str]) -> str:
    """Return the method of the lowest curve, and how many others its seeds do not tell from it."""
    if len(means) > 1 and max(means.values()) == min(means.values()):
        return "the same for all methods"
    best = best_method(means, lost)
    whole = {method: means[method] for method in curves if method not in lost}
    if not whole:
        return best
    first = min(whole, key=lambda method: whole[method])
    own, alike = curves[first].mean(axis=1), []
    for method in whole:
        other = curves[method].mean(axis=1)
        if method == first or len(other) != len(own):
            continue
        _, low, _ = band(other - own, (-np.inf, np.inf))
        alike += [method] if len(own) < 2 or low <= 0 else []
    if not alike:
        return best
    names = ", ".join(style.title(method) for method in alike) if len(alike) <= 3 else f"{len(alike)} others"
    return f"{best}, not told apart from {names}"


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
