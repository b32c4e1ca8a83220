"""Rankings of a suite by each of its metrics, computed once for all sections that show them."""

from weakref import WeakKeyDictionary

from bench.api import Metric, Results, UserError, stats
from bench.reports._words import lead_metrics, metrics_of

_known: "WeakKeyDictionary[Results, dict[Metric, stats.Ranking]]" = WeakKeyDictionary()


def rankings(results: Results) -> dict[Metric, stats.Ranking]:
    """Return the rankings that are possible; those of the leading metrics have intervals."""
    if results not in _known:
        leads, frame, counts = lead_metrics(results), results.frame, stats.CellCounts.of(results.cells)
        found = {}
        for metric in metrics_of(results):
            try:
                rows, lead = frame[frame["metric"] == metric.name], metric in leads
                found[metric] = stats.rank(rows, metric, cells=counts, intervals=lead, pairwise=False)
            except UserError:
                continue  # fewer than two methods or datasets have it
        _known[results] = found
    return _known[results]
