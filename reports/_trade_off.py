"""Trade-off curves: what every level of a sweep gives on each repeat, and two curves at equal width."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from bench.api import Array, stats
from bench.reports._variants import COVERAGE, WIDTH, Sweep

SCORES = ("winkler", "crps")  # both weigh width and coverage by one number
HIGHER: dict[str, Literal["higher"]] = {COVERAGE: "higher"}  # at equal width; on its own coverage has a target
WIDTHS = 5  # at which two curves are compared
GRID = 65  # points of the mean over a range of widths
RANGE = "mean over these widths"
OWN = "widths of its own levels"

Repeat = tuple[int, int]  # split and seed


@dataclass(frozen=True, eq=False)
class Curve:
    """One sweep on one dataset: values `[repeat, level]` of each metric, at the repeats that every level has."""

    sweep: Sweep
    repeats: tuple[Repeat, ...]
    values: Mapping[str, Array]

    def at(self, widths: Array, metric: str) -> Array:
        """Return a metric at these widths `[repeat, width]`, interpolated between the levels of the same repeat."""
        rows = []
        for wanted, width, value in zip(widths, self.values[WIDTH], self.values[metric], strict=True):
            order = np.argsort(width)  # a learned level may end in another order than it began
            rows.append(np.interp(wanted, width[order], value[order]))
        return np.asarray(rows)

    def widening(self) -> "Curve":
        """Return the curve up to the level of the widest intervals on average: beyond it, noise widens them no more."""
        kept = int(self.values[WIDTH].mean(axis=0).argmax()) + 1
        levels = dict(list(self.sweep.levels.items())[:kept])
        values = {name: rows[:, :kept] for name, rows in self.values.items()}
        return Curve(replace(self.sweep, levels=levels), self.repeats, values)

    def only(self, repeats: Sequence[Repeat]) -> "Curve":
        """Return the curve at some of its repeats."""
        places = [self.repeats.index(repeat) for repeat in repeats]
        return Curve(self.sweep, tuple(repeats), {name: rows[places] for name, rows in self.values.items()})


def curve_of(sweep: Sweep, rows: pd.DataFrame) -> Curve | None:
    """Return the curve of a sweep from the rows of one dataset; None where no repeat has a value of every level."""
    own = rows[rows["method"].isin(list(sweep.levels)) & rows["metric"].isin([WIDTH, COVERAGE, *SCORES])]
    table = own.pivot_table(index=["split", "seed"], columns=["metric", "method"], values="value")
    names = [name for name in (WIDTH, COVERAGE, *SCORES) if all((name, label) in table for label in sweep.levels)]
    columns = [(name, label) for name in names for label in sweep.levels]
    table = table[columns].replace([np.inf, -np.inf], np.nan).dropna()
    if not {WIDTH, COVERAGE} <= set(names) or table.empty:
        return None
    values = {name: table[name][list(sweep.levels)].to_numpy(dtype=float) for name in names}
    return Curve(sweep, tuple((int(split), int(seed)) for split, seed in table.index), values)


@dataclass(frozen=True)
class AtWidth:
    """Two curves at one width (or over a range of them, in words), by every metric that both have."""

    width: str
    rows: Mapping[str, stats.DatasetComparison]


def at_equal_width(a: Curve, b: Curve, dataset: str, cells: pd.DataFrame) -> list[AtWidth]:
    """Return A against B at equal widths; [] where no repeat of A has a level within the widths of B.

    First at widths that every repeat of both curves reaches, if there are any, and on average over them; then at the
    widths of A's own levels, where they are within those of B, averaged for each repeat. A repeat of A is compared with
    the same repeat of B. All comparisons are one family.
    """
    shared = [repeat for repeat in a.repeats if repeat in set(b.repeats)]
    if not shared:
        return []
    a, b = (curve.only(shared).widening() for curve in (a, b))
    metrics = [name for name in a.values if name != WIDTH and name in b.values]
    parts = _over_range(a, b, metrics) | _at_own_widths(a, b, metrics)
    if not parts:
        return []
    place = pd.DataFrame(shared, columns=["split", "seed"]).assign(dataset=dataset)
    frames = [
        place.assign(method=curve.sweep.plugin, metric=f"{metric}@width={name}", value=values)
        for (name, metric), pair in parts.items()
        for curve, values in zip((a, b), pair, strict=True)
    ]
    names = list(dict.fromkeys(name for name, _ in parts))
    measures = [stats.Measure(f"{m}@width={name}", HIGHER.get(m, "lower")) for name in names for m in metrics]
    states = _cells_of(cells, dataset, [a.sweep, b.sweep])
    frame = pd.concat(frames).dropna()
    found = stats.compare(frame, a.sweep.plugin, b.sweep.plugin, measures, cells=states)
    by_name = {row.metric: row for row in found.rows}
    return [AtWidth(name, {metric: by_name[f"{metric}@width={name}"] for metric in metrics}) for name in names]


Compared = dict[tuple[str, str], tuple[Array, Array]]  # values [repeat] of both curves, by width (in words) and metric


def _over_range(a: Curve, b: Curve, metrics: Sequence[str]) -> Compared:
    """Return both curves at widths that every repeat of both reaches, and their mean over them; {} without any."""
    low = max(float(curve.values[WIDTH].min(axis=1).max()) for curve in (a, b))
    high = min(float(curve.values[WIDTH].max(axis=1).min()) for curve in (a, b))
    if not 0 < low < high:
        return {}
    found: Compared = {}
    for width in np.geomspace(low, high, WIDTHS):
        for metric in metrics:
            one, other = (curve.at(np.full((len(a.repeats), 1), width), metric)[:, 0] for curve in (a, b))
            found[f"{width:.3g}", metric] = (one, other)
    fine = np.tile(np.geomspace(low, high, GRID), (len(a.repeats), 1))
    for metric in metrics:
        one, other = (curve.at(fine, metric).mean(axis=1) for curve in (a, b))
        found[RANGE, metric] = (one, other)
    return found


def _at_own_widths(a: Curve, b: Curve, metrics: Sequence[str]) -> Compared:
    """Return A at its own levels and B at the same widths, averaged over the levels within B's widths; NaN: none is."""
    own, other = a.values[WIDTH], b.values[WIDTH]
    inside = (own >= other.min(axis=1, keepdims=True)) & (own <= other.max(axis=1, keepdims=True))
    count = inside.sum(axis=1)
    if not count.any():
        return {}
    found: Compared = {}
    for metric in metrics:
        sums = (np.where(inside, values, 0.0).sum(axis=1) for values in (a.values[metric], b.at(own, metric)))
        one, beside = (np.where(count > 0, total / np.maximum(count, 1), np.nan) for total in sums)
        found[OWN, metric] = (one, beside)
    return found


