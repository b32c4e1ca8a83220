"""Calibration, one panel per method: reliability diagrams of classes, and the quantiles of regression."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bench.api import (
    Array,
    Curves,
    Figure,
    Report,
    Results,
    Section,
    Text,
    pit_values,
    quantile_curve,
    reliability_curve,
    stats,
    style,
)
from bench.reports._lost_cells import best_method, lost_cells
from bench.reports._predictions import Predicted, left_out, predictions
from bench.reports._recalibrated import recalibrations
from bench.reports._words import band

LEVELS = 21
BINS = 10
FEWEST_ROWS = 10  # of a bin that is drawn
MOST_PANELS, MOST_COLUMNS = 25, 5
LINE_POINTS = 10.5  # from one line of a panel's text to the next
DRAWS, NOISE = "draws alone", "with observation noise"
ECE = "ece"  # stored metrics: the errors printed in the panels are those of all seeds
QUANTILE_ERRORS = {DRAWS: "quantile_error", NOISE: "quantile_error_noise"}
INTRODUCTION = (
    "On the dashed diagonal, predictions hold what they promise. Classes: above it a method is less sure than it could "
    "be, below it too sure; the bars are the share of rows in each bin of confidence. Regression: an S that is flat in "
    "the middle means bands that are too narrow. The draws alone state what the model does not know; with the "
    "observation noise that was fitted on held-out rows they state where observations lie."
)


@dataclass(frozen=True)
class Line:
    """What a method promised and what came true, with the ends of the 95 % band."""

    x: Array
    share: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Diagram:
    """One method on one dataset: its lines with their errors, and for classes the share of rows in each bin."""

    method: str
    lines: Mapping[str, Line]
    errors: Mapping[str, float]
    scaled: float = math.nan  # the error after a scaling that was fitted on validation rows
    histogram: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def error(self) -> float:
        """The error of the last line: with observation noise where it was fitted."""
        return list(self.errors.values())[-1]


@dataclass(frozen=True)
class Reliability(Report):
    """One figure per dataset with a panel per method: on the diagonal a method is calibrated."""

    order = 26
    datasets: int = 4
    seeds: int = 5

    def section(self, results: Results) -> Section | None:
        """Return a figure of each dataset, or None where nothing is predicted."""
        errors, lost, figures = _stored_errors(results), lost_cells(results), []
        for dataset, predicted in predictions(results, self.datasets, self.seeds):
            found = [_of_classes(one, errors) if one.classes else _of_numbers(one, errors) for one in predicted]
            diagrams = sorted((one for one in found if one is not None), key=lambda one: one.error)
            if diagrams:
                task = "classification" if predicted[0].classes else "regression"
                column = recalibrations(results).column(task, [dataset])
                figures.append(self._figure(dataset, _with_scaled(diagrams, column), lost.get(dataset, set()), column))
        if not figures:
            return None
        rest = left_out(results, len(figures)).strip()
        return Section("Reliability and calibration", [Text(f"{INTRODUCTION} {rest}".strip()), *figures])

    def _figure(
        self, dataset: str, diagrams: Sequence[Diagram], lost: set[str], scaled: stats.ScaledColumn | None
    ) -> Figure:
        drawn, classes = diagrams[:MOST_PANELS], diagrams[0].histogram.size > 0
        with style.house_style():
            most = math.ceil(len(drawn) / math.ceil(len(drawn) / MOST_COLUMNS))  # rows equally long
            figure, axes = style.panels(len(drawn), width=1.85, height=1.85, most=most, sharex=True, sharey=True)
            figure.set_figheight(figure.get_figheight() + 0.4)  # of the legend and the title of the whole
            for axis, diagram in zip(axes, drawn, strict=True):
                _panel(axis, diagram)
            figure.suptitle(style.short(dataset), x=0.01, ha="left", fontsize=9.5, weight="bold")
            for axis in axes[-most:]:  # the last of each column
                axis.set_xlabel("confidence" if classes else "predicted probability")
            figure.supylabel("share of right predictions" if classes else "share of observations below", fontsize=9)
            handles, names = max((axis.get_legend_handles_labels() for axis in axes), key=lambda found: len(found[1]))
            figure.legend(handles, names, loc="outside lower center", ncols=len(names), handlelength=2.6)
        hidden = f" {len(diagrams) - len(drawn)} more methods are in the data." if len(diagrams) > len(drawn) else ""
        recalibrated = f" Scaled, in italics: {scaled.scaling.metric} {scaled.after}." if scaled is not None else ""
        caption = f"{style.title(dataset)}: {self._words(diagrams, classes, lost)}{hidden}{recalibrated}"
        name = "reliability" if classes else "calibration"
        return Figure(f"{name}-{dataset}", caption, figure, _numbers(diagrams, classes))

    def _words(self, diagrams: Sequence[Diagram], classes: bool, lost: set[str]) -> str:
        """Return what a figure shows and which method is the best in it."""
        findings = []
        for kind in dict.fromkeys(kind for one in diagrams for kind in one.errors):
            errors = {one.method: one.errors[kind] for one in diagrams if kind in one.errors}
            whole = [error for method, error in errors.items() if method not in lost]
            span = f" ({min(whole):.3f}, the worst {max(errors.values()):.3f})" if whole else ""
            findings.append(f"{'' if classes else kind + ': '}{best_method(errors, lost)}{span}")
        if classes:
            return (
                f"share of right predictions in {BINS} equal bins of confidence (bins of at least {FEWEST_ROWS} rows "
                f"over up to {self.seeds} seeds; bands: 95 % of a share of so many rows), in the order of the ECE. "
                f"Lowest ECE: {'; '.join(findings)}."
            )
        return (
            "share of observations below each predicted quantile (bands: 95 % interval of the mean over up to "
            f"{self.seeds} seeds), in the order of the mean distance to the diagonal. Closest: {'; '.join(findings)}."
        )


def _with_scaled(diagrams: Sequence[Diagram], column: stats.ScaledColumn | None) -> list[Diagram]:
    """Add what a scaling makes of the errors; the order stays that of the raw ones."""
    known = {} if column is None else column.pairs
    return [replace(one, scaled=known.get(one.method, (math.nan, math.nan))[1]) for one in diagrams]


def _stored_errors(results: Results) -> dict[tuple[str, str, str], float]:
    """Return the mean over all seeds of the errors, by dataset, method and metric."""
    rows = results.frame[results.frame["metric"].isin([ECE, *QUANTILE_ERRORS.values()])]
    means = rows.groupby(["dataset", "method", "metric"])["value"].mean()
    places = means.index.to_frame().to_numpy(dtype=str)
    return {(d, m, metric): float(v) for (d, m, metric), v in zip(places, means, strict=True)}


def _of_classes(one: Predicted, stored: Mapping[tuple[str, str, str], float]) -> Diagram | None:
    hits, confidences, rows, errors = [], [], [], []
    for curves in one.curves:
        confidence, right = np.clip(curves.mean.max(axis=1), 0.0, 1.0), curves.mean.argmax(axis=1) == curves.observed
        curve = reliability_curve(confidence, right, BINS)
        hits.append(np.nan_to_num(curve.accuracy) * curve.rows)
        confidences.append(np.nan_to_num(curve.confidence) * curve.rows)
        rows.append(curve.rows)
        errors.append(_ece(confidence, right))
    total = np.sum(rows, axis=0)
    kept = total >= FEWEST_ROWS
    if not kept.any():
        return None
    x, share = np.sum(confidences, axis=0)[kept] / total[kept], np.sum(hits, axis=0)[kept] / total[kept]
    half = 1.96 * np.sqrt(share * (1 - share) / total[kept])  # rows of all seeds together
    line = Line(x, share, np.maximum(share - half, 0), np.minimum(share + half, 1))
    bars = np.append(total[: BINS - 1], total[BINS - 1 :].sum()) / total.sum()  # confidence 1 belongs to the last
    error = stored.get((one.dataset, one.method, ECE), float(np.mean(errors)))
    return Diagram(one.method, {"ECE": line}, {"ECE": error}, histogram=bars)


def _ece(confidence: Array, right: Array) -> float:
    """Return the mean over rows of the distance between accuracy and confidence in their bins."""
    curve = reliability_curve(confidence, right)
    return float(np.nansum(curve.rows * np.abs(curve.accuracy - curve.confidence)) / curve.rows.sum())


def _of_numbers(one: Predicted, stored: Mapping[tuple[str, str, str], float]) -> Diagram | None:
    variances: dict[str, Callable[[Curves], Array | None]] = {
        DRAWS: lambda curves: curves.variance,
        NOISE: lambda curves: curves.observation_variance,
    }
    lines, errors = {}, {}
    for kind, variance in variances.items():
        known = [(c, v) for c in one.curves if (v := variance(c)) is not None and np.isfinite(v).all()]
        pits = [pit_values(curves.observed, curves.mean, spread) for curves, spread in known]
        if pits:
            shares = [quantile_curve(pit, LEVELS) for pit in pits]
            lines[kind] = Line(shares[0].expected, *band(np.array([curve.observed for curve in shares]), (0.0, 1.0)))
            own = float(np.mean([np.abs(c.observed - c.expected).mean() for c in map(quantile_curve, pits)]))
            errors[kind] = stored.get((one.dataset, one.method, QUANTILE_ERRORS[kind]), own)
    return Diagram(one.method, lines, errors) if lines else None


def _panel(axis: Axes, diagram: Diagram) -> None:
    look, classes = style.look(diagram.method), diagram.histogram.size > 0
    if classes:
        edges = np.linspace(0, 1, BINS + 1)
        axis.stairs(diagram.histogram, edges, fill=True, color=style.EVEN, alpha=0.35, label="share of rows")
    axis.plot([0, 1], [0, 1], color=style.EVEN, linestyle=(0, (4, 3)), linewidth=1, label="calibrated")
    texts = []
    for kind, line in diagram.lines.items():
        drawn = {**look.of_line(), "linestyle": ":" if kind == DRAWS else "-"}
        axis.plot(line.x, line.share, **drawn, marker=look.marker if classes else "", markersize=3)
        axis.fill_between(line.x, line.low, line.high, **look.of_band(0.16))
        texts.append(f"{'ECE' if classes else 'draws' if kind == DRAWS else 'with noise'} {diagram.errors[kind]:.3f}")
        if not classes:  # in one colour for all panels
            axis.plot([], [], color=style.INK, linewidth=1.4, linestyle=drawn["linestyle"], label=kind)
    axis.text(0.05, 0.95, "\n".join(texts), transform=axis.transAxes, va="top", fontsize=8)
    if math.isfinite(diagram.scaled):
        below = (0, -LINE_POINTS * len(texts))
        look_of_text: dict[str, Any] = {"fontsize": 8, "style": "italic", "color": style.SOFT, "va": "top"}
        axis.annotate(
            f"scaled {diagram.scaled:.3f}", (0.05, 0.95), below, "axes fraction", "offset points", **look_of_text
        )
    axis.set_title(style.short(diagram.method), fontsize=8)
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 1)
    axis.grid(visible=False)
    axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axis.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])


def _numbers(diagrams: Sequence[Diagram], classes: bool) -> pd.DataFrame:
    first = "confidence" if classes else "predicted probability"
    recalibrated = any(math.isfinite(one.scaled) for one in diagrams)
    parts = []
    for one in diagrams:
        for kind, line in one.lines.items():
            columns = {first: line.x, "observed share": line.share, "95 % low": line.low, "95 % high": line.high}
            about = {"method": one.method, **({} if classes else {"variance": kind}), **columns}
            errors = {"ECE" if classes else "quantile error": one.errors[kind]}
            errors |= {"recalibrated": one.scaled} if recalibrated else {}
            parts.append(pd.DataFrame({**about, **errors}))
    return pd.concat(parts, ignore_index=True)
