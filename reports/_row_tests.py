"""Whether verdicts on seeds of one test set also hold for other rows, by the stored predictions."""

from collections.abc import Mapping, Sequence

import numpy as np

from bench.api import Metric, Results, stats

Place = tuple[str, str, str]  # method, dataset, metric


def row_tests(
    results: Results, verdicts: Mapping[Metric, Sequence[stats.Comparison]]
) -> tuple[dict[Place, float], dict[Place, str]]:
    """Return corrected p-values of the comparisons whose repeats are seeds on one test set, and why others have none.

    Only metrics that are means over rows can be tested so: by the squared error for RMSE, as RMSE has the same order.
    """
    stored = stats.StoredRows(results.arrays)
    found: dict[Place, float] = {}
    untested: dict[Place, str] = {}
    for metric, comparisons in verdicts.items():
        for comparison in comparisons:
            for row in comparison.rows:
                if row.repetition.kind != "seeds" or np.isnan(row.p):
                    continue
                place = (comparison.a, row.dataset, metric.name)
                one = stored.test(metric.name, *_common_keys(results, comparison.a, comparison.b, row.dataset))
                if isinstance(one, str):
                    untested[place] = one
                else:
                    found[place] = one.p
    p = stats.adjust_p_values(list(found.values()), stats.Settings().correction).tolist()
    return dict(zip(found, p, strict=True)), untested


def _common_keys(results: Results, a: str, b: str, dataset: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of the cells of two methods on one dataset, in the order of the repeats that both have."""
    cells = results.cells[results.cells["dataset"] == dataset].set_index(["split", "seed"])
    keys = [cells.loc[cells["method"] == method, "key"].rename(method) for method in (a, b)]
    pairs = keys[0].to_frame("a").join(keys[1].to_frame("b"), how="inner").sort_index()
    return tuple(pairs["a"]), tuple(pairs["b"])
