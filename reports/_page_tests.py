"""Every test that a report shows, computed once: the same comparison has the same result in every section.

A page keeps few families of tests. Each is corrected as a whole, so that at most 5 % of pages have a false positive in
it; what the families add up to is printed (`families_text`).
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bench.api import Array, Metric, Results, plural, stats
from bench.reports._headline import headline_metrics
from bench.reports._rankings import ranked_metrics, rankings
from bench.reports._words import lead_metrics, methods_of, metrics_of

SETTINGS = stats.Settings()


@dataclass(frozen=True)
class Tested:
    """All methods on one dataset by one metric, with corrected p-values `[method, other]`; NaN: not tested."""

    tests: stats.PairwiseTests
    p_adjusted: Array

    @property
    def verdicts(self) -> Array:
        """1 where a method is better than the other, -1 where it is worse, 0 where neither was shown."""
        return self.tests.better(self.p_adjusted, SETTINGS.alpha)


@dataclass(frozen=True)
class PageTests:
    """The tests of a suite's page."""

    verdicts: Mapping[Metric, Sequence[stats.Comparison]]  # every method against the baseline by the leading metrics
    tested: Mapping[tuple[str, str], Tested]  # by dataset and metric
    further: int  # tests on datasets that are not among the verdicts
    beside: Mapping[Metric, Sequence[stats.Comparison]]  # the other metrics of the first table, as `tested` decides

    def against_baseline(self, metric: Metric) -> Sequence[stats.Comparison]:
        """Return every method against the baseline by a metric of the first table."""
        return self.verdicts.get(metric) or self.beside.get(metric, ())

    def of_metric(self, metric: Metric) -> list[Tested]:
        """Return the tests by one metric on each dataset that has it."""
        return [one for (_, name), one in self.tested.items() if name == metric.name]


_known: "WeakKeyDictionary[Results, PageTests]" = WeakKeyDictionary()


def page_tests(results: Results) -> PageTests:
    """Return the tests that the sections of a page share.

    Verdicts are one family: every method against the baseline by the leading metrics on every dataset. All other tests
    on datasets are another: the other metrics against the baseline, and pairs without the baseline by the leading ones.
    """
    if results not in _known:
        leads = lead_metrics(results)
        verdicts = _against_baseline(results, leads)
        tested, further = _all_tests(results, verdicts)
        others = _against_baseline(results, [metric for metric in headline_metrics(results) if metric not in leads])
        beside = {m: [_as_tested(one, tested) for one in found] for m, found in others.items()}
        _known[results] = PageTests(verdicts, tested, further, beside)
    return _known[results]


def _against_baseline(results: Results, metrics: Sequence[Metric]) -> dict[Metric, list[stats.Comparison]]:
    base = results.baseline
    rows = results.frame[results.frame["metric"].isin([metric.name for metric in metrics])]
    if base is None or base not in set(rows["method"]):
        return {}
    others = [method for method in methods_of(rows) if method != base]
    found = stats.compare_each(rows, others, base, metrics, cells=results.cells, settings=SETTINGS)
    planned = set(zip(results.cells["dataset"], results.cells["method"], strict=True))
    return {metric: [own for one in found if (own := _of_metric(one, metric, planned)).rows] for metric in metrics}


def _as_tested(comparison: stats.Comparison, tested: Mapping[tuple[str, str], Tested]) -> stats.Comparison:
    """Return a comparison with the verdicts of the page's family of other tests instead of those of its own."""
    rows, words = [], {1.0: "better", -1.0: "worse"}
    for row in comparison.rows:
        one = tested[row.dataset, row.metric]
        if not {comparison.a, comparison.b} <= set(one.tests.methods):
            continue  # one of them has no value
        place = one.tests.methods.index(comparison.a), one.tests.methods.index(comparison.b)
        verdict: Any = words.get(float(one.verdicts[place]), "inconclusive")
        rows.append(replace(row, p_adjusted=float(one.p_adjusted[place]), verdict=verdict))
    return replace(comparison, rows=tuple(rows), across=())


def _of_metric(comparison: stats.Comparison, metric: Metric, planned: Set[tuple[str, str]]) -> stats.Comparison:
    """Return the comparison by one metric, on the datasets that the method was planned on."""
    own = (row for row in comparison.rows if row.metric == metric.name)
    rows = tuple(row for row in own if (row.dataset, comparison.a) in planned)
    across = tuple(one for one in comparison.across if one.metric == metric.name)
    return replace(comparison, rows=rows, across=across)


