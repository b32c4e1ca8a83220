"""Every view of the site as data: a CSV and a JSON file beside the pages, with the code that computed each value."""

import csv
import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bench import __version__
from bench.csv_cells import harmless_cell
from bench.json_values import without_nan
from bench.leaderboard.boards import Board, Entry
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.document import FORMAT, board_content, line_content, metric_content, row_sources
from bench.leaderboard.recalibrated import column_beside, column_content
from bench.leaderboard.score_histograms import is_of_scores
from bench.metrics import condition
from bench.stats import ScaledColumn
from bench.web.dates import iso_time
from bench.web.names import file_name

FOLDER = "data"
PLACE = ("suite", "task", "dataset", "metric", "device")
AGAINST = ("baseline", "verdict", "p", "difference", "difference_low", "difference_high")
RESULT = ("mean", "low", "high", "behind", "behind_low", "behind_high", "repeats", "planned", "lost")
RANK = ("average_rank", "score", "low", "high", "datasets")
Files = dict[str, str]


def view_name(boards: Sequence[Board]) -> str:
    """Return the name of a view's files, without their ending: of one board, or of the boards of one place."""
    first = boards[0]
    metric = first.metric if len(boards) == 1 else "all metrics"
    device = first.device or "all devices"
    return f"{FOLDER}/{file_name(' '.join([first.suite, first.task, first.dataset or 'all datasets', metric, device]))}"


def method_name(method: str) -> str:
    """Return the name of the files of a method's page, without their ending."""
    return f"{FOLDER}/method-{file_name(method)}"


HISTORY = f"{FOLDER}/history"


def data_files(name: str) -> list[tuple[str, str]]:
    """Return the kinds of a view's files, and their names."""
    return [("CSV", f"{name}.csv"), ("JSON", f"{name}.json")]


def view_files(found: Leaderboard, views: Iterable[Sequence[Board]], methods: Iterable[str]) -> Files:
    """Return the files of all views, each of which shows one board or several side by side, by their names."""
    codes = _codes(found)
    files: Files = {}
    for boards in views:
        name = view_name(boards)
        beside = [column for board in boards if (column := _beside(found, board)) is not None]
        column = beside[0] if beside else None
        both = (codes, column)
        files[f"{name}.csv"] = _one_board(boards[0], *both) if len(boards) == 1 else _side_by_side(boards, *both)
        files[f"{name}.json"] = _json(found, boards)
    for method in methods:
        own = [board for board in found.boards if any(entry.method == method for entry in board.entries)]
        files[f"{method_name(method)}.csv"] = _of_method(method, own, codes)
        files[f"{method_name(method)}.json"] = _json(found, own, method)
    files[f"{HISTORY}.csv"] = _history(found)
    lines = [line_content(line, found.settings.level) for line in found.history.lines]
    changes = {"alpha": found.history.alpha, "places": found.history.cuts}
    files[f"{HISTORY}.json"] = _text({**_head(found), "settings": {"changes": changes}, "history": lines})
    return files


Codes = Mapping[tuple[str, str | None, str], str]


def _codes(found: Leaderboard) -> Codes:
    """Return the versions of the code behind every row, and behind a method of a suite on all datasets."""
    codes: dict[tuple[str, str | None, str], dict[str, None]] = {}
    for row in found.rows:
        for dataset in (row.dataset, None):
            codes.setdefault((row.suite, dataset, row.method), {}).update(dict.fromkeys(row.codes))
    return {place: " ".join(own) for place, own in codes.items()}


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    table = io.StringIO(newline="")
    cells = ([harmless_cell("" if value is None else value) for value in row] for row in rows)
    csv.writer(table, lineterminator="\n").writerows([columns, *cells])
    return table.getvalue()


def _finite(value: Any) -> Any:
    """Return a value as a cell: what is not finite is empty."""
    return without_nan(value)


def _beside(found: Leaderboard, board: Board) -> ScaledColumn | None:
    return column_beside(board, found.metrics[board.metric], found.recalibrated)


def _scaled(column: ScaledColumn | None, method: str) -> list[Any]:
    """Return the cells of a method in the columns after a scaling; no cells where there are no such columns."""
    return [] if column is None else list(column.pairs.get(method, (None, None)))


def _one_board(board: Board, codes: Codes, column: ScaledColumn | None) -> str:
    own = RANK if board.dataset is None else RESULT
    extra = () if column is None else column.parts
    rows = (
        [*row, *_scaled(column, entry.method)] for row, entry in zip(_rows([board], codes), board.entries, strict=True)
    )
    return _table((*PLACE, "method", "place", "ties", *own, *AGAINST, "code", *extra), rows)


def _rows(boards: Iterable[Board], codes: Codes, only: str | None = None) -> Iterable[Sequence[Any]]:
    for board in boards:
        place = [getattr(board, name) for name in PLACE]
        for entry in board.entries:
            if only in (None, entry.method):
                own = _ranks(entry, board) if board.dataset is None else _means(entry)
                code = codes[board.suite, board.dataset, entry.method]
                yield [*place, entry.method, entry.place, entry.groups, *own, *_verdict(entry, board), code]


