"""What was run and what came out of it: every method against the baseline, in words, verdicts and one figure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pandas as pd

from bench.api import Block, Facts, Figure, Metric, Report, Results, Section, Table, Text, plural, stats, style
from bench.reports._page_tests import families_text, page_tests
from bench.reports._row_tests import Place, row_tests
from bench.reports._searches import configurations_tried, with_searches
from bench.reports._words import arrow, lead_metrics, probability

GAP = 2 * "\N{EM SPACE}"  # a browser would join plain spaces
WORDS = ("better", "worse", "equivalent", "inconclusive")
COLOURS = {"better": style.BETTER, "worse": style.WORSE}  # of verdicts; EVEN of the others

EXPLAINED = (
    "Decided on datasets by these tests, over datasets by Wilcoxon's signed-rank test. Inconclusive is not the same as "
    'equal: "detectable" is the smallest difference that so many pairs show with 80 % probability, and "seeds it '
    'would take" is for a difference of half a standard deviation over seeds (median of the inconclusive datasets). '
    "Wins: the share of pairs (the same split and seed) in which the method beats the baseline, mean over datasets."
)


@dataclass(frozen=True)
class Overview(Report):
    """Counts, and the verdicts on the suite's leading metrics."""

    order = 5

    def section(self, results: Results) -> Section | None:
        """Return the facts of a suite and its verdicts, or None where nothing is stored."""
        cells = results.cells
        if cells.empty:
            return None
        blocks: list[Block] = [Facts(_facts(results))]
        leads, tried = lead_metrics(results), configurations_tried(results)
        found = {metric: list(page_tests(results).verdicts.get(metric, ())) for metric in leads}
        for metric, comparisons in found.items():
            if comparisons:
                blocks += [Text(_summary(metric, comparisons)), _verdicts(metric, comparisons, tried)]
        drawn = {metric: comparisons for metric, comparisons in found.items() if any(_rows(comparisons))}
        if drawn:
            blocks.append(_figure(results, drawn))
            on_rows, untested = row_tests(results, drawn)
            if on_rows or untested:
                blocks.append(Text(_on_other_rows(drawn, on_rows, untested)))
            if doubtful := _doubtful(drawn):
                blocks.append(Text(doubtful))
            blocks.append(_evidence(drawn, on_rows))
            blocks.append(Text(f"{_tests(drawn)} {EXPLAINED}"))
        if not any(found.values()):
            blocks.append(Text(_why_nothing(results)))
        if families := families_text(results):
            blocks.append(Text(families))
        return Section("Overview and verdicts", blocks)


def _tests(drawn: Mapping[Metric, Sequence[stats.Comparison]]) -> str:
    rows = [row for comparisons in drawn.values() for one in comparisons for row in one.rows]
    return f"Tests: {stats.datasets_by_test((row.dataset, row.repetition) for row in rows)}."


def _facts(results: Results) -> dict[str, str]:
    cells = results.cells
    status = cells["status"]
    lost = int(status.isin(["failed", "diverged"]).sum())
    facts = {
        "methods": str(cells["method"].nunique()),
        "datasets": str(cells["dataset"].nunique()),
        "seeds": str(cells["seed"].nunique()),
        "cells with a result": f"{int((status == 'ok').sum()):,} of {len(cells):,}",
    }
    if lost:
        facts["failed or diverged"] = f"{lost:,}"
    seconds = pd.to_numeric(cells["cpu_seconds"], errors="coerce").sum() if "cpu_seconds" in cells else 0.0
    if seconds > 0:
        facts["processor time"] = _duration(float(seconds))
    if results.baseline:
        facts["baseline"] = results.baseline
    return facts


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _why_nothing(results: Results) -> str:
    if results.baseline is None:
        return "No verdicts: the suite names no baseline to compare with (baseline = ... in its file)."
    if not lead_metrics(results):
        return "No verdicts: the suite has no metrics of quality to compare by, only costs."
    return f"No verdicts: {results.baseline}, the baseline, has no results to compare with."


def _rows(comparisons: Sequence[stats.Comparison]) -> list[stats.DatasetComparison]:
    return [row for comparison in comparisons for row in comparison.rows if not math.isnan(row.p)]


