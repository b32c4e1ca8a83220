"""Rankings of a suite by each of its metrics, made once for all sections that show them."""

from weakref import WeakKeyDictionary

from bench.api import Metric, Results, UserError, stats
from bench.reports._words import lead_metrics, metrics_of

_made: "WeakKeyDictionary[Results, dict[Metric, stats.Ranking]]" = WeakKeyDictionary()


def rankings(results: Results) -> dict[Metric, stats.Ranking]:
    """Return the rankings that are possible; those of the leading metrics have intervals."""
    if results not in _made:
        leads, frame, counts = lead_metrics(results), results.frame, stats.CellCounts.of(results.cells)
        found = {}
        for metric in metrics_of(results):
            try:
                found[metric] = stats.rank(
                    frame[frame["metric"] == metric.name],
                    metric,
                    cells=counts,
                    intervals=metric in leads,
                    pairwise=False,
                )
            except UserError:
                continue  # fewer than two methods or datasets have it
        _made[results] = found
    return _made[results]
