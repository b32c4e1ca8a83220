"""Calibration: reliability diagrams of classes, and of regression the share of observations below each quantile."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import (
    Array,
    Figure,
    Report,
    Results,
    Section,
    Text,
    pit_values,
    quantile_curve,
    reliability_curve,
    style,
)
from bench.reports._lost_cells import best_method, lost_cells
from bench.reports._predictions import Predicted, left_out, predictions
from bench.reports._words import band

Points = dict[str, tuple[Array, Array, Array, Array]]  # x, mean, low, high of each method
LEVELS = 21
BINS = 10
FEWEST_ROWS = 10  # of a bin that is drawn


@dataclass(frozen=True)
class Reliability(Report):
    """One panel per dataset: on the diagonal a method is calibrated."""

    order = 26
    datasets: int = 6
    seeds: int = 5

    def section(self, results: Results) -> Section | None:
        """Return a figure of each task, or None where nothing is predicted."""
        found: dict[bool, dict[str, Points]] = {True: {}, False: {}}
        for dataset, predicted in predictions(results, self.datasets, self.seeds):
            for one in predicted:
                points = _of_classes(one) if one.classes else _of_numbers(one)
                if points is not None:
                    found[one.classes].setdefault(dataset, {})[one.method] = points
        drawn = sum(len(datasets) for datasets in found.values())
        rest = left_out(results, drawn)
        lost = lost_cells(results)
        figures = [_figure(classes, points, self.seeds, lost, rest) for classes, points in found.items() if points]
        if not figures:
            return None
        introduction = (
            "On the dashed diagonal, predictions hold what they promise. Classes: above it a method is less sure than "
            "it could be, below it too sure. Regression: an S that is flat in the middle means bands that are too "
            "narrow; the bands here are those of the draws alone, without observation noise."
        )
        return Section("Reliability and calibration", [Text(introduction), *figures])


def _of_classes(one: Predicted) -> tuple[Array, Array, Array, Array] | None:
    hits, confidences, rows = [], [], []
    for curves in one.curves:
        confidence = np.clip(curves.mean.max(axis=1), 0.0, 1.0)
        curve = reliability_curve(confidence, curves.mean.argmax(axis=1) == curves.observed, BINS)
        hits.append(np.nan_to_num(curve.accuracy) * curve.rows)
        confidences.append(np.nan_to_num(curve.confidence) * curve.rows)
        rows.append(curve.rows)
    total = np.sum(rows, axis=0)
    kept = total >= FEWEST_ROWS
    if not kept.any():
        return None
    x, share = np.sum(confidences, axis=0)[kept] / total[kept], np.sum(hits, axis=0)[kept] / total[kept]
    half = 1.96 * np.sqrt(share * (1 - share) / total[kept])  # rows of all seeds together
    return x, share, np.maximum(share - half, 0), np.minimum(share + half, 1)


def _of_numbers(one: Predicted) -> tuple[Array, Array, Array, Array] | None:
    known = [c for c in one.curves if np.isfinite(c.variance).all()]
    shares = [quantile_curve(pit_values(c.observed, c.mean, c.variance), LEVELS) for c in known]
    if not shares:
        return None
    mean, low, high = band(np.array([curve.observed for curve in shares]), (0.0, 1.0))
    return shares[0].expected, mean, low, high


def _figure(classes: bool, found: dict[str, Points], seeds: int, lost: dict[str, set[str]], rest: str) -> Figure:
    methods = list(dict.fromkeys(method for points in found.values() for method in points))
    numbers, findings = [], []
    with style.house_style():
        figure, axes = style.panels(len(found), width=3.0, height=2.7)
        for axis, (dataset, points) in zip(axes, found.items(), strict=True):
            axis.plot([0, 1], [0, 1], color=style.EVEN, linestyle=(0, (4, 3)), linewidth=1)
            gaps = {}
            for method, (x, mean, low, high) in points.items():
                look = style.look(method)
                axis.plot(x, mean, **look.of_line(), marker=look.marker if classes else "", markersize=3.5)
                if len(points) <= 8:
                    axis.fill_between(x, low, high, **look.of_band(0.13))
                gaps[method] = float(np.abs(mean - x).mean())
                count = len(x)
                numbers += list(zip([dataset] * count, [method] * count, x, mean, low, high, strict=True))
            findings.append(f"{dataset}: {best_method(gaps, lost.get(dataset, ()))}")
            axis.set_title(style.short(dataset))
            axis.set_xlabel("confidence" if classes else "predicted probability")
            axis.set_ylabel("share of right predictions" if classes else "share of observations below")
            axis.set_xlim(0, 1)
            axis.set_ylim(0, 1)
        style.legend(figure, methods)
    first = "confidence" if classes else "predicted probability"
    columns = ["dataset", "method", first, "observed share", "95 % low", "95 % high"]
    what = (
        f"Reliability: share of right predictions in {BINS} equal bins of confidence (bins of at least {FEWEST_ROWS} "
        "rows; bands: 95 % of a share of so many rows)"
        if classes
        else "Calibration: share of observations below each predicted quantile (bands: 95 % interval of the mean)"
    )
    caption = f"{what}, over up to {seeds} seeds. Closest to the diagonal: {'; '.join(findings)}.{rest}"
    name = "reliability" if classes else "calibration"
    return Figure(name, caption, figure, pd.DataFrame(numbers, columns=columns))
