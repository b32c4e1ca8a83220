"""Use from Python: the functions behind the commands, for notebooks and scripts.

    import bench

    run = bench.run_suite("quick", methods=["mc-dropout", "mcni-fixed"], datasets=["diabetes"], seeds=5)
    run.results.frame                                                  # a data frame, one row per metric value
    bench.compare_methods(run.results, "mcni-fixed", "mc-dropout")     # paired tests, with verdicts
    bench.write_report(run.store, "report")                            # report/index.html

All of them are exported from `bench`. A mistake in the arguments raises `bench.UserError` with one line that says what
would be right; docs/python.md is a worked example.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bench.errors import UserError, unknown_name
from bench.plugins.registry import Kind, Registry
from bench.run.options import RunOptions
from bench.store import DEFAULT_URL

if TYPE_CHECKING:
    import pandas as pd

    from bench.leaderboard import Leaderboard
    from bench.metrics import Metric
    from bench.plan.suite import Suite
    from bench.run.summary import Summary
    from bench.stats import Comparison, Ranking, RowTable, Settings
    from bench.store.merge import Merged
    from bench.store.rescore import Rescored
    from bench.store.results import StoredResults
    from bench.store.store import Store

Names = Sequence[str]
Files = Sequence[str | Path]
SuiteSource = str | Path | Mapping[str, Any]
StoreSource: TypeAlias = "str | Path | Store"
Changes = Mapping[Any, Any] | Sequence[str]  # {"training.epochs": 20}, or ["training.epochs=20"] as on the command line
KINDS: tuple[Kind, ...] = ("method", "dataset")


def open_store(address: StoreSource = DEFAULT_URL, *, create: bool = False, writable: bool = True) -> "Store":
    """Open a store by path or URL; one that does not exist is an error unless `create` is set.

    Use it as a context manager, or call `close`. One that is not writable is never changed.
    """
    from bench.store.store import Store

    return address if isinstance(address, Store) else Store(str(address), create=create, writable=writable)


@dataclass(frozen=True, eq=False)
class SuiteRun:
    """What a run did, and where its results are."""

    suite: "Suite"  # what was run: the chosen part, with the changes
    store: "Store"
    summary: "Summary"
    stopped_by: int | None = None  # the signal that stopped it before the end
    plugins: Registry = field(default_factory=Registry, repr=False)  # what it was run with

    @property
    def ok(self) -> bool:
        """Whether everything ran, now or before, without a failure."""
        return self.summary.well

    @cached_property
    def results(self) -> "StoredResults":
        """The results of the suite, those of earlier runs among them."""
        return load_results(self.store, self.suite.name, plugins=self.plugins)


def run_suite(
    suite: SuiteSource,
    *,
    methods: Names = (),
    datasets: Names = (),
    seeds: int | None = None,
    changes: Changes = (),
    plugins: Files = (),
    store: StoreSource = DEFAULT_URL,
    options: RunOptions = RunOptions(),
) -> SuiteRun:
    """Run the cells of a suite that the store does not have yet.

    The suite is a built-in name, the path of a TOML file, or a mapping with the keys of such a file and a `name`.
    `methods` and `datasets` choose a part of it, and may name others that the suite does not list; `changes` sets keys
    (`{"training.epochs": 20}`); `plugins` are files with plug-ins. What fails is in the summary, it is not raised.
    """
    from bench.run.driver import run
    from bench.run.progress_bar import progress_bar

    registry = registry_of(plugins)
    chosen = choose_suite(suite, registry, methods=methods, datasets=datasets, seeds=seeds, changes=changes)
    settings = options.settings()
    opened = open_store(store, create=True)
    total = len(chosen.methods) * sum(map(chosen.seeds_of, chosen.datasets))
    with progress_bar(chosen.name, total, options.progress) as monitor:
        summary = run(chosen, registry, opened, settings, monitor)
    return SuiteRun(chosen, opened, summary, monitor.stop.signal, registry)


def choose_suite(
    suite: SuiteSource,
    registry: Registry,
    *,
    methods: Names = (),
    datasets: Names = (),
    seeds: int | None = None,
    changes: Changes = (),
) -> "Suite":
    """Return the part of a suite that was chosen, checked; 'all' among the methods stands for every one there is."""
    from bench.plan.suite import load_suite

    if seeds is not None:
        changes = {**changes, "seeds": seeds} if isinstance(changes, Mapping) else [*changes, f"seeds={seeds}"]
    methods, datasets = ((names,) if isinstance(names, str) else names for names in (methods, datasets))
    methods = list(registry.plugins("method")) if "all" in methods else methods
    # What a file brings, and what is named here, need not be in the suite.
    more = [name for name in methods if name in registry.plugins("method")]
    more_data = [name for name in datasets if name in registry.plugins("dataset") or ":" in name]
    own = {kind: [p.name for p in registry.plugins(kind).values() if p.origin.startswith("file ")] for kind in KINDS}
    from bench.metrics import using_metrics

    with using_metrics(registry.metrics):
        loaded = load_suite(suite, changes, [*more, *own["method"]], [*more_data, *own["dataset"]])
    return loaded.only(datasets, methods)


def load_results(
    store: StoreSource = DEFAULT_URL, suite: str | None = None, *, plugins: Files | Registry = ()
) -> "StoredResults":
    """Return the results of a suite: `frame`, `cells`, `remarks` and `failures` are data frames.

    The name of the suite may be left out where the store holds only one. `plugins` are files that declare metrics.
    """
    from bench.metrics import using_metrics
    from bench.store.results import StoredResults

    opened = open_store(store, writable=False)
    names, where = list(opened.suites()), f"store {opened.address}"
    if not names:
        raise UserError(f"{where}: no results yet; make some with 'uqbench run SUITE'")
    if suite is None and len(names) > 1:
        raise UserError(f"{where} holds several suites; name one of {', '.join(names)}")
    if suite is not None and suite not in names:
        raise unknown_name("suite", suite, names, where)
    with using_metrics(registry_of(plugins).metrics):
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
    from bench.store.comparable import require_comparable, rescored_versions

    frame, cells = results.frame, results.cells
    for name in datasets:
        if name not in set(cells["dataset"]):
            raise unknown_name("dataset", name, set(cells["dataset"]), f"suite {results.suite}")
    if datasets:
        frame, cells = frame[frame["dataset"].isin(datasets)], cells[cells["dataset"].isin(datasets)]
    chosen = _metrics_of(results, metrics, (a, b))
    names, versions = [metric.name for metric in chosen], rescored_versions(results.store)
    require_comparable(cells.to_dict("records"), results.baseline, (a, b), names, versions)
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
    require_comparable(results.cells.to_dict("records"), results.baseline, methods, names, versions)
    rankings, left_out = [], []
    for metric in suitable:
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
    from bench.metrics import declaration, find_declaration, using_metrics

    stored = results.frame.groupby("metric")["method"].agg(set)
    known = set(results.cells["method"])
    required = {method for method in methods if method in known}  # the comparison itself reports the others
    with using_metrics(results.declarations):
        for name in names:
            if name in stored.index and find_declaration(name) is None:
                raise UserError(
                    f"metric {name!r} has stored values, but nothing here declares it; give its file with --plugin"
                )
            declaration(name)
            if name not in stored.index:
                raise unknown_name("metric", name, stored.index, f"suite {results.suite} has no values")
        chosen = list(dict.fromkeys(names or results.metrics or sorted(stored.index)))
        found = [name for name in chosen if names or (name in stored.index and required <= stored[name])]
        metrics = [metric for name in found if (metric := find_declaration(name)) is not None]
    # Those without a better are described in reports; naming one is a mistake that the comparison itself reports.
    return [metric for metric in metrics if names or metric.has_better]


def recalibrate(results: "StoredResults", *, repeats: int | None = None) -> "pd.DataFrame":
    """Return scores of stored predictions, raw and after corrections fitted on validation rows, one row per value.

    The columns are dataset, split, method, seed, key, correction, metric and value. `repeats`: of the first so many of
    each dataset and method. No ranking or test reads corrected values. Where predictions are not stored, but corrected
    values of an export are, these are returned.
    """
    import pandas as pd

    from bench.metrics import using_metrics
    from bench.stats import recalibration_frame

    with using_metrics(results.declarations):
        computed = recalibration_frame(results.cells, results.kept, repeats)
    kept = results.corrected[~results.corrected["key"].isin(computed["key"])]
    if repeats is not None:
        order = kept.groupby(["dataset", "method"])["seed"].rank(method="dense")
        kept = kept[order <= repeats]
    return kept[computed.columns] if computed.empty else pd.concat([computed, kept], ignore_index=True)


def row_tables(results: "StoredResults", dataset: str | None = None) -> "list[RowTable]":
    """Return what methods predicted at every test row, one table per test set of a dataset, or of all.

    `bench.stats` has the questions: `compare_rows`, `hardest_rows`, `disputed_rows` and `row_frame` take these tables.
    """
    from bench.stats import row_tables as tables

    cells = results.cells
    if dataset is not None:
        if dataset not in set(cells["dataset"]):
            raise unknown_name("dataset", dataset, set(cells["dataset"]), f"suite {results.suite}")
        cells = cells[cells["dataset"] == dataset]
    return list(tables(cells, results.arrays))


def write_report(
    store: StoreSource = DEFAULT_URL,
    out: str | Path = "report",
    *,
    suites: Names = (),
    plugins: Files = (),
    pdf: bool = False,
) -> Path:
    """Write a report on some suites of a store (all by default) into a folder; return its page, `index.html`.

    `pdf`: the figures also as PDF, which takes about twice as long.
    """
    from bench.metrics import using_metrics
    from bench.report.write import write_report as write

    registry = registry_of(plugins)
    with _opened(store) as opened, using_metrics(registry.metrics):
        return write(opened, registry, Path(out), suites, pdf=pdf)[0]


def write_leaderboard(
    store: StoreSource = DEFAULT_URL,
    out: str | Path = "leaderboard",
    *,
    suites: Names = (),
    metrics: Names = (),
    plugins: Files = (),
    version: str = "",
    frozen: str | Path | None = None,
    repository: str | None = None,
) -> "tuple[Path, Leaderboard]":
    """Write a store as a static site; return its page, `index.html`, and what it lists.

    `version` names the boards. `frozen` is the leaderboard.json of a version that is continued: its places are kept.
    Commits are links to `repository`, a web address; None: to the remote 'origin' of the current folder, if it has one.
    """
    from bench.history.repository import find_repository
    from bench.leaderboard import collect
    from bench.leaderboard.frozen import read_frozen
    from bench.leaderboard.site import write_site
    from bench.metrics import using_metrics

    if version and frozen:
        raise UserError(f"--version {version} with --frozen {frozen}: a site that continues a version has its name")
    kept = None if frozen is None else read_frozen(frozen)
    place = find_repository(repository)
    registry = registry_of(plugins)
    with using_metrics(registry.metrics):
        with _opened(store) as opened:
            found = collect(opened, suites, metrics, version=version, frozen=kept)
        return write_site(found, registry, Path(out), place)[0], found


def merge_stores(store: StoreSource, other: StoreSource) -> "Merged":
    """Copy all results of the store `other` into `store`, which is made where there is none; return what was done."""
    from bench.store.merge import merge

    # The other one first: where there is none, no new store is made for nothing.
    with _opened(other) as foreign, _opened(store, create=True) as own:
        return merge(own, foreign)


def rescore(
    store: StoreSource = DEFAULT_URL,
    suite: str | None = None,
    *,
    metrics: Names = (),
    plugins: Files | Registry = (),
    progress: bool | None = None,
) -> "Rescored":
    """Compute metrics from stored predictions, without training: new ones, and those whose version changed.

    Of one suite or of all; of all metrics or of some; `plugins` are files that declare metrics. What is up to date is
    not computed again. `progress` is whether a bar is shown; None: in a terminal.
    """
    from bench.run.progress_bar import progress_bar
    from bench.store.rescore import plan
    from bench.store.rescore import rescore as compute

    registry = registry_of(plugins)
    with _opened(store, writable=True) as opened:
        tasks, done = plan(opened, registry, suite, (metrics,) if isinstance(metrics, str) else metrics)
        with progress_bar("rescore", len(tasks), progress) as monitor:

            def go_on(cells: int) -> bool:
                monitor.advance(cells)
                return not monitor.should_stop()

            return compute(opened, registry, tasks, done, go_on)


@contextmanager
def _opened(store: StoreSource, *, create: bool = False, writable: bool = False) -> "Iterator[Store]":
    """Open a store for one call and close it afterwards, unless it was open before."""
    opened = open_store(store, create=create, writable=create or writable)
    try:
        yield opened
    finally:
        if opened is not store:
            opened.close()


def registry_of(files: Files | Registry = ()) -> Registry:
    """Return all plug-ins that can be reached, those of some files among them."""
    if isinstance(files, Registry):
        return files
    return Registry([Path(file) for file in files])
