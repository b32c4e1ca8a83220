"""Whether verdicts on seeds of one test set also hold for other rows, by the stored predictions."""

from collections.abc import Mapping, Sequence

import numpy as np

from bench.api import Array, Curves, Metric, Results, stats

Place = tuple[str, str, str]  # method, dataset, metric


def row_tests(results: Results, verdicts: Mapping[Metric, Sequence[stats.Comparison]]) -> dict[Place, float]:
    """Return corrected p-values of the comparisons whose repeats are seeds on one test set with stored predictions.

    Only metrics that are means over rows can be tested so: by the squared error for RMSE, as RMSE has the same order.
    """
    losses: dict[Place, Array | None] = {}

    def loss_of(method: str, dataset: str, metric: str) -> Array | None:
        if (method, dataset, metric) not in losses:
            losses[method, dataset, metric] = _losses(results, method, dataset, metric)
        return losses[method, dataset, metric]

    found: dict[Place, float] = {}
    for metric, comparisons in verdicts.items():
        if metric.name not in _ROW_LOSSES:
            continue
        for comparison in comparisons:
            for row in comparison.rows:
                if row.repetition.kind != "seeds" or np.isnan(row.p):
                    continue
                a, b = (loss_of(method, row.dataset, metric.name) for method in (comparison.a, comparison.b))
                if a is not None and b is not None and a.shape == b.shape:
                    found[comparison.a, row.dataset, metric.name] = stats.row_test(a - b).p
    return dict(
        zip(found, stats.adjust_p_values(list(found.values()), stats.Settings().correction).tolist(), strict=True)
    )


def _losses(results: Results, method: str, dataset: str, metric: str) -> Array | None:
    """Return the losses `[seed, row]` of a method; None where predictions are missing or rows differ between seeds."""
    cells = results.cells
    own = cells[(cells["method"] == method) & (cells["dataset"] == dataset)].sort_values("seed")
    curves = [results.curves(str(key)) for key in own["key"]]
    known = [one for one in curves if one is not None]
    if len(known) < 2 or len(known) < len(curves):
        return None
    if any(not np.array_equal(one.observed, known[0].observed) for one in known):
        return None
    values = np.array([_ROW_LOSSES[metric](one) for one in known])
    return values if np.isfinite(values).all() else None


def _squared_error(curves: Curves) -> Array:
    return np.asarray(np.square(curves.mean - curves.observed))


def _absolute_error(curves: Curves) -> Array:
    return np.asarray(np.abs(curves.mean - curves.observed))


def _error(curves: Curves) -> Array:
    return np.asarray(curves.mean.argmax(axis=1) != curves.observed, dtype=np.float64)


def _brier(curves: Curves) -> Array:
    target = np.eye(curves.mean.shape[1])[curves.observed.astype(np.int64)]
    return np.asarray(np.square(curves.mean - target).sum(axis=1))


def _surprise(curves: Curves) -> Array:
    chosen = np.take_along_axis(curves.mean, curves.observed.astype(np.int64)[:, None], axis=1)[:, 0]
    return np.asarray(-np.log(np.maximum(chosen, np.finfo(np.float64).tiny)))


_ROW_LOSSES = {
    "rmse": _squared_error,
    "mae": _absolute_error,
    "accuracy": _error,
    "brier": _brier,
    "nll_categorical": _surprise,
}
