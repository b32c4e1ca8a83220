import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench.leaderboard import Leaderboard, collect
from bench.leaderboard.document import schema
from bench.leaderboard.site import write_site
from bench.leaderboard.view_boards import board_views
from bench.leaderboard.view_files import data_files, method_name, view_files, view_name
from bench.leaderboard.view_tables import table_views
from bench.plugins.registry import Registry
from bench.store.store import Store
from tests.fixtures.results import HOSTILE, fill, steps


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def as_number(value: str) -> float:
    return float(value) if value else math.nan


def test_a_table_has_the_values_of_its_board(shown_board: Leaderboard) -> None:
    files = view_files(shown_board, [[board] for board in shown_board.boards], [])
    for board in shown_board.boards:
        (_, table), (_, document) = data_files(view_name([board]))
        rows = read(files[table])
        assert [row["method"] for row in rows] == [entry.method for entry in board.entries]
        for row, entry in zip(rows, board.entries, strict=True):
            assert row["place"] == ("" if entry.place is None else str(entry.place))
            value = row["average_rank"] if board.dataset is None else row["mean"]
            assert as_number(value) == pytest.approx(entry.value, nan_ok=True)
            assert as_number(row["high"]) == pytest.approx(entry.high, nan_ok=True)
            assert row["verdict"] == ("" if entry.against is None else entry.against.verdict)
            assert row["code"] == "0123456789ab"
        content = json.loads(files[document])
        (only,) = content["boards"]
        assert [entry["method"] for entry in only["entries"]] == [entry.method for entry in board.entries]
        assert {row["method"] for row in content["rows"]} == {entry.method for entry in board.entries}
        assert all(row["code"] and row["devices"] and row["environments"] for row in content["rows"])


def test_boards_of_views_keep_the_schema(shown_board: Leaderboard) -> None:
    files = view_files(shown_board, [list(shown_board.boards[:3])], ["swag"])
    whole = schema()
    boards: dict[str, Any] = {**whole["properties"]["boards"], "$defs": whole["$defs"]}
    for name in (view_name(shown_board.boards[:3]), method_name("swag")):
        content = json.loads(files[f"{name}.json"])
        jsonschema.validate(content["boards"], boards, cls=jsonschema.Draft202012Validator)
    assert {entry["method"] for board in content["boards"] for entry in board["entries"]} == {"swag"}


def test_metrics_side_by_side_are_one_line_per_method(shown_board: Leaderboard) -> None:
    boards = [board for board in shown_board.boards if board.dataset == "yacht" and board.device == "Made CPU"]
    assert [board.metric for board in boards] == ["rmse", "nll", "picp"]
    rows = read(view_files(shown_board, [boards], [])[f"{view_name(boards)}.csv"])
    assert len(rows) == len({entry.method for board in boards for entry in board.entries})
    by_method = {row["method"]: row for row in rows}
    for board in boards:
        for entry in board.entries:
            row = by_method[entry.method]
            assert as_number(row[f"{board.metric} mean"]) == pytest.approx(entry.value)
            assert row[f"{board.metric} place"] == ("" if entry.place is None else str(entry.place))
            assert row[f"{board.metric} repeats"] == str(entry.repeats)


def test_a_narrow_interval_is_never_highlighted(store: Store) -> None:
    names = ["a", "b", "c"]
    fill(store, steps(names), methods=names, metrics=["rmse", "mpiw"], baseline="b", datasets=["one", "two"])
    boards = board_views(collect(store), {})
    for table in table_views(boards, {}):
        first = {view.board.metric: cell for view, cell in zip(table.boards, table.lines[0].cells, strict=True)}
        if not table.overall:
            assert {metric: cell.won for metric, cell in first.items()} == {"rmse": True, "mpiw": False}
            assert first["mpiw"].caveat.startswith("read with picp")
            assert (first["rmse"].verdict, first["mpiw"].verdict) == ("better", "lower")
    (overall,) = (view for view in boards if view.overall and view.board.metric == "mpiw")
    assert not any(cell.won for line in overall.lines for cell in line.places)


def test_a_first_place_that_most_methods_share_is_not_highlighted(store: Store) -> None:
    names = ["a", "b", "c", "d"]
    worse = {"a": 0, "b": 0, "c": 0, "d": 10}
    noise = steps(names, gap=0.0)
    fill(store, lambda *place: noise(*place) + worse[place[1]], methods=names)
    (view,) = (one for one in board_views(collect(store), {}) if not one.overall)
    assert [line.place for line in view.lines] == ["1", "1", "1", "4"]
    assert (view.decided, view.leads) == (True, False)
    assert [view.shared(line) for line in view.lines] == [2, 2, 2, 0]


def test_history_has_every_point_and_its_change(shown_board: Leaderboard) -> None:
    files = view_files(shown_board, [], [])
    rows = read(files["data/history.csv"])
    assert len(rows) == sum(len(line.series.versions) for line in shown_board.history.lines)
    assert sum(bool(row["change"]) for row in rows) == sum(len(line.changes) for line in shown_board.history.lines) > 0
    assert json.loads(files["data/history.json"])["settings"]["changes"]["places"] == shown_board.history.cuts


def test_names_of_a_store_are_neither_paths_nor_formulas(tmp_path: Path) -> None:
    names = ["=1+1", "../../up", HOSTILE[0]]
    store = Store(str(tmp_path / "made.db"))
    fill(store, steps(names), methods=names, datasets=names[:2], suite=names[1], metrics=["rmse", "nll"])
    out = tmp_path / "out"
    write_site(collect(store), Registry(), out)
    assert {path.name for path in tmp_path.iterdir()} <= {
        "made.db",
        "made.db-shm",
        "made.db-wal",
        "made.db.arrays",
        "out",
    }
    tables = list((out / "data").glob("*.csv"))
    assert len(tables) == 2 * 3 + 3 + 3 + 1  # boards, tables of two metrics, methods, history
    for path in tables:
        cells = [cell for row in csv.reader(io.StringIO(path.read_text("utf-8"))) for cell in row]
        assert not any(cell.startswith("=") for cell in cells)
