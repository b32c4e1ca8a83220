"""Cells of the baseline that have no result any more: they diverged, or failed."""

import math

import numpy as np

from bench.gate.verdicts import Rules, compare
from tests.fixtures.gate import measured, spread

PLACE = ("toy", "m")


def test_cells_that_are_lost_are_a_regression() -> None:
    before = spread(1.0, 0.1)
    after = before.copy()
    after[2:4] = math.nan
    then, now = (
        measured({PLACE: {"rmse": before}}),
        measured({PLACE: {"rmse": after}}, lost={PLACE: {"diverged": (2, 3)}}),
    )
    (lost,) = [row for row in compare(then, now, Rules()) if row.metric == "runs"]
    assert lost.verdict == "regressed"
    assert lost.note.startswith(
        "2 of 10 seeds diverged; in the baseline none; between unrelated runs this may be chance"
    )
    assert not [row for row in compare(now, now, Rules()) if row.metric == "runs"]
    assert not [row for row in compare(now, then, Rules()) if row.verdict == "regressed"]
    more = measured({PLACE: {"rmse": after}}, lost={PLACE: {"diverged": (2, 3), "failed": (7,)}})
    (lost,) = [row for row in compare(now, more, Rules()) if row.metric == "runs"]
    assert lost.note == "2 of 10 seeds diverged, 1 of 10 seeds failed; in the baseline 2 of 10 seeds diverged"


def test_a_seed_that_recovered_makes_up_for_no_other() -> None:
    values = [np.where(np.arange(10) == gone, math.nan, spread(1.0, 0.1)) for gone in (1, 2)]
    then, now = (
        measured({PLACE: {"rmse": own}}, lost={PLACE: {"diverged": (gone,)}})
        for own, gone in zip(values, (1, 2), strict=True)
    )
    (lost,) = [row for row in compare(then, now, Rules()) if row.metric == "runs"]
    assert lost.verdict == "regressed"
    assert lost.note.startswith(
        "1 of 10 seeds diverged; in the baseline 1 of 10 seeds diverged, at other seeds; between unrelated runs"
    )


def test_values_of_cells_that_did_not_run_are_told_once() -> None:
    before = spread(1.0, 0.1)
    after = np.where(np.arange(10) == 4, math.nan, before)
    then = measured({PLACE: {"rmse": before, "mae": before}})
    now = measured({PLACE: {"rmse": after, "mae": after}}, lost={PLACE: {"failed": (4,)}})
    rows = {row.metric: row for row in compare(then, now, Rules())}
    assert rows["runs"].verdict == "regressed"
    assert rows["rmse"].verdict == rows["mae"].verdict == "inconclusive"  # tested at the others
