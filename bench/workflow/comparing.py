"""Compare two methods, and rank all of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, unknown_name
from bench.workflow.sources import Names

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from bench.metrics import Metric
    from bench.stats import Comparison, Ranking, Settings
    from bench.store.results import StoredResults


def compare_methods(
    results: "StoredResults",
    a: str,
    b: str,
    *,
    metrics: Names = (),
    datasets: Names = (),
    settings: "Settings | None" = None,
) -> "Comparison":
    """Compare method `a` with method `b` on every dataset and over the datasets; values are paired by split and seed.

    Without `metrics`, those that the suite lists.
    """
    from bench.stats import Settings, compare
    from bench.store.comparable import require_comparable, rescored_versions

    cells = results.cells
    for name in datasets:
        if name not in set(cells["dataset"]):
            raise unknown_name("dataset", name, set(cells["dataset"]), f"suite {results.suite}")
    chosen = _metrics_of(results, metrics, (a, b))
    names, versions = [metric.name for metric in chosen], rescored_versions(results.store)
    frame = results.frame_of(names)
    if datasets:
        frame, cells = frame[frame["dataset"].isin(datasets)], cells[cells["dataset"].isin(datasets)]
    require_comparable(_about(cells), results.baseline, (a, b), names, versions)
    return compare(frame, a, b, chosen, cells=cells, settings=settings or Settings())


@dataclass(frozen=True)
class Rankings:
    """Rankings of the methods, one per metric, and why some metrics have none."""

    rankings: "tuple[Ranking, ...]"
    left_out: tuple[str, ...] = ()

    @property
    def frame(self) -> "pd.DataFrame":
        """One row per metric and method, the best first: average rank, groups not shown to differ, score."""
        import pandas as pd

        return pd.concat([ranking.frame for ranking in self.rankings], ignore_index=True)


def rank_methods(
    results: "StoredResults", *, methods: Names = (), metrics: Names = (), settings: "Settings | None" = None
) -> Rankings:
    """Rank methods (all by default) over the datasets of a suite, by every metric that the suite lists."""
    from bench.stats import Settings, rank
    from bench.store.comparable import require_comparable, rescored_versions

    suitable = _metrics_of(results, metrics, methods)
    names, versions = [metric.name for metric in suitable], rescored_versions(results.store)
    require_comparable(_about(results.cells), results.baseline, methods, names, versions)
    frame, known = results.frame_of(names), results.columns.methods().values()
    datasets = results.columns.datasets()
    if len(datasets) == 1:
        advice = "'uqbench compare A B' compares two methods there"
        raise UserError(
            f"suite {results.suite}: nothing to rank: it has results on one dataset, {datasets[0]}, and a ranking "
            f"needs at least 2; {advice}"
        )
    rankings: list[Ranking] = []
    left_out: dict[str, list[str]] = {}  # the metrics of each reason
    for metric in suitable:
        try:
            chosen = list(methods) or sorted(set().union(*known))
            ranking = rank(frame, metric, methods=chosen, cells=results.cells, settings=settings or Settings())
            rankings.append(ranking)
        except UserError as error:
            if metrics:
                raise
            # Of the suite's metrics, some have one dataset only.
            name, colon, reason = str(error).partition(": ")
            own = colon and name == metric.name
            left_out.setdefault(reason if own else str(error), []).extend([name] if own else [])
    reasons = tuple(f"{', '.join(names)}: {reason}" if names else reason for reason, names in left_out.items())
    if not rankings:
        raise UserError(f"suite {results.suite}: nothing to rank: {'; '.join(reasons) or 'no results'}")
    return Rankings(tuple(rankings), reasons)


def _about(cells: "pd.DataFrame") -> "Iterator[dict[str, Any]]":
    """Yield what decides whether cells may be compared, one after another: all of them together are large."""
    columns = ["dataset", "method", "key", "status", "spec", "training"]
    return (dict(zip(columns, row, strict=True)) for row in zip(*(cells[name] for name in columns), strict=True))


def _metrics_of(results: "StoredResults", names: Names, methods: Names) -> "list[Metric]":
    """Return the named metrics; else the suite's, or all stored ones, for which each of the methods has values."""
    from bench.metrics import declaration, find_declaration, using_metrics

    stored = results.columns.methods()
    known = set(results.cells["method"])
    required = {method for method in methods if method in known}  # the comparison itself reports the others
    with using_metrics(results.declarations):
        for name in names:
            if name in stored and find_declaration(name) is None:
                raise UserError(
                    f"metric {name!r} has stored values, but nothing here declares it; give its file with --plugin"
                )
            declaration(name)
            if name not in stored:
                raise unknown_name("metric", name, stored, f"suite {results.suite} has no values")
        chosen = list(dict.fromkeys(names or results.metrics or sorted(stored)))
        found = [name for name in chosen if names or (name in stored and required <= stored[name])]
        metrics = [metric for name in found if (metric := find_declaration(name)) is not None]
    # Those without a better are described in reports; naming one is a mistake that the comparison itself reports.
    return [metric for metric in metrics if names or metric.has_better]