def _means(entry: Entry) -> list[Any]:
    behind = entry.behind or (None, None, None)
    values = [_finite(value) for value in (entry.value, entry.low, entry.high, *behind)]
    return [*values, entry.repeats, entry.planned, entry.lost]


def _ranks(entry: Entry, board: Board) -> list[Any]:
    return [*map(_finite, (entry.value, entry.score, entry.low, entry.high)), len(board.datasets)]


def _verdict(entry: Entry, board: Board) -> list[Any]:
    one = entry.against
    if one is None:
        return [board.baseline, *[None] * 5]
    return [board.baseline, one.verdict, *map(_finite, (one.p, one.difference, one.low, one.high))]


def _side_by_side(boards: Sequence[Board], codes: Codes, column: ScaledColumn | None) -> str:
    """Return one row per method: for each metric its value, interval, place and verdict."""
    first = boards[0]
    value = "average rank" if first.dataset is None else "mean"
    parts = (value, "score low" if first.dataset is None else "low", "score high" if first.dataset is None else "high")
    columns = ["suite", "task", "dataset", "device", "method"]
    columns += [f"{board.metric} {part}" for board in boards for part in (*parts, "repeats", "place", "verdict")]
    entries = [{entry.method: entry for entry in board.entries} for board in boards]
    rows = []
    for method in dict.fromkeys(method for own in entries for method in own):
        row: list[Any] = [first.suite, first.task, first.dataset, first.device, method]
        for own in entries:
            entry = own.get(method)
            if entry is None:
                row += [None] * 6
                continue
            row += [*map(_finite, (entry.value, entry.low, entry.high)), entry.repeats, entry.place]
            row.append(None if entry.against is None else entry.against.verdict)
        rows.append([*row, codes[first.suite, first.dataset, method], *_scaled(column, method)])
    return _table([*columns, "code", *(() if column is None else column.parts)], rows)


def _of_method(method: str, boards: Sequence[Board], codes: Codes) -> str:
    on_datasets = [board for board in boards if board.dataset is not None]
    return _table((*PLACE, "method", "place", "ties", *RESULT, *AGAINST, "code"), _rows(on_datasets, codes, method))


def _history(found: Leaderboard) -> str:
    columns = ("suite", "dataset", "method", "metric", "code", "subject", "version", "finished", "repeats")
    rows = []
    for line in found.history.lines:
        content = line_content(line, found.settings.level)
        place = [content[name] for name in ("suite", "dataset", "method", "metric")]
        verdicts = {change.at: change.verdict for change in line.changes}
        for number, point in enumerate(content["points"]):
            facts = [point[name] for name in ("code", "subject", "version", "finished", "repeats")]
            values = [_finite(point[name]) for name in ("mean", "low", "high")]
            rows.append([*place, *facts, *values, verdicts.get(number)])
    return _table((*columns, "mean", "low", "high", "change"), rows)


def _head(found: Leaderboard) -> dict[str, Any]:
    head = {"format": FORMAT, "uqbench": __version__, "updated": iso_time(found.updated)}
    return {**head, "version": found.version or None}


def _json(found: Leaderboard, boards: Sequence[Board], method: str | None = None) -> str:
    """Return boards as in leaderboard.json, all entries or those of one method, with the sources of their rows."""
    contents = [board_content(board) for board in boards]
    if method is not None:
        contents = [{**one, "entries": [e for e in one["entries"] if e["method"] == method]} for one in contents]
    suites = {board.suite for board in boards}
    datasets = {name for board in boards for name in (board.datasets if board.dataset is None else [board.dataset])}
    methods = {entry["method"] for one in contents for entry in one["entries"]}
    rows = [
        row_sources(row)
        for row in found.rows
        if row.suite in suites and row.dataset in datasets and row.method in methods
    ]
    metrics = {board.metric: metric_content(board.metric, found.metrics[board.metric]) for board in boards}
    content = {**_head(found), "metrics": metrics, "boards": contents, "rows": rows}
    scores = [one for board in boards for one in _scores(found, board, methods)]
    beside = {(board.suite, str(board.dataset)): column for board in boards if (column := _beside(found, board))}
    more = {
        "scores": scores,
        "recalibrated": [
            {"suite": suite, "dataset": dataset, **column_content(column, methods)}
            for (suite, dataset), column in beside.items()
        ],
    }
    return _text(content | {name: own for name, own in more.items() if own})


def _scores(found: Leaderboard, board: Board, methods: Collection[str]) -> list[dict[str, Any]]:
    """Return the histograms behind the detection that a board is about."""
    if board.dataset is None or not is_of_scores(board.metric):
        return []
    place = {"suite": board.suite, "dataset": board.dataset, "condition": condition(board.metric)}
    own = found.scores.get((board.suite, board.dataset, place["condition"]), {})
    return [{**place, "method": method, **asdict(one)} for method, one in own.items() if method in methods]


def _text(content: dict[str, Any]) -> str:
    return json.dumps(without_nan(content), ensure_ascii=False, allow_nan=False) + "\n"
