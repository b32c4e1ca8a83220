"""Every method against the baseline: verdicts by the leading metrics, their evidence, and the tests of the page."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bench.api import Block, Metric, Report, Results, Section, Table, Text, plural, stats
from bench.reports._answers import FEWEST
from bench.reports._page_tests import families_text, page_tests
from bench.reports._row_tests import Place, row_tests
from bench.reports._searches import configurations_tried, with_searches
from bench.reports._words import arrow, decimals, lead_metrics, probability, rounded, verdict_word

WORDS = ("better", "worse", "equivalent", "inconclusive")

EXPLAINED = (
    'Inconclusive is not the same as equal: "detectable" is the smallest difference that so many pairs show with 80 % '
    'probability, and "seeds it would take" is for a difference of half a standard deviation over seeds (median of the '
    "inconclusive datasets; splits overlap: no number of them is known to be enough). "
    "Wins: the share of pairs (the same split and seed) in which the method beats the baseline, mean over datasets."
)


@dataclass(frozen=True)
class Verdicts(Report):
    """Verdicts on the suite's leading metrics, and the evidence behind every one of them."""

    order = 11

    def section(self, results: Results) -> Section | None:
        """Return the verdicts, or None where there is no baseline to compare with."""
        leads, tried = lead_metrics(results), configurations_tried(results)
        found = {metric: list(page_tests(results).verdicts.get(metric, ())) for metric in leads}
        blocks: list[Block] = []
        for metric, comparisons in found.items():
            if comparisons:
                blocks.append(Text(_summary(metric, comparisons)))
                blocks += [_verdicts(metric, comparisons, tried)] if _rows(comparisons) else []
        if not blocks:
            return None
        tested = {metric: comparisons for metric, comparisons in found.items() if any(_rows(comparisons))}
        if tested:
            on_rows, untested = row_tests(results, tested)
            if on_rows or untested:
                blocks.append(Text(_on_other_rows(tested, on_rows, untested)))
            if doubtful := _doubtful(tested):
                blocks.append(Text(doubtful, warning=True))
            blocks.append(_evidence(tested, on_rows))
            several = any(one.across for comparisons in tested.values() for one in comparisons)
            over = " Decided on datasets by these tests, over datasets by Wilcoxon's signed-rank test." * several
            blocks.append(Text(f"{_tests(tested)}{over} {EXPLAINED}"))
        if families := families_text(results):
            blocks.append(Text(families))
        return Section("Verdicts", blocks)


def _tests(drawn: Mapping[Metric, Sequence[stats.Comparison]]) -> str:
    rows = [row for comparisons in drawn.values() for one in comparisons for row in one.rows]
    return f"Tests: {stats.datasets_by_test((row.dataset, row.repetition) for row in rows)}."


def _rows(comparisons: Sequence[stats.Comparison]) -> list[stats.DatasetComparison]:
    return [row for comparison in comparisons for row in comparison.rows if not math.isnan(row.p)]


def _summary(metric: Metric, comparisons: Sequence[stats.Comparison]) -> str:
    base = comparisons[0].b
    if not _rows(comparisons):
        most = max((row.pairs for one in comparisons for row in one.rows), default=0)
        return f"By {metric.name} nothing was tested: {plural(most, 'repeat')}, at least {FEWEST} are needed."
    clear = [c for c in comparisons if any(row.verdict in ("better", "worse") for row in c.rows)]
    parts = []
    for word in ("better", "worse"):
        counts = {c.a: (sum(row.verdict == word for row in c.rows), len(c.rows)) for c in clear}
        names = [
            f"{method} (on {count} of {total} datasets)" if total > 1 else method
            for method, (count, total) in counts.items()
            if count
        ]
        parts += [f"{word} than {base} by {metric.name}: {', '.join(names)}"] if names else []
    over = [
        f"over all datasets together {word}: {', '.join(names)}"
        for word in ("better", "worse")
        if (names := [c.a for c in comparisons if c.across and c.across[0].verdict == word])
    ]
    if not parts:
        datasets = {row.dataset for row in _rows(comparisons)}
        where = "any dataset" if len(datasets) > 1 else datasets.pop()
        none = f"by {metric.name}, no method was shown to be better or worse than {base} on {where}"
        seen = "the evidence below lists the smallest difference that could have been detected"
        parts = [none, *([] if over else [seen])]
    text = "; ".join([*parts, *over])
    return text[0].upper() + text[1:] + "."


def _verdicts(metric: Metric, comparisons: Sequence[stats.Comparison], tried: Mapping[str, str]) -> Table:
    data = []
    for comparison in comparisons:
        tested = [row for row in comparison.rows if not math.isnan(row.p)]
        counts = {word: sum(row.verdict == word for row in tested) for word in WORDS}
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
    shown = pd.DataFrame(data)
    if not any(comparison.across for comparison in comparisons):  # one dataset
        shown = shown.drop(columns=["over datasets", "p over datasets"])
    return Table(caption, with_searches(shown, tried), name=f"verdicts-{metric.name}")


def _seeds_needed(comparison: stats.Comparison) -> str:
    """Return the median number of seeds that the inconclusive datasets need to show a difference of the margin."""
    open_rows = [row for row in comparison.rows if row.verdict == "inconclusive" and not math.isnan(row.detectable)]
    if not open_rows:
        few = [row for row in comparison.rows if row.verdict == "inconclusive"]
        if few and not any(row.pairs for row in comparison.rows):
            return "no values"
        return f"at least {FEWEST}" if few else "–"
    open_rows.sort(key=lambda row: row.pairs_for_margin if row.pairs_for_margin is not None else math.inf)
    middle = open_rows[len(open_rows) // 2]
    if middle.pairs_for_margin is None:
        return "splits overlap"
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
            "verdict": verdict_word(row),
            "detectable": row.detectable,
            "margin": row.margin,
            "remarks": "; ".join(row.messages),
        }
        for comparisons in found.values()
        for comparison in comparisons
        for row in comparison.rows
    ]
    numbers = pd.DataFrame(rows)
    return Table(
        "The evidence behind every verdict by a leading metric",
        pd.DataFrame([_as_text(row) for row in rows], columns=numbers.columns),
        name="verdicts-evidence",
        numbers=numbers,
        folded=True,
    )


def _as_text(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its numbers as text: all of them have the decimal places of its interval."""
    width = (row["95 % high"] - row["95 % low"]) / 2
    places = decimals([width], [row["difference"]])
    return {name: rounded(value, places) if isinstance(value, float) else value for name, value in row.items()}