def _cells_of(cells: pd.DataFrame, dataset: str, sweeps: Sequence[Sweep]) -> pd.DataFrame:
    """Return the cells of one level of each sweep under the name of its plug-in: they say how repeats are related."""
    parts = []
    for sweep in sweeps:
        own = cells[(cells["dataset"] == dataset) & (cells["method"] == next(iter(sweep.levels)))]
        parts.append(own.assign(method=sweep.plugin))
    return pd.concat(parts)


@dataclass(frozen=True)
class Settings:
    """How often a setting of A was narrower or wider than one of B, and covered more or less; (means, shown)."""

    counts: Mapping[tuple[str, str], tuple[int, int]]
    tests: int


def settings_against(a: Curve, b: Curve, rows: pd.DataFrame, cells: pd.DataFrame) -> Settings:
    """Compare every level of A with every level of B by width and by coverage, all in one family of tests."""
    measures = [stats.Measure(WIDTH, "lower"), stats.Measure(COVERAGE, "higher")]
    found: list[tuple[stats.DatasetComparison, stats.DatasetComparison]] = []
    for label in b.sweep.levels:
        for one in stats.compare_each(rows, list(a.sweep.levels), label, measures, cells=cells):
            by_metric = {row.metric: row for row in one.rows}
            found.append((by_metric[WIDTH], by_metric[COVERAGE]))
    p = stats.adjust_p_values([row.p for pair in found for row in pair], "holm").reshape(-1, 2)
    alpha = stats.Settings().alpha
    counts: dict[tuple[str, str], tuple[int, int]] = {
        (width, cover): (0, 0) for width in ("narrower", "wider") for cover in ("higher", "lower")
    }
    for (width, cover), (p_width, p_cover) in zip(found, p, strict=True):
        words = ("narrower" if width.difference < 0 else "wider", "higher" if cover.difference > 0 else "lower")
        means, shown = counts[words]
        counts[words] = (means + 1, shown + int(p_width < alpha and p_cover < alpha))
    return Settings(counts, 2 * len(found))
