"""Boards as the templates want them: texts, drawn intervals, values to sort by."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from bench.leaderboard.boards import Board, Entry
from bench.leaderboard.collect import Leaderboard
from bench.metrics import Metric
from bench.web.names import better, file_name, metric_name
from bench.web.numbers import digits, shown
from bench.web.svg import Axis, axis, grid, interval, lanes, scale

MANY_GROUPS = 12  # lanes that fit a table; with more of them letters tell who is tied


@dataclass(frozen=True)
class Line:
    """One method on a shown board."""

    method: str
    page: str
    place: str
    place_value: int
    groups: str
    lanes: Markup
    value: str
    value_number: str  # to sort by; '' where there is none
    interval: str
    picture: Markup
    behind: str
    behind_interval: str
    behind_number: str
    behind_picture: Markup
    repeats: str
    short: bool  # fewer repeats than were planned
    lost: str
    places: tuple[str, ...] = ()  # on an overall board: the place on every dataset


@dataclass(frozen=True)
class ShownBoard:
    """A board, ready for a page."""

    key: str
    board: Board
    metric: Metric
    name: str  # of the metric, with its condition
    better: str
    lines: tuple[Line, ...]
    laned: bool  # groups are drawn as bars in lanes, rather than told by letters
    scale: Markup
    behind_scale: Markup
    style: str  # the width of the lanes and the lines behind the intervals
    clipped: bool
    datasets: tuple[tuple[str, str], ...] = field(default=())  # of an overall board: name and page

    @property
    def overall(self) -> bool:
        """Is it over all datasets?"""
        return self.board.dataset is None


def shown_boards(found: Leaderboard) -> list[ShownBoard]:
    """Return all boards, ready for pages; overall boards know the places on their datasets."""
    places: dict[Any, Mapping[str, int | None]] = {}
    for board in found.boards:
        own = {entry.method: entry.place for entry in board.entries}
        places[board.suite, board.metric, board.device, board.dataset] = own
        # Where a dataset has results of one device only, that is also its board for all devices.
        places.setdefault((board.suite, board.metric, None, board.dataset), own)
    return [_shown(n, board, found.metrics[board.metric], places) for n, board in enumerate(found.boards)]


def _shown(number: int, board: Board, metric: Metric, places: Mapping[Any, Mapping[str, int | None]]) -> ShownBoard:
    overall = board.dataset is None
    drawn = [(entry.score if overall else entry.value, entry.low, entry.high) for entry in board.entries]
    on = axis(drawn, [] if overall or metric.target is None else [metric.target])
    gaps = [entry.behind or (math.nan,) * 3 for entry in board.entries]
    behind = None if overall else axis(gaps, [0.0])
    letters = tuple(dict.fromkeys(letter for entry in board.entries for letter in entry.groups))
    lines = [
        _line(entry, board, metric, on, behind, decimals, places, lanes(letters, entry.groups, MANY_GROUPS))
        for decimals in [(_decimals(drawn), _decimals(gaps))]
        for entry in board.entries
    ]
    empty = Markup("")
    return ShownBoard(
        f"b{number}",
        board,
        metric,
        metric_name(board.metric),
        better(metric),
        tuple(lines),
        len(letters) <= MANY_GROUPS,
        scale(on) if on else empty,
        scale(behind) if behind else empty,
        ";".join(
            [
                f"--lanes:{10 * len(letters) if len(letters) <= MANY_GROUPS else 0}px",
                *(f"{name}:{grid(one)}" for name, one in (("--own", on), ("--gap", behind)) if one),
            ]
        ),
        bool((on and on.clipped) or (behind and behind.clipped)),
        tuple((name, f"datasets/{file_name(name)}.html") for name in board.datasets),
    )


def _decimals(rows: Sequence[tuple[float, ...]]) -> int:
    return digits([high - low for _, low, high in rows], [value for value, _, _ in rows])


def _line(
    entry: Entry,
    board: Board,
    metric: Metric,
    on: Axis | None,
    behind_axis: Axis | None,
    decimals: tuple[int, int],
    places: Mapping[Any, Mapping[str, int | None]],
    bars: Markup,
) -> Line:
    own, gap = decimals
    overall = board.dataset is None
    middle = entry.score if overall else entry.value
    target = None if overall else metric.target
    behind = entry.behind
    return Line(
        method=entry.method,
        page=f"methods/{file_name(entry.method)}.html",
        place=str(entry.place) if entry.place is not None else "–",
        place_value=entry.place if entry.place is not None else 10**6,
        groups=entry.groups,
        lanes=bars,
        value=f"{entry.value:.2f}" if overall else shown(entry.value, own),
        value_number=_to_sort(entry.value),
        interval=_interval(entry.low, entry.high, own),
        picture=interval(on, middle, entry.low, entry.high, target) if on else Markup(""),
        behind=_signed(behind[0], gap) if behind else "",
        behind_interval=_interval(behind[1], behind[2], gap) if behind else "",
        behind_number=_to_sort(behind[0]) if behind else "" if entry.place is None else "0",
        behind_picture=interval(behind_axis, *behind) if behind and behind_axis else Markup(""),
        repeats=str(entry.repeats) if entry.repeats == entry.planned else f"{entry.repeats} of {entry.planned}",
        short=entry.repeats < entry.planned,
        lost=entry.lost,
        places=tuple(_place(board, name, entry.method, places) for name in board.datasets),
    )


def _to_sort(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""


def _interval(low: float, high: float, decimals: int) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{shown(low, decimals)} to {shown(high, decimals)}"


def _signed(value: float, decimals: int) -> str:
    text = shown(value, decimals)
    return f"+{text}" if value > 0 and not text.startswith("–") else text


def _place(board: Board, dataset: str, method: str, places: Mapping[Any, Mapping[str, int | None]]) -> str:
    found = places.get((board.suite, board.metric, board.device, dataset), {}).get(method)
    return "–" if found is None else str(found)
