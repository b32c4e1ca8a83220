"""The page that explains the others: an example with numbers of the site, questions and where they are answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.counts import plural
from bench.leaderboard.collect import Leaderboard
from bench.leaderboard.view_boards import BoardView, EntryView, suite_pages
from bench.web.names import better_values, metric_name


@dataclass(frozen=True)
class Example:
    """One row of a board, put into words."""

    view: BoardView
    line: EntryView
    address: str
    sentences: tuple[str, ...]


def reading_page(found: Leaderboard, boards: Sequence[BoardView]) -> dict[str, Any]:
    """Return the content of the page."""
    return {
        "title": "How to read this",
        "found": found,
        "boards": boards,
        "example": example(boards),
        "metrics": [(metric_name(name), metric, better_values(metric)) for name, metric in found.metrics.items()],
    }


def example(boards: Sequence[BoardView]) -> Example | None:
    """Return a row that shows most: one with a place below the first and a verdict, where there is one."""
    found = [
        (_shows(view, line), -number, view, line)
        for number, view in enumerate(boards)
        if not view.overall
        for line in view.lines
        if line.entry.place is not None
    ]
    if not found:
        return None
    _, _, view, line = max(found, key=lambda one: one[:2])
    page = suite_pages(boards)[view.board.suite]
    return Example(view, line, f"{page}#{view.key}", tuple(_sentences(view, line)))


def _shows(view: BoardView, line: EntryView) -> int:
    against = line.entry.against
    decided = against is not None and against.verdict != "not shown to differ"
    return 2 * decided + (view.decided and line.place != "1")


def _sentences(view: BoardView, line: EntryView) -> list[str]:
    entry, board = line.entry, view.board
    placed = sum(one.place is not None for one in board.entries)
    ahead = int(entry.place or 1) - 1
    found = [
        f"Mean {line.value.text}: the mean of {view.name} over {plural(entry.repeats, 'repeat')}; {view.better}.",
        f"Interval {line.value.interval}: where the mean of many more repeats would lie, with 95 % confidence.",
        f"Place {line.place}, of {plural(placed, 'method')} with a place: "
        + (
            f"{plural(ahead, 'method')} {'was' if ahead == 1 else 'were'} shown to be better."
            if ahead
            else "no other method was shown to be better."
        ),
    ]
    if line.behind.text:
        found.append(
            f"Behind the best {line.behind.text} ({line.behind.interval}): the mean difference to "
            f"{view.lines[0].method}, repeat by repeat; positive is worse."
        )
    if entry.against is not None:
        found.append(
            f"Against {board.baseline}: {entry.against.verdict} (corrected p = {entry.against.p:.2g}); the difference "
            f"of losses with its interval is {line.against.interval}."
        )
    return found
