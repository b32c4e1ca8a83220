"""Boards prepared for the templates: formatted numbers, drawn intervals, values to sort by."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from bench.leaderboard.against import Against
from bench.leaderboard.boards import Board, Entry
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.method_summaries import MethodSummary
from bench.leaderboard.recalibrated import column_beside
from bench.leaderboard.score_histograms import ScoreHistogram, is_of_scores
from bench.leaderboard.view_files import view_name
from bench.metrics import Metric, condition
from bench.stats import ScaledColumn
from bench.web.names import better_values, file_name, metric_name
from bench.web.numbers import decimal_places, format_interval, format_number
from bench.web.svg import Axis, draw_interval, draw_lanes, draw_scale, fit_axis, grid_background

NOTHING = Markup("")
MOST_DECIMALS = 4  # of values after a scaling, whose differences may be tiny
ARROWS = {"lower": "↓ better", "higher": "↑ better"}
INDEX = "index.html"
MANY_GROUPS = 12  # lanes that fit a table; with more groups their letters are printed
Places = Mapping[Any, "Mapping[str, Cell]"]  # by suite, metric, device and dataset, then by method


@dataclass(frozen=True)
class Cell:
    """A number with its interval: as text, as a picture, and as a value to sort by ('' where there is none)."""

    text: str = ""
    number: str = ""
    interval: str = ""
    picture: Markup = NOTHING
    remark: str = ""
    won: bool = False  # first, where others are not


@dataclass(frozen=True)
class Column:
    """What the intervals of one column of a board have in common."""

    axis: Axis | None
    decimals: int
    target: float | None = None

    def cell(self, value: float, low: float, high: float, *, sign: bool = False) -> Cell:
        """Return one cell of the column."""
        picture = draw_interval(self.axis, value, low, high, self.target) if self.axis else NOTHING
        text, interval = format_number(value, self.decimals, sign=sign), format_interval(low, high, self.decimals)
        return Cell(text, _to_sort(value), interval, picture)

    @property
    def scale(self) -> Markup:
        """The picture of the axis."""
        return draw_scale(self.axis) if self.axis else NOTHING


@dataclass(frozen=True)
class EntryView:
    """One method on a board."""

    entry: Entry
    summary: MethodSummary
    place: str
    lanes: Markup
    value: Cell
    behind: Cell
    against: Cell  # the baseline: the verdict, and its difference or what is expected of another dataset
    repeats: str
    places: tuple[Cell, ...]  # on an overall board: the place on every dataset, and the mean there as its remark

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.entry.method


@dataclass(frozen=True)
class BoardView:
    """A board with everything its tables show."""

    key: str
    board: Board
    metric: Metric
    lines: tuple[EntryView, ...]
    groups: int  # of methods that were not shown to differ
    own: Column
    gap: Column  # differences to the best
    scores: tuple[tuple[EntryView, ScoreHistogram], ...] = ()  # behind a detection, in the order of the lines
    recalibrated: ScaledColumn | None = None  # beside calibration on one dataset

    @property
    def name(self) -> str:
        """The name of the metric, with its condition."""
        return metric_name(self.board.metric)

    @property
    def better(self) -> str:
        """Which values are better."""
        return better_values(self.metric)

    @property
    def overall(self) -> bool:
        """Whether it is over all datasets."""
        return self.board.dataset is None

    @property
    def recalibrated_texts(self) -> dict[str, tuple[str, str]]:
        """The raw and the scaled value of each method, as text."""
        pairs = {} if self.recalibrated is None else self.recalibrated.pairs
        decimals = min(
            decimal_places((raw, min(raw, new), max(raw, new)) for raw, new in pairs.values()), MOST_DECIMALS
        )
        return {
            name: (format_number(raw, decimals), format_number(new, decimals)) for name, (raw, new) in pairs.items()
        }

    @property
    def data(self) -> str:
        """The name of its files, without their ending."""
        return view_name([self.board])

    @property
    def of_scores(self) -> bool:
        """Whether histograms of scores belong to it, stored or not."""
        return not self.overall and is_of_scores(self.board.metric)

    @property
    def title(self) -> str:
        """What it shows, in words."""
        return f"{self.name} {place_text(self.board)}"

    @property
    def decided(self) -> bool:
        """Whether a method was shown to be worse than another one."""
        return is_decided(self.board)

    @property
    def leads(self) -> bool:
        """Whether a first place is highlighted: at most half share it, and the metric means something by itself."""
        return is_distinction(self.board) and not self.metric.only_with

    def shared(self, line: EntryView) -> int:
        """Return how many other methods have the place of a line."""
        return 0 if line.entry.place is None else sum(one.place == line.place for one in self.lines) - 1

    @property
    def placed(self) -> int:
        """The number of methods that have a place."""
        return sum(line.entry.place is not None for line in self.lines)

    @property
    def arrow(self) -> str:
        """The direction of better values, as a sign."""
        return f"→ {self.metric.target:g}" if self.metric.target is not None else ARROWS.get(self.metric.direction, "")

    @property
    def laned(self) -> bool:
        """Whether groups are drawn as bars in lanes, rather than printed as letters."""
        return self.groups <= MANY_GROUPS

    @property
    def style(self) -> str:
        """The width of the lanes and the grid lines behind the intervals, as CSS."""
        axes = (("--own", self.own.axis), ("--gap", self.gap.axis))
        grids = [f"{name}:{grid_background(axis)}" for name, axis in axes if axis]
        return ";".join([f"--lanes:{10 * self.groups if self.laned else 0}px", *grids])

    @property
    def clipped(self) -> bool:
        """Whether an arrow marks values beyond an axis."""
        return any(column.axis is not None and column.axis.clipped for column in (self.own, self.gap))


def board_views(found: Leaderboard, summaries: Mapping[str, MethodSummary]) -> list[BoardView]:
    """Return all boards, given what each method is; overall boards have the places and means on their datasets."""
    places: dict[Any, Mapping[str, Cell]] = {}
    for board in found.boards:
        own = _on_dataset(board, found.metrics[board.metric])
        places[board.suite, board.metric, board.device, board.dataset] = own
        # Where a dataset has results of one device only, that is also its board for all devices.
        places.setdefault((board.suite, board.metric, None, board.dataset), own)
    boards = enumerate(found.boards)
    views = [_view(f"b{n}", board, found.metrics[board.metric], places, summaries) for n, board in boards]
    beside = [column_beside(view.board, view.metric, found.recalibrated) for view in views]
    views = [replace(view, recalibrated=column) for view, column in zip(views, beside, strict=True)]
    return [_with_scores(view, found) for view in views]


def _with_scores(view: BoardView, found: Leaderboard) -> BoardView:
    board = view.board
    if board.dataset is None or not is_of_scores(board.metric):
        return view
    own = found.scores.get((board.suite, board.dataset, condition(board.metric)), {})
    return replace(view, scores=tuple((line, own[line.method]) for line in view.lines if line.method in own))


def _on_dataset(board: Board, metric: Metric) -> dict[str, Cell]:
    """Return the place and the mean of every method on the dataset of a board, for the board over all datasets."""
    decimals = decimal_places((entry.value, entry.low, entry.high) for entry in board.entries)
    leads = is_distinction(board) and not metric.only_with
    return {
        entry.method: Cell(
            _place(entry.place),
            "" if entry.place is None else str(entry.place),
            remark=format_number(entry.value, decimals),
            won=leads and entry.place == 1,
        )
        for entry in board.entries
    }


def suite_pages(boards: Sequence[BoardView]) -> dict[str, str]:
    """Return the page of each suite, that of the first being the index; one page of all boards would open slowly."""
    first, *others = dict.fromkeys(view.board.suite for view in boards) or [""]
    return {first: INDEX, **{suite: f"suites/{file_name(suite)}.html" for suite in others}}


def place_text(board: Board) -> str:
    """Return where a board's values come from, in words."""
    where = f"over {len(board.datasets)} datasets" if board.dataset is None else f"on {board.dataset}"
    return f"{where}, suite {board.suite}, {board.device or 'all devices'}"


