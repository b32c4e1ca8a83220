"""Sensitivity to the noise level: coverage against width over the levels of each method, and methods at equal width."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from bench.api import Array, Block, Figure, Report, Results, Section, Table, Text, declaration, plural, stats, style
from bench.reports._trade_off import OWN, RANGE, AtWidth, Curve, Settings, at_equal_width, curve_of, settings_against
from bench.reports._variants import COVERAGE, WIDTH, swept
from bench.reports._words import band, better_in_words, decimals, labelled, probability, rounded

INTRODUCTION = (
    "Each method over the levels of its noise: a curve per method, from little noise (narrow intervals) to much. A "
    "method that is better than another whatever the level covers more at equal width; the Winkler score and the CRPS "
    "weigh width and coverage by one number each. Values between two levels are interpolated on each repeat, and a "
    "repeat of one method is compared with the same repeat of the other."
)
SIDES = ((True, True), (True, False), (False, True))  # of a point, where the level of each curve stands: right, up
WORDS = {"picp": "coverage", "winkler": "Winkler score", "crps": "CRPS"}


@dataclass(frozen=True)
class Sensitivity(Report):
    """Trade-off curves of every plug-in that a suite runs at several levels of one option, and tests at equal width."""

    order = 12
    subject = True

    def section(self, results: Results) -> Section | None:
        """Return curves and comparisons by dataset, or None where no method has levels."""
        sweeps = swept(results)
        if not sweeps:
            return None
        blocks: list[Block] = [Text(INTRODUCTION)]
        for name, rows in results.frame.groupby("dataset", sort=True):
            found = (curve_of(sweep, rows) for sweep in sweeps)
            curves = [curve for curve in found if curve is not None]
            if not curves:
                continue
            dataset = str(name)
            blocks.append(_figure(dataset, curves))
            reference = _reference(curves, results.baseline)
            others = [curve for curve in curves if curve is not reference]
            if not others:
                blocks.append(Text(f"{dataset}: one method has levels, so there is nothing to compare with."))
            for other in others:
                blocks += _at_equal_width(dataset, other, reference, results.cells)
            if others:
                own = results.cells[results.cells["dataset"] == dataset]
                against = {curve: settings_against(curve, reference, rows, own) for curve in others}
                blocks += [_settings(dataset, reference, against)]
            blocks.append(_levels(dataset, curves))
        return Section("Sensitivity to the noise level", blocks) if len(blocks) > 1 else None


def _reference(curves: Sequence[Curve], baseline: str | None) -> Curve:
    """Return the curve of the plug-in that the suite's baseline is a level of; else the first."""
    return next((curve for curve in curves if baseline in curve.sweep.levels), curves[0])


def _at_equal_width(dataset: str, a: Curve, b: Curve, cells: pd.DataFrame) -> list[Block]:
    found = at_equal_width(a, b, dataset, cells)
    names = f"{a.sweep.plugin} and {b.sweep.plugin}"
    if not found:
        reason = "no level of the first gives a width within those of the second"
        return [Text(f"{dataset}: {names} cannot be compared at equal width: {reason}.")]
    tested = [row for at in found for row in at.rows.values() if not math.isnan(row.p)]
    caption = (
        f"{dataset}: {a.sweep.plugin} minus {b.sweep.plugin} at equal width (mpiw), mean of the differences on the "
        f"same repeat [95 % interval]; p corrected over the {plural(len(tested), 'test')} of this table (Holm)"
    )
    paper = (
        f"`{a.sweep.plugin}` minus `{b.sweep.plugin}` at equal width of the intervals (MPIW) on `{dataset}`: coverage "
        "of both, and the mean of the differences on the same repeat [95 % interval]. Better is a higher "
        "coverage, a lower Winkler score and a lower CRPS. p: corrected over the "
        f"{plural(len(tested), 'test')} of this table (Holm)."
    )
    numbers = [
        {"width": at.width, "metric": metric, "mean": row.mean_a, "reference": row.mean_b, **_numbers(row)}
        for at in found
        for metric, row in at.rows.items()
    ]
    rows = [_row(at, a, b) for at in found]
    name = f"equal-width-{dataset}-{a.sweep.plugin}"
    return [
        Text(_sentence(dataset, a, b, found)),
        Table(caption, pd.DataFrame(rows), name=name, numbers=pd.DataFrame(numbers), paper_caption=paper),
    ]


