"""Run a suite, or a part of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from bench.plugins.kinds import Kind
from bench.plugins.registry import Registry
from bench.run.options import RunOptions
from bench.store import DEFAULT_URL
from bench.workflow.results import load_results
from bench.workflow.sources import Changes, Files, Names, StoreSource, SuiteSource, open_store, registry_of

if TYPE_CHECKING:
    from bench.plan.suite import Suite
    from bench.run.summary import Summary
    from bench.store.results import StoredResults
    from bench.store.store import Store

KINDS: tuple[Kind, ...] = ("method", "dataset")


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
    chosen: tuple[tuple[Kind, Names, Mapping[str, object]], ...] = (
        ("method", methods, loaded.methods),
        ("dataset", datasets, loaded.datasets),
    )
    for kind, names, listed in chosen:
        for name in names:
            if name not in listed:
                raise registry.unknown(kind, name, loaded.where, listed)
    return loaded.only(datasets, methods)
