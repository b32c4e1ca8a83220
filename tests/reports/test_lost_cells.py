"""Captions that name a best method: none of those that lack results."""

import re

import numpy as np
import pytest

from bench.api import Figure, Report
from bench.plugins.registry import Registry
from bench.reports._lost_cells import best_method, lost_cells
from bench.spec.cell import Outcome
from bench.store.results import StoredResults
from bench.store.store import Store
from tests.fixtures.results import save_outcomes


def results_of(store: Store, *, lost: bool) -> StoredResults:
    """Two classifiers: `perfect` is always right and sure of it, `other` errs in a quarter of the rows."""
    observed, outcomes = np.tile([0, 1], 20), {}
    for method, wrong in (("perfect", 0), ("other", 4)):
        for seed in range(3):
            chosen = np.where(np.arange(40) % 4 < wrong / 4, 1 - observed, observed)
            mean = np.eye(2)[chosen]
            outcomes["toy", method, seed] = Outcome(
                "ok",
                metrics={"accuracy@fog:1": 1.0 - wrong / 16},
                arrays={
                    "observed": observed,
                    "mean": mean,
                    "variance": mean * (1.0 - mean),
                    "history/validation_loss": np.linspace(1.0, 0.1 + wrong, 5)[None],
                },
            )
    if lost:
        outcomes["toy", "perfect", 2] = Outcome("diverged")
    return save_outcomes(store, "made", outcomes, ["accuracy"])


@pytest.mark.parametrize("name", ["shift", "reliability", "risk-coverage", "training"])
@pytest.mark.parametrize("lost", [False, True])
def test_a_method_that_diverged_once_is_not_called_the_best(store: Store, name: str, lost: bool) -> None:
    report: Report = Registry().make("report", name, {})
    found = report.section(results_of(store, lost=lost))
    assert found is not None
    caption = next(block.caption for block in found.blocks if isinstance(block, Figure))
    assert (": other (not perfect, without a result in every repeat)" in caption) == lost, caption
    assert (re.search(r": perfect(\.| \()", caption) is not None) != lost, caption


def test_the_best_is_the_lowest_of_those_with_all_their_results() -> None:
    assert best_method({"a": 0.1, "b": 0.2, "c": 0.3}, {"c"}) == "a"
    assert best_method({"b": 0.2, "a": 0.1}, {"a"}) == "b (not a, without a result in every repeat)"
    assert best_method({"a": 0.1}, {"a"}) == "none, as every method lacks results"


def test_cells_that_failed_lack_results_too(store: Store) -> None:
    statuses = {"fine": "ok", "gone": "diverged", "raised": "failed"}
    outcomes = {("toy", method, 0): Outcome(status) for method, status in statuses.items()}  # type: ignore[arg-type]
    assert lost_cells(save_outcomes(store, "made", outcomes)) == {"toy": {"gone", "raised"}}