def _numbers(row: stats.DatasetComparison) -> dict[str, float | int | str]:
    low, high = (row.interval.low, row.interval.high) if row.interval else (math.nan, math.nan)
    ends = {"difference": row.difference, "95 % low": low, "95 % high": high}
    return {**ends, "p": row.p_adjusted, "repeats": row.pairs, "verdict": row.verdict}


def _row(at: AtWidth, a: Curve, b: Curve) -> dict[str, str]:
    cover = at.rows[COVERAGE]
    cells = {"width": at.width, "repeats": str(cover.pairs), f"coverage of {a.sweep.plugin}": f"{cover.mean_a:.3f}"}
    cells[f"of {b.sweep.plugin}"] = f"{cover.mean_b:.3f}"
    for metric, row in at.rows.items():
        cells[f"{WORDS[metric]}: difference"] = _difference(row)
        cells[f"p ({WORDS[metric]})"] = probability(row.p_adjusted)
    return cells


def _difference(row: stats.DatasetComparison) -> str:
    """Return a difference with its interval, to two digits of the half width."""
    ends = [row.interval.low, row.interval.high] if row.interval else []
    places = decimals([(ends[1] - ends[0]) / 2] if ends else [], [row.difference])
    texts = [rounded(value, places, sign=True) for value in (row.difference, *ends)]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]" if ends else texts[0]


def _sentence(dataset: str, a: Curve, b: Curve, found: Sequence[AtWidth]) -> str:
    """Return what the comparisons over several widths say of every metric, and which levels are not among them."""
    texts = []
    single = [at.width for at in found if at.width not in (RANGE, OWN)]
    for at in found:
        if at.width in single:
            continue
        where = f"the {OWN}, on {plural(at.rows[COVERAGE].pairs, 'repeat')}"
        if at.width == RANGE:
            where = f"widths from {single[0]} to {single[-1]}, which every repeat of both reaches"
        texts.append(f"at {where}: {'; '.join(_finding(metric, row) for metric, row in at.rows.items())}")
    left = [
        f"{curve.sweep.option} above {list(curve.widening().sweep.levels.values())[-1]:g} of {curve.sweep.plugin}"
        for curve in (a, b)
        if len(curve.widening().sweep.levels) < len(curve.sweep.levels)
    ]
    beyond = f" Left out: levels that no longer widen the intervals ({', '.join(left)})." if left else ""
    return f"{dataset}, {a.sweep.plugin} minus {b.sweep.plugin} on average {'; and '.join(texts)}.{beyond}"


def _finding(metric: str, row: stats.DatasetComparison) -> str:
    size = f"{WORDS[metric]} {_difference(row)}"
    if math.isnan(row.p):
        return f"{size}, too few repeats for a verdict"
    if row.verdict == "equivalent":
        return f"{size}, equivalent (within half a standard deviation over repeats)"
    if row.verdict in ("better", "worse"):
        return f"{size}, {row.verdict}"
    size_seen = rounded(row.detectable, decimals([row.detectable], []))
    seen = f" (these repeats show {size_seen} with 80 % probability)" if row.detectable > 0 else ""
    return f"{size}, no difference shown{seen}"


def _settings(dataset: str, reference: Curve, against: Mapping[Curve, Settings]) -> Table:
    data = []
    for curve, found in against.items():
        texts = {
            f"{width}, {cover} coverage": f"{means} ({shown} shown)"
            for (width, cover), (means, shown) in found.counts.items()
        }
        pairs = sum(means for means, _ in found.counts.values())
        data.append({"method": curve.sweep.plugin, "pairs of settings": pairs, **texts})
    caption = (
        f"{dataset}: every level against every level of {reference.sweep.plugin}, by the mean width and coverage; "
        "shown: both differences have p < 0.05 after Holm's correction over all of a row"
    )
    return Table(caption, pd.DataFrame(data), name=f"settings-{dataset}")


