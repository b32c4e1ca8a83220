"""Use from Python: the functions behind the commands, for notebooks and scripts.

    import bench

    run = bench.run_suite("quick", methods=["mc-dropout", "mcni-fixed"], datasets=["diabetes"], seeds=5)
    run.results.frame                                                  # a data frame, one row per metric value
    bench.compare_methods(run.results, "mcni-fixed", "mc-dropout")     # paired tests, with verdicts
    bench.write_report(run.store, "report")                            # report/index.html

All of them are exported from `bench`. A mistake in the arguments raises `bench.UserError` with one line that says what
would be right; docs/python.md is a worked example.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import UserError, unknown_name
from bench.plugins.registry import Registry
from bench.store import DEFAULT_URL

if TYPE_CHECKING:
    from bench.leaderboard import Leaderboard
    from bench.metrics import Metric
    from bench.stats import Comparison, Ranking, Settings
    from bench.store.merge import Merged
    from bench.store.results import StoredResults
    from bench.store.store import Store

Names = Sequence[str]
Files = Sequence[str | Path]


def open_store(address: "str | Path | Store" = DEFAULT_URL, *, create: bool = False) -> "Store":
    """Open a store by path or URL; one that does not exist is an error unless `create` is set."""
    from bench.store.store import Store

    return address if isinstance(address, Store) else Store(str(address), create=create, writable=create)


def load_results(store: "str | Path | Store" = DEFAULT_URL, suite: str | None = None) -> "StoredResults":
    """Return the results of a suite: `frame`, `cells`, `remarks` and `failures` are data frames.

    The name of the suite may be left out where the store holds only one.
    """
    from bench.store.results import StoredResults

    opened = open_store(store)
    names, where = list(opened.suites()), f"store {opened.address}"
    if not names:
        raise UserError(f"{where}: no results yet; make some with 'uqbench run SUITE'")
    if suite is None and len(names) > 1:
        raise UserError(f"{where} holds several suites; name one with --suite: {', '.join(names)}")
    if suite is not None and suite not in names:
        raise unknown_name("suite", suite, names, where)
    return StoredResults(opened, suite or names[0])


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

    frame, cells = results.frame, results.cells
    for name in datasets:
        if name not in set(cells["dataset"]):
            raise unknown_name("dataset", name, set(cells["dataset"]), f"suite {results.suite}")
    if datasets:
        frame, cells = frame[frame["dataset"].isin(datasets)], cells[cells["dataset"].isin(datasets)]
    chosen = _metrics_of(results, metrics, (a, b))
    return compare(frame, a, b, chosen, cells=cells, settings=settings or Settings())


@dataclass(frozen=True)
class Rankings:
    """Rankings of the methods, one per metric, and why some metrics have none."""

    rankings: "tuple[Ranking, ...]"
    left_out: tuple[str, ...] = ()


def rank_methods(
    results: "StoredResults", *, methods: Names = (), metrics: Names = (), settings: "Settings | None" = None
) -> Rankings:
    """Rank methods (all by default) over the datasets of a suite, by every metric that the suite lists."""
    from bench.stats import Settings, rank

    rankings, left_out = [], []
    for metric in _metrics_of(results, metrics, methods):
        try:
            chosen = list(methods) or None
            ranking = rank(results.frame, metric, methods=chosen, cells=results.cells, settings=settings or Settings())
            rankings.append(ranking)
        except UserError as error:
            if metrics:
                raise
            left_out.append(str(error))  # of the suite's metrics, some have one dataset only
    if not rankings:
        raise UserError(f"suite {results.suite}: nothing to rank: {'; '.join(left_out) or 'no results'}")
    return Rankings(tuple(rankings), tuple(left_out))


def _metrics_of(results: "StoredResults", names: Names, methods: Names) -> "list[Metric]":
    """Return the named metrics; else the suite's, or all stored ones, for which each of the methods has values."""
    from bench.metrics import declaration

    stored = results.frame.groupby("metric")["method"].agg(set)
    for name in names:
        declaration(name)
        if name not in stored.index:
            raise unknown_name("metric", name, stored.index, f"suite {results.suite} has no values")
    chosen = list(dict.fromkeys(names or results.metrics or sorted(stored.index)))
    known = set(results.cells["method"])
    required = {method for method in methods if method in known}  # the comparison itself reports the others
    return [declaration(name) for name in chosen if names or (name in stored.index and required <= stored[name])]


def write_report(
    store: "str | Path | Store" = DEFAULT_URL, out: str | Path = "report", *, suites: Names = (), plugins: Files = ()
) -> Path:
    """Write a report on some suites of a store (all by default) into a folder; return its page, `index.html`."""
    from bench.report.write import write_report as write

    with _opened(store) as opened:
        return write(opened, registry_of(plugins), Path(out), suites)[0]


def write_leaderboard(
    store: "str | Path | Store" = DEFAULT_URL,
    out: str | Path = "leaderboard",
    *,
    suites: Names = (),
    metrics: Names = (),
    plugins: Files = (),
) -> "tuple[Path, Leaderboard]":
    """Write a store as a static site; return its page, `index.html`, and what it lists."""
    from bench.leaderboard import collect
    from bench.leaderboard.site import write_site

    with _opened(store) as opened:
        found = collect(opened, suites, metrics)
    return write_site(found, registry_of(plugins), Path(out))[0], found


def merge_stores(store: "str | Path | Store", other: "str | Path | Store") -> "Merged":
    """Copy all results of the store `other` into `store`, which is made where there is none; return what was done."""
    from bench.store.merge import merge

    # The other one first: where there is none, no new store is made for nothing.
    with _opened(other) as foreign, _opened(store, create=True) as own:
        return merge(own, foreign)


@contextmanager
def _opened(store: "str | Path | Store", *, create: bool = False) -> "Iterator[Store]":
    """Open a store for one call and close it afterwards, unless it was open before."""
    opened = open_store(store, create=create)
    try:
        yield opened
    finally:
        if opened is not store:
            opened.close()


def registry_of(files: Files = ()) -> Registry:
    """Return all plug-ins that can be reached, those of some files among them."""
    return Registry([Path(file) for file in files])