def _summary(metric: Metric, comparisons: Sequence[stats.Comparison]) -> str:
    base = comparisons[0].b
    clear = [c for c in comparisons if any(row.verdict in ("better", "worse") for row in c.rows)]
    parts = []
    for word in ("better", "worse"):
        counts = {c.a: (sum(row.verdict == word for row in c.rows), len(c.rows)) for c in clear}
        names = [f"{method} ({count} of {total})" for method, (count, total) in counts.items() if count]
        parts += [f"{word} than {base} by {metric.name}: {', '.join(names)}"] if names else []
    if not parts:
        return (
            f"By {metric.name}, no method was shown to be better or worse than {base} on any dataset; the evidence "
            "below lists the smallest difference that could have been detected."
        )
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + " (datasets with that verdict, of all that both have)."


def _verdicts(metric: Metric, comparisons: Sequence[stats.Comparison], tried: Mapping[str, str]) -> Table:
    data = []
    for comparison in comparisons:
        counts = {word: sum(row.verdict == word for row in comparison.rows) for word in WORDS}
        across = comparison.across[0] if comparison.across else None
        wins = [row.better_probability for row in comparison.rows if not math.isnan(row.better_probability)]
        data.append(
            {
                "method": comparison.a,
                **counts,
                "over datasets": across.verdict if across else "–",
                "p over datasets": probability(across.p_adjusted) if across else "–",
                "wins": f"{np.mean(wins):.2f}" if wins else "–",
                "seeds it would take": _seeds_needed(comparison),
            }
        )
    base = comparisons[0].b
    caption = f"Verdicts against {base} by {metric.name} {arrow(metric)}: number of datasets"
    if tried:
        caption += f"; configurations that a search tried for each result (of {base}: {tried.get(base, '–')})"
    return Table(caption, with_searches(pd.DataFrame(data), tried), name=f"verdicts-{metric.name}")


