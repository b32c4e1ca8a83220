"""Merge stores, and compute metrics of stored predictions again."""

from typing import TYPE_CHECKING

from bench.plugins.registry import Registry
from bench.store import DEFAULT_URL
from bench.workflow.sources import Files, Names, StoreSource, opened_store, registry_of

if TYPE_CHECKING:
    from bench.store.merge import Merged
    from bench.store.rescore import Rescored


def merge_stores(store: StoreSource, other: StoreSource) -> "Merged":
    """Copy all results of the store `other` into `store`, which is made where there is none; return what was done."""
    from bench.store.merge import merge

    # The other one first: where there is none, no new store is made for nothing.
    with opened_store(other) as foreign, opened_store(store, create=True) as own:
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
    with opened_store(store, writable=True) as opened:
        tasks, done = plan(opened, registry, suite, (metrics,) if isinstance(metrics, str) else metrics)
        with progress_bar("rescore", len(tasks), progress) as monitor:

            def go_on(cells: int) -> bool:
                monitor.advance(cells)
                return not monitor.should_stop()

            return compute(opened, registry, tasks, done, go_on)
