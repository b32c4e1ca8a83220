"""Rankings of a suite by each of its metrics, computed once for all sections that show them."""

from weakref import WeakKeyDictionary

from bench.api import Metric, Results, UserError, stats
from bench.reports._words import lead_metrics, metrics_of

DIAGRAMS = 3  # critical-difference diagrams: of the first metrics that a suite names
_known: "WeakKeyDictionary[Results, dict[Metric, stats.Ranking]]" = WeakKeyDictionary()


def ranked_metrics(results: Results) -> list[Metric]:
    """Return the metrics whose ranks are tested on the page: the leading ones, and the first that a suite names.

    A relative metric ranks as the one it is relative to.
    """
    places = results.frame.groupby("metric")[["dataset", "method"]].nunique()
    chosen = [
        metric
        for metric in metrics_of(results)
        if metric.has_better and metric.relative_to is None and places.loc[metric.name].min() > 1
    ]
    leads = [metric for metric in lead_metrics(results) if metric in chosen]
    return list(dict.fromkeys([*leads, *chosen[:DIAGRAMS]]))


def rankings(results: Results) -> dict[Metric, stats.Ranking]:
    """Return the rankings that are possible; those of the leading metrics have intervals.

    The level of Nemenyi's test is divided by the number of metrics whose ranks are tested: one family for the page.
    """
    if results not in _known:
        leads, frame, counts = lead_metrics(results), results.frame, stats.CellCounts.of(results.cells)
        settings = stats.Settings(alpha=stats.Settings().alpha / max(len(ranked_metrics(results)), 1))
        found = {}
        for metric in metrics_of(results):
            try:
                rows, lead = frame[frame["metric"] == metric.name], metric in leads
                found[metric] = stats.rank(
                    rows, metric, cells=counts, settings=settings, intervals=lead, pairwise=False
                )
            except UserError:
                continue  # fewer than two methods or datasets have it
        _known[results] = found
    return _known[results]
