"""Several metrics side by side: the boards of one place in one table, every value beside its place.

A table repeats what its boards say. Nothing is tested here, and nothing is summed up over metrics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.leaderboard.boards import Board
from bench.leaderboard.method_summaries import MethodSummary
from bench.leaderboard.view_boards import BoardView, EntryView, distance_to_sort, is_partial, place_text
from bench.leaderboard.view_files import view_name

MOST_COLUMNS = 24  # of one table; metrics beyond them have boards of their own only


@dataclass(frozen=True)
class TableCell:
    """One method by one metric."""

    line: EntryView | None = None  # None: the board of the metric does not have the method
    number: str = ""  # to sort by; '' where it has no value, or not in every repeat
    won: bool = False  # first, where others are not
    verdict: str = ""  # better or worse than the baseline, where that was shown; of widths lower or higher
    caveat: str = ""  # that it was not shown, or not tested, for other test rows


@dataclass(frozen=True)
class TableLine:
    """One method by all metrics."""

    method: str
    summary: MethodSummary
    cells: tuple[TableCell, ...]


@dataclass(frozen=True)
class TableView:
    """The boards of one suite, task, dataset (or all) and device, as columns."""

    key: str
    boards: tuple[BoardView, ...]  # that are columns
    lines: tuple[TableLine, ...]
    rest: tuple[BoardView, ...] = ()  # those for which there was no room

    @property
    def every(self) -> list[Board]:
        """All boards of the place, also those for which there was no room."""
        return [view.board for view in (*self.boards, *self.rest)]

    @property
    def left_out(self) -> tuple[str, ...]:
        """The metrics for which there was no room."""
        return tuple(view.name for view in self.rest)

    @property
    def data(self) -> str:
        """The name of its files, without their ending."""
        return view_name(self.every)

    @property
    def title(self) -> str:
        """What it shows, in words."""
        return f"all metrics {place_text(self.boards[0].board)}"

    @property
    def overall(self) -> bool:
        """Whether it is over all datasets."""
        return self.boards[0].overall

    @property
    def recalibrated(self) -> BoardView | None:
        """The first board of calibration that has values after a scaling: they are one more column."""
        return next((view for view in self.boards if view.recalibrated is not None), None)

    @property
    def notes(self) -> dict[str, str]:
        """The notes of all boards, with the metrics that they are about."""
        found: dict[str, list[str]] = {}
        for view in self.boards:
            for note in view.board.notes:
                found.setdefault(note, []).append(view.name)
        every = len(self.boards)
        return {note: "all metrics" if len(names) == every > 1 else ", ".join(names) for note, names in found.items()}

    @property
    def baselines(self) -> tuple[str, ...]:
        """The baselines that verdicts are about."""
        return tuple(dict.fromkeys(view.board.baseline for view in self.boards if view.board.baseline))


def table_views(boards: Sequence[BoardView], summaries: Mapping[str, MethodSummary]) -> list[TableView]:
    """Return a table for every place that has boards by several metrics."""
    places: dict[tuple[str, str, str | None, str | None], list[BoardView]] = {}
    for view in boards:
        board = view.board
        places.setdefault((board.suite, board.task, board.dataset, board.device), []).append(view)
    several = [own for own in places.values() if len(own) > 1]
    return [_table(f"t{number}", own, summaries) for number, own in enumerate(several)]


def _table(key: str, boards: Sequence[BoardView], summaries: Mapping[str, MethodSummary]) -> TableView:
    shown, rest = boards[:MOST_COLUMNS], boards[MOST_COLUMNS:]
    columns = [{line.method: line for line in view.lines} for view in shown]
    # The order of the first metric; methods that it lacks come below.
    methods = dict.fromkeys(method for column in columns for method in column)
    lines = [
        TableLine(
            method,
            summaries.get(method, MethodSummary()),
            tuple(_cell(view, column.get(method)) for view, column in zip(shown, columns, strict=True)),
        )
        for method in methods
    ]
    return TableView(key, tuple(shown), tuple(lines), tuple(rest))


def _cell(view: BoardView, line: EntryView | None) -> TableCell:
    if line is None:
        return TableCell()
    number = "" if is_partial(line.entry) else distance_to_sort(view, line)
    against = line.entry.against
    verdict: str = against.verdict if against is not None and against.verdict != "not shown to differ" else ""
    remark = line.against.remark.partition(" (")[0]
    caveat = remark if verdict and remark.startswith("not ") else ""
    if view.metric.only_with and verdict:  # narrow intervals are no merit of their own: neither better nor worse
        verdict = "lower" if (verdict == "better") == (view.metric.direction == "lower") else "higher"
        caveat = f"read with {view.metric.only_with}"
    return TableCell(line, number, line.place == "1" and view.leads, verdict, caveat)