def _seeds_needed(comparison: stats.Comparison) -> str:
    """Return the median number of seeds that the inconclusive datasets need to show a difference of the margin."""
    open_rows = [row for row in comparison.rows if row.verdict == "inconclusive" and not math.isnan(row.detectable)]
    if not open_rows:
        few = [row for row in comparison.rows if row.verdict == "inconclusive"]
        return "at least 5" if few else "–"
    open_rows.sort(key=lambda row: row.pairs_for_margin if row.pairs_for_margin is not None else math.inf)
    middle = open_rows[len(open_rows) // 2]
    if middle.pairs_for_margin is None:
        return "no number (splits overlap)"
    return f"{middle.pairs_for_margin}{'' if middle.plan_is_possible else f' ({middle.split_count} splits exist)'}"


def _on_other_rows(
    found: Mapping[Metric, Sequence[stats.Comparison]], on_rows: Mapping[Place, float], untested: Mapping[Place, str]
) -> str:
    """Return which verdicts on seeds of one test set were not shown for other rows, or not tested for them."""
    alpha = stats.Settings().alpha
    decided = [
        (comparison.a, row)
        for comparisons in found.values()
        for comparison in comparisons
        for row in comparison.rows
        if row.verdict in ("better", "worse") and (comparison.a, row.dataset, row.metric) in on_rows
    ]
    weak = [(a, row) for a, row in decided if on_rows[a, row.dataset, row.metric] >= alpha]
    datasets = ", ".join(dict.fromkeys(dataset for _, dataset, _ in [*on_rows, *untested]))
    texts = [f"Repeats of {datasets} are seeds on one test set: verdicts are about these rows."]
    if on_rows:
        texts.append(
            '"p, other test rows" also takes the rows as a sample (seeds and rows crossed, from the stored '
            "predictions, Holm)."
        )
    if weak:
        names = "; ".join(f"{a} {row.verdict} by {row.metric} on {row.dataset}" for a, row in weak)
        texts.append(f"Not shown for other rows of the same kind: {names}.")
    elif decided:
        texts.append(f"Every better and worse {'that was tested so ' * bool(untested)}was shown for other rows, too.")
    if untested:
        texts.append(f"Not tested for other rows: {_untested(untested, on_rows)}.")
    return " ".join(texts)


def _untested(untested: Mapping[Place, str], on_rows: Mapping[Place, float]) -> str:
    """Return what was not tested for other rows, and why; datasets of which the same is said together."""
    methods: dict[tuple[str, str, str], list[str]] = {}
    for (method, dataset, metric), reason in untested.items():
        methods.setdefault((metric, reason, dataset), []).append(method)
    counts = Counter((metric, dataset) for _, dataset, metric in [*untested, *on_rows])
    datasets: dict[tuple[str, str, str], list[str]] = {}
    for (metric, reason, dataset), own in methods.items():
        names = "all methods" if len(own) == counts[metric, dataset] else ", ".join(own)
        datasets.setdefault((metric, reason, names), []).append(dataset)
    return "; ".join(
        f"{metric} on {', '.join(own)} ({reason}: {names})" for (metric, reason, names), own in datasets.items()
    )


def _doubtful(found: Mapping[Metric, Sequence[stats.Comparison]]) -> str:
    """Return which verdicts rest on a test that may not hold its level; '' where there are none."""
    names = [
        f"{comparison.a} {row.verdict} by {row.metric} on {row.dataset}"
        for comparisons in found.values()
        for comparison in comparisons
        for row in comparison.rows
        if row.verdict in ("better", "worse") and row.doubts
    ]
    why = "The test of the mean may not hold its level, because of skew, outliers or failed runs"
    return f"{why}: {'; '.join(names)}. The remarks of the evidence have tests of the median." if names else ""


def _evidence(found: dict[Metric, list[stats.Comparison]], on_rows: Mapping[Place, float]) -> Table:
    rows = [
        {
            "method": comparison.a,
            "dataset": row.dataset,
            "metric": row.metric,
            "n": row.pairs,
            "mean": row.mean_a,
            "baseline": row.mean_b,
            "difference": row.difference,
            "95 % low": row.interval.low if row.interval else math.nan,
            "95 % high": row.interval.high if row.interval else math.nan,
            "p": probability(row.p_adjusted),
            **(
                {"p, other test rows": probability(on_rows.get((comparison.a, row.dataset, row.metric), math.nan))}
                if on_rows
                else {}
            ),
            "verdict": row.verdict,
            "detectable": row.detectable,
            "margin": row.margin,
            "remarks": "; ".join(row.messages),
        }
        for comparisons in found.values()
        for comparison in comparisons
        for row in comparison.rows
    ]
    return Table("The evidence behind every verdict", pd.DataFrame(rows), name="verdicts-evidence", folded=True)


def _figure(results: Results, found: dict[Metric, list[stats.Comparison]]) -> Figure:
    """Draw the differences to the baseline in standard deviations over seeds, one panel per metric."""
    methods = [c.a for c in max(found.values(), key=len)]
    numbers = []
    with style.house_style():
        height = 0.9 + 0.26 * len(methods)
        figure, axes = style.panels(len(found), width=5.2, height=max(height, 2.0), most=2)
        for axis, (metric, comparisons) in zip(axes, found.items(), strict=True):
            axis.axvline(0, color=style.INK, linewidth=0.8)
            for place, comparison in enumerate(comparisons):
                known = [row for row in comparison.rows if not math.isnan(row.standardised)]
                # One artist for many points of one colour.
                for colour, alike in groupby(known, lambda row: COLOURS.get(row.verdict, style.EVEN)):
                    rows = [(row, row.standardised * (1 if row.direction == "higher" else -1)) for row in alike]
                    x, y = [float(np.clip(gain, -8, 8)) for _, gain in rows], [place] * len(rows)
                    face = "none" if colour == style.EVEN else colour
                    axis.plot(x, y, "o", markersize=5.5, color=colour, markerfacecolor=face, alpha=0.9)
                    numbers += [(metric.name, comparison.a, row.dataset, gain, row.verdict) for row, gain in rows]
            axis.set_yticks(range(len(comparisons)), [style.short(c.a) for c in comparisons])
            axis.set_ylim(len(comparisons) - 0.5, -0.5)
            reach = max([abs(min(max(n[3], -8), 8)) for n in numbers if n[0] == metric.name], default=1.0)
            axis.set_xlim(-1.12 * max(reach, 1.0), 1.12 * max(reach, 1.0))
            axis.set_title(f"{metric.name} {arrow(metric)}", parse_math=False)
            axis.set_xlabel(f"← worse{GAP}gain over the baseline (std over seeds){GAP}better →")
    data = pd.DataFrame(numbers, columns=["metric", "method", "dataset", "gain (std over seeds)", "verdict"])
    counted = data["verdict"].value_counts()
    caption = (
        f"Difference of each method to {results.baseline}, one point per dataset, in standard deviations over seeds "
        "(to the right is better; beyond 8 drawn at 8). Filled blue: better; filled orange: worse; open grey: not "
        f"shown to differ. {', '.join(plural(int(n), 'point') + ' ' + str(word) for word, n in counted.items())}."
    )
    return Figure("verdicts", caption, figure, data)