def is_decided(board: Board) -> bool:
    """Return whether a method was shown to be worse than another one: else all that have a place are first."""
    return any(entry.place not in (None, 1) for entry in board.entries)


def is_distinction(board: Board) -> bool:
    """Return whether at most half of the methods with a place share the first one: where most do, it says little."""
    places = [entry.place for entry in board.entries if entry.place is not None]
    return 0 < 2 * places.count(1) <= len(places)


def is_partial(entry: Entry) -> bool:
    """Return whether a method lacks values of some repeats, so that its mean is not comparable with the others'."""
    return entry.repeats < entry.planned


def distance_to_sort(view: BoardView, line: EntryView) -> str:
    """Return a value to sort a column by: the mean, or its distance to the target where the metric has one."""
    target = None if view.overall else view.metric.target
    return line.value.number if target is None else _to_sort(abs(line.entry.value - target))


def _view(key: str, board: Board, metric: Metric, places: Places, summaries: Mapping[str, MethodSummary]) -> BoardView:
    overall = board.dataset is None
    values = [(entry.score if overall else entry.value, entry.low, entry.high) for entry in board.entries]
    gaps = [entry.behind or (math.nan, math.nan, math.nan) for entry in board.entries]
    target = None if overall else metric.target
    own = Column(fit_axis(values, [] if target is None else [target]), decimal_places(values), target)
    gap = Column(None if overall else fit_axis(gaps, [0.0]), decimal_places(gaps))
    letters = tuple(dict.fromkeys(letter for entry in board.entries for letter in entry.groups))
    lines = []
    for entry in board.entries:
        lanes = draw_lanes(letters, entry.groups, MANY_GROUPS)
        summary = summaries.get(entry.method, MethodSummary())
        lines.append(_entry(entry, summary, board, own, gap, lanes, places))
    return BoardView(key, board, metric, tuple(lines), len(letters), own, gap)


