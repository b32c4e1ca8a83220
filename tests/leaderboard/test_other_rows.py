"""Boards of seeds on one test set: which verdicts were also shown for other rows."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import scipy.stats

from bench.leaderboard import collect
from bench.leaderboard.against import OtherRows
from bench.leaderboard.boards import Board
from bench.leaderboard.document import schema
from bench.leaderboard.view_boards import board_views
from bench.leaderboard.view_tables import table_views
from bench.stats import holm
from bench.store.store import Store
from bench.workflow import write_leaderboard
from tests.fixtures.results import save_classifiers
from tests.fixtures.studies import timing_facts

BOTH = {"a": 12, "c": 1}  # errors on so many rows, and of the baseline on 18 others


def board_of(store: Store, metric: str = "accuracy") -> Board:
    (board,) = collect(store, metrics=[metric]).boards
    return board


def verdicts(board: Board) -> dict[str, tuple[str, OtherRows | None]]:
    return {one.method: (one.against.verdict, one.against.other_rows) for one in board.entries if one.against}


def test_a_verdict_over_seeds_that_other_rows_do_not_show_is_named(store: Store) -> None:
    """Both methods are better with all seeds; a by 6 of 60 rows, c by 17."""
    save_classifiers(store, BOTH)
    board = board_of(store)
    found = verdicts(board)
    assert {method: verdict for method, (verdict, _) in found.items()} == {"a": "better", "c": "better"}
    assert {method: rows.shown for method, (_, rows) in found.items() if rows} == {"a": False, "c": True}
    assert "not shown for other rows: a (better)" in board.notes
    assert any(note.endswith("from stored predictions, Holm over 2 methods") for note in board.notes)


def test_where_all_verdicts_hold_for_other_rows_none_is_named(store: Store) -> None:
    save_classifiers(store, {"c": 1, "d": 2})
    board = board_of(store)
    assert {(verdict, rows.shown) for verdict, rows in verdicts(board).values() if rows} == {("better", True)}
    assert not [note for note in board.notes if note.startswith("not ")]


def test_what_seeds_do_not_show_is_not_shown_for_other_rows_either(store: Store) -> None:
    """Values that are all alike beside predictions that differ: the test over rows alone adds no verdict."""
    save_classifiers(store, {"c": 1}, more={"accuracy": 0.5})
    ((verdict, rows),) = verdicts(board_of(store)).values()
    assert verdict == "not shown to differ"
    assert rows is not None
    assert rows.p < 0.001
    assert not rows.shown


@pytest.mark.parametrize("metric", ["accuracy", "brier"])
def test_seeds_that_agree_leave_a_paired_test_over_rows(store: Store, metric: str) -> None:
    """A row that is missed costs 1 in accuracy and 1.62 in place of 0.02 in the Brier score: the same test."""
    save_classifiers(store, BOTH, noise=0.0)
    row = np.arange(60.0)
    p = [scipy.stats.ttest_rel(1.0 * (row >= 60 - errors), 1.0 * (row < 18)).pvalue for errors in BOTH.values()]
    found = verdicts(board_of(store, metric))
    assert [rows.p for m in BOTH if (rows := found[m][1])] == pytest.approx(holm(p).tolist())


def test_methods_without_stored_predictions_are_named(store: Store) -> None:
    save_classifiers(store, BOTH, without=["a"])
    board = board_of(store)
    found = verdicts(board)
    a, c = found["a"][1], found["c"][1]
    assert a is not None
    assert (a.shown, a.untested) == (False, "predictions are not stored")
    assert c is not None
    assert (c.shown, c.untested) == (True, "")
    assert "not tested for other rows, predictions are not stored: a" in board.notes
    assert any(note.endswith("Holm over 1 method") for note in board.notes)


def test_a_baseline_without_stored_predictions_leaves_all_untested(store: Store) -> None:
    save_classifiers(store, BOTH, without=["base"])
    assert "not tested for other rows, predictions are not stored: all methods" in board_of(store).notes


def test_damaged_predictions_are_a_note_of_the_board(store: Store, tmp_path: Path) -> None:
    save_classifiers(store, BOTH)
    for path in store.arrays.folder.glob("*.npz"):
        path.write_bytes(b"damaged")
    assert "not tested for other rows, stored predictions are damaged: all methods" in board_of(store).notes
    page, _ = write_leaderboard(store, tmp_path / "site", metrics=["accuracy"])
    assert "stored predictions are damaged" in page.read_text("utf-8")


def test_metrics_that_are_no_means_over_rows_are_not_tested_and_costs_are_not_about_rows(store: Store) -> None:
    more = {"ece": 0.1, "latency_memory@T=1": 1.0}
    save_classifiers(store, BOTH, more=more, record=timing_facts(more))
    board, cost = board_of(store, "ece"), board_of(store, "latency_memory@T=1")
    assert "not tested for other rows, not a mean of losses that stored predictions give: all methods" in board.notes
    assert {rows for _, rows in verdicts(cost).values()} == {None}
    assert not [note for note in cost.notes if "rows" in note]


@pytest.mark.parametrize("kind", ["splits", "independent"])
def test_repeats_with_other_rows_are_not_tested_and_no_array_is_read(
    store: Store, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_classifiers(store, BOTH, kind)

    def unread(*_: Any, **__: Any) -> None:
        raise AssertionError("arrays were read")

    monkeypatch.setattr(Store, "load_arrays", unread)
    board = board_of(store)
    assert {rows for _, rows in verdicts(board).values()} == {None}
    assert not [note for note in board.notes if "other rows" in note]


def test_page_and_document_say_it_beside_the_verdict(store: Store, tmp_path: Path) -> None:
    save_classifiers(store, BOTH | {"d": 1}, without=["d"])
    write_leaderboard(store, tmp_path)
    page = (tmp_path / "index.html").read_text("utf-8")
    for method, words in (("a", "not shown for other rows (p = 0."), ("c", "also for other rows (p &lt; 0.001)")):
        row = page.split(f'data-v="{method}"')[-1].split("</tr>")[0]
        assert f'better<span class="small remark">{words}' in row
    assert 'better<span class="small remark">not tested for other rows</span>' in page
    (table,) = table_views(board_views(collect(store, metrics=["accuracy", "brier"]), {}), {})
    caveats = {line.method: line.cells[0].caveat for line in table.lines}
    wanted = {"base": "", "a": "not shown for other rows", "c": "", "d": "not tested for other rows"}
    assert {method: caveats[method] for method in wanted} == wanted
    document = json.loads((tmp_path / "leaderboard.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema()).validate(document)
    found = {e["method"]: e["against"]["other_rows"] for e in document["boards"][0]["entries"] if e["against"]}
    assert found["d"] == {"shown": False, "p": None, "untested": "predictions are not stored"}
    assert (found["a"]["shown"], found["c"]["shown"]) == (False, True)
    assert found["a"]["p"] > 0.05 > found["c"]["p"]
