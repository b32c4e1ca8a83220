"""Metrics without a better are refused; those that are biased in the number of draws are compared at equal T only."""

import json
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import pytest

from bench.errors import UserError
from bench.stats import CellCounts, Measure, compare, compare_all_pairs, compare_each, rank, unequal_draws
from bench.stats.tests import Array

Results = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]
SCORE = Measure("log_score", "higher", biased_in_draws=True)
DATASETS = ("d0", "d1", "d2")
DRAWS = {"dropout": 100, "noise": 100, "ensemble": 5}


@pytest.fixture
def study(results: Results) -> Callable[..., tuple[pd.DataFrame, pd.DataFrame]]:
    """Three methods on three datasets, with the T of every method in the records of the training."""

    def build(draws: Mapping[str, int | None] = DRAWS, metric: str = "log_score") -> tuple[pd.DataFrame, pd.DataFrame]:
        random = np.random.default_rng(1)
        values: dict[tuple[str, str], Array] = {
            (dataset, method): random.normal(size=8) for dataset in DATASETS for method in DRAWS
        }
        frame, cells = results(values, metric)
        records = [{"epochs": [3]} | ({"draws": t} if (t := draws[m]) else {}) for m in cells["method"]]
        return frame, cells.assign(training=[json.dumps(record) for record in records])

    return build


def test_a_metric_without_a_better_is_refused(study: Results) -> None:
    frame, cells = study()
    described = Measure("log_score", "none")
    for call in (
        lambda: compare(frame, "dropout", "noise", [described], cells=cells),
        lambda: compare_each(frame, ["dropout"], "noise", [described], cells=cells),
        lambda: rank(frame, described, cells=cells),
        lambda: compare_all_pairs(frame, [described], cells=cells),
    ):
        with pytest.raises(UserError, match="log_score describes predictions: no value of it is better"):
            call()


def test_methods_of_different_draws_are_not_compared(study: Results) -> None:
    frame, cells = study()
    for row in compare(frame, "dropout", "ensemble", [SCORE], cells=cells).rows:
        assert (row.pairs, row.verdict) == (0, "inconclusive")
        assert np.isnan(row.p)
        assert row.messages == (
            "log_score is biased in the number of draws and compared at equal T only: dropout has T = 100, ensemble "
            "has T = 5",
        )
    (each,) = compare_each(frame, ["dropout"], "ensemble", [SCORE], cells=cells)
    assert {row.pairs for row in each.rows} == {0}


def test_methods_of_equal_draws_are_compared_as_ever(study: Results) -> None:
    frame, cells = study()
    plain = Measure("log_score", "higher")
    assert compare(frame, "dropout", "noise", [SCORE], cells=cells) == compare(
        frame, "dropout", "noise", [plain], cells=cells
    )
    # Of a metric that is not biased T does not matter, nor where it is unknown, nor where the condition fixes it.
    assert compare(frame, "dropout", "ensemble", [plain], cells=cells).rows[0].pairs == 8
    unknown, without = study({"dropout": 100, "noise": None, "ensemble": None})
    assert compare(unknown, "dropout", "ensemble", [SCORE], cells=without).rows[0].pairs == 8
    at_two, all_cells = study(metric="log_score@T=2")
    fixed = Measure("log_score@T=2", "higher", biased_in_draws=True)
    assert compare(at_two, "dropout", "ensemble", [fixed], cells=all_cells).rows[0].pairs == 8


def test_a_ranking_keeps_the_methods_with_the_usual_draws(study: Results) -> None:
    frame, cells = study()
    found = rank(frame, SCORE, cells=cells)
    assert {one.method for one in found.methods} == {"dropout", "noise"}
    assert found.messages[0] == (
        "log_score is biased in the number of draws and ranked at equal T only (T = 100), so not ranked: ensemble "
        "(T = 5)"
    )
    assert len(rank(frame, Measure("log_score", "higher"), cells=cells).methods) == 3
    with pytest.raises(UserError, match="a ranking needs 2 methods of equal T"):
        rank(frame, SCORE, methods=["dropout", "ensemble"], cells=cells)


def test_all_pairs_leave_out_those_of_different_draws(study: Results) -> None:
    frame, cells = study()
    for one in compare_all_pairs(frame, [SCORE], cells=cells):
        a, b, c = (one.methods.index(name) for name in ("dropout", "noise", "ensemble"))
        assert np.isfinite(one.p[a, b])
        assert one.pairs[a, b] == 8
        for i, j in ((a, c), (c, a), (b, c)):
            assert np.isnan([one.p[i, j], one.gain[i, j], one.wins[i, j]]).all()
            assert one.pairs[i, j] == 0


def test_counts_know_the_draws_of_every_method(study: Results) -> None:
    _, cells = study({"dropout": 100, "noise": None, "ensemble": 5})
    counts = CellCounts.of(cells)
    assert counts.draws("d1", "ensemble") == {5}
    assert counts.draws("d1", "noise") == frozenset()
    assert counts.only(["dropout"]).draws("d1", "ensemble") == frozenset()
    assert CellCounts.of(None).draws("d1", "dropout") == frozenset()
    assert unequal_draws(SCORE, "d1", ["dropout", "noise"], counts) == ""