def _entry(
    entry: Entry, summary: MethodSummary, board: Board, own: Column, gap: Column, lanes: Markup, places: Places
) -> EntryView:
    if board.dataset is None:
        value = own.cell(entry.score, entry.low, entry.high)
        value = replace(value, text=f"{entry.value:.2f}", number=_to_sort(entry.value))
    else:
        value = own.cell(entry.value, entry.low, entry.high)
    if is_partial(entry):  # sorted below the others, whatever the direction
        value = replace(value, number="")
    behind = gap.cell(*entry.behind, sign=True) if entry.behind else Cell(number="" if entry.place is None else "0")
    repeats = str(entry.repeats) if entry.repeats == entry.planned else f"{entry.repeats} of {entry.planned}"
    others = [places.get((board.suite, board.metric, board.device, name), {}) for name in board.datasets]
    on_datasets = tuple(of_dataset.get(entry.method, Cell("–")) for of_dataset in others)
    against = _against(entry, board, gap)
    return EntryView(entry, summary, _place(entry.place), lanes, value, behind, against, repeats, on_datasets)


def _against(entry: Entry, board: Board, gap: Column) -> Cell:
    if board.baseline is None or entry.method == board.baseline:
        return Cell("baseline" if entry.method == board.baseline else "", "0" if board.baseline else "")
    one = entry.against
    if one is None:
        return Cell("–")
    if board.dataset is not None:
        ends = format_interval(one.low, one.high, gap.decimals)
        difference = format_number(one.difference, gap.decimals, sign=True) + (f" ({ends})" if ends else "")
        return Cell(one.verdict, _to_sort(one.difference), difference, remark=_on_other_rows(one))
    expected = (
        ""
        if one.posterior is None
        else f"next dataset: {one.posterior.below:.2f} better, {one.posterior.above:.2f} worse"
    )
    return Cell(one.verdict, _to_sort(one.difference), expected)


def _on_other_rows(one: Against) -> str:
    """Return whether better or worse was also shown for other test rows, in words; '' where repeats have other rows."""
    if one.other_rows is None or one.verdict == "not shown to differ":
        return ""
    if one.other_rows.untested:
        return "not tested for other rows"
    p = one.other_rows.p
    words = "also for other rows" if one.other_rows.shown else "not shown for other rows"
    return f"{words} (p {'< 0.001' if p < 0.001 else f'= {p:.2g}'})"


def _to_sort(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""


def _place(place: int | None) -> str:
    return "–" if place is None else str(place)
