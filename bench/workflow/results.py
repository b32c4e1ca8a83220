"""Results of a suite: as data frames, corrected on validation rows, and row by row."""

from typing import TYPE_CHECKING

from bench.errors import UserError, unknown_name
from bench.plugins.registry import Registry
from bench.store import DEFAULT_URL
from bench.workflow.sources import Files, StoreSource, open_store, registry_of

if TYPE_CHECKING:
    import pandas as pd

    from bench.stats import RowTable
    from bench.store.results import StoredResults


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
        raise UserError(f"{where} holds several suites; name one with --suite: {', '.join(names)}")
    if suite is not None:
        opened.require_suite(suite)
    with using_metrics(registry_of(plugins).metrics):
        return StoredResults(opened, suite or names[0])


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