def _levels(dataset: str, curves: Sequence[Curve]) -> Table:
    """Return the means of every level with their intervals."""
    data, numbers = [], []
    for curve in curves:
        summary = {metric: _summary(values, metric) for metric, values in curve.values.items()}
        for place, level in enumerate(curve.sweep.levels.values()):
            own = {
                "method": curve.sweep.plugin,
                "option": curve.sweep.option,
                "level": level,
                "repeats": len(curve.repeats),
            }
            texts = {}
            for metric, (mean, low, high) in summary.items():
                texts[metric] = f"{mean[place]:,.4g} [{low[place]:,.4g}, {high[place]:,.4g}]"
                ends = {"mean": mean[place], "95 % low": low[place], "95 % high": high[place]}
                numbers.append({**own, "metric": metric, **ends})
            data.append({**own, **texts})
    caption = f"{dataset}: mean over repeats at each level [95 % interval]"
    frames = [pd.DataFrame(rows) for rows in (data, numbers)]
    paper = (
        f"Each level of the noise on `{dataset}`: mean over repeats [95 % interval]. "
        f"{better_in_words(declaration(metric) for metric in curves[0].values)}"
    )
    return Table(caption, frames[0], name=f"levels-{dataset}", numbers=frames[1], folded=True, paper_caption=paper)


def _summary(values: Array, metric: str) -> tuple[Array, Array, Array]:
    return band(values, declaration(metric).value_range)


def _figure(dataset: str, curves: Sequence[Curve]) -> Figure:
    shared = [m for m in curves[0].values if m != WIDTH and all(m in curve.values for curve in curves)]
    numbers: list[dict[str, object]] = []
    with style.house_style():
        figure, axes = style.panels(len(shared), width=3.5, height=2.9)
        for axis, metric in zip(axes, shared, strict=True):
            for number, curve in enumerate(curves):
                numbers += _draw(axis, curve, metric, number)
            style.plain_logarithmic(axis, x=True, y=metric != COVERAGE)
            axis.set_xlabel(f"{labelled(declaration(WIDTH))}, mean width")
            axis.set_ylabel(labelled(declaration(metric)))
            arrow = "higher" if metric == COVERAGE else "lower"
            axis.set_title(f"{WORDS[metric]} by width, {arrow} is better")
        style.legend(figure, [curve.sweep.plugin for curve in curves], points=True)
    levels = "; ".join(
        f"{style.title(curve.sweep.plugin)}: {curve.sweep.option} from {min(curve.sweep.levels.values()):g} to "
        f"{max(curve.sweep.levels.values()):g}, {plural(len(curve.repeats), 'repeat')}"
        for curve in curves
    )
    caption = (
        f"{style.title(dataset)}: one point per level, mean over repeats with 95 % intervals of both axes; the numbers "
        f"at the ends of a curve are its levels. {levels}."
    )
    return Figure(f"sensitivity-{dataset}", caption, figure, pd.DataFrame(numbers))


def _draw(axis: Axes, curve: Curve, metric: str, number: int) -> list[dict[str, object]]:
    """Draw one curve with the intervals of its points; return the numbers. Levels of neighbours are on other sides."""
    look, levels = style.look(curve.sweep.plugin), list(curve.sweep.levels.values())
    x, y = _summary(curve.values[WIDTH], WIDTH), _summary(curve.values[metric], metric)
    axis.errorbar(
        x[0],
        y[0],
        xerr=(x[0] - x[1], x[2] - x[0]),
        yerr=(y[0] - y[1], y[2] - y[0]),
        **{**look.of_points(4), **look.of_line()},
        elinewidth=0.8,
    )
    right, up = SIDES[number % len(SIDES)]
    sides: dict[str, Any] = {"ha": "left" if right else "right", "va": "bottom" if up else "top"}
    offset = (3 if right else -3, 3 if up else -3)
    for place in (0, -1):
        point = (x[0][place], y[0][place])
        axis.annotate(f"{levels[place]:g}", point, offset, textcoords="offset points", color=look.hex, size=7, **sides)
    return [
        {
            "method": curve.sweep.plugin,
            "level": level,
            "metric": metric,
            "width": x[0][place],
            "width low": x[1][place],
            "width high": x[2][place],
            "value": y[0][place],
            "low": y[1][place],
            "high": y[2][place],
        }
        for place, level in enumerate(levels)
    ]