def _all_tests(
    results: Results, verdicts: Mapping[Metric, Sequence[stats.Comparison]]
) -> tuple[dict[tuple[str, str], Tested], int]:
    places = results.frame.groupby("dataset", sort=True)
    wanted = {m.name: m for _, rows in places for m in metrics_of(results, rows) if m.relative_to is None}
    wanted |= {metric.name: metric for metric in headline_metrics(results)}  # also where the suite does not name them
    metrics = [metric for metric in wanted.values() if metric.has_better]
    tables = stats.compare_all_pairs(results.frame, metrics, cells=results.cells, settings=SETTINGS)
    known = {
        (row.dataset, row.metric, comparison.a): row.p_adjusted
        for comparisons in verdicts.values()
        for comparison in comparisons
        for row in comparison.rows
    }
    leads = {metric.name for metric in lead_metrics(results)}
    own = [_further(one, str(results.baseline), one.metric in leads) for one in tables]
    found = [one.p[pairs] for one, pairs in zip(tables, own, strict=True)]
    p = stats.adjust_p_values(np.concatenate([np.empty(0), *found]), SETTINGS.correction)
    tested, start = {}, 0
    for one, pairs in zip(tables, own, strict=True):
        adjusted, end = np.full(one.p.shape, np.nan), start + len(pairs[0])
        adjusted[pairs] = adjusted.T[pairs] = p[start:end]
        if results.baseline in one.methods:
            base = one.methods.index(results.baseline)
            for i, method in enumerate(one.methods):
                if (one.dataset, one.metric, method) in known:
                    adjusted[i, base] = adjusted[base, i] = known[one.dataset, one.metric, method]
        tested[one.dataset, one.metric], start = Tested(one, adjusted), end
    return tested, int(np.isfinite(p).sum())


def _further(one: stats.PairwiseTests, baseline: str, lead: bool) -> tuple[Array, ...]:
    """Return the pairs of methods that are tested besides the verdicts, as indices."""
    first, second = np.triu_indices(len(one.methods), 1)
    if baseline not in one.methods:
        kept = np.full(len(first), lead)
    else:
        base = one.methods.index(baseline)
        with_base = (first == base) | (second == base)
        kept = ~with_base if lead else with_base
    return first[kept], second[kept]


def families_text(results: Results) -> str:
    """Return which families of tests the page keeps, and what they add up to; '' where nothing is tested."""
    page, ranked = page_tests(results), [metric for metric in ranked_metrics(results) if metric in rankings(results)]
    base, leads = results.baseline, " and ".join(metric.name for metric in page.verdicts)
    comparisons = [one for own in page.verdicts.values() for one in own]
    on_datasets = sum(not np.isnan(row.p) for one in comparisons for row in one.rows)
    over = sum(len(one.across) for one in comparisons)
    families = []
    if on_datasets:
        size = plural(on_datasets, "test")
        families.append(f"verdicts, every method against {base} by {leads} on every dataset (Holm over {size})")
    if over:
        size = plural(over, "test")
        families.append(f"over datasets, every method against {base} by {leads} (Holm over {size})")
    if page.further:
        others = "other metrics, and pairs without the baseline by the leading metrics" if comparisons else "all pairs"
        families.append(f"other tests on datasets, {others} (Holm over {plural(page.further, 'test')})")
    if ranked:
        names = ", ".join(metric.name for metric in ranked)
        level = f"{SETTINGS.alpha:g}" + (f" / {len(ranked)}" if len(ranked) > 1 else "")
        families.append(f"average ranks, all pairs of methods by {names} (Nemenyi at level {level})")
    if not families:
        return ""
    total = f"{100 * SETTINGS.alpha:.0f} %" + (
        f" in each of these families and {100 * len(families) * SETTINGS.alpha:.0f} % on the whole page"
        if len(families) > 1
        else ""
    )
    numbered = "; ".join(f"({n}) {family}" for n, family in enumerate(families, start=1))
    return (
        f"Tests of this page: {numbered}. The probability of any false positive is at most {total}. Two methods that "
        "are compared by the same metric on the same dataset have the same result in every section. Intervals are 95 % "
        "each and not corrected."
    )
