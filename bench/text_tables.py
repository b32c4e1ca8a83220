"""Tables as lines of text: Markdown for documents, and names cut to the columns of a terminal."""

from collections.abc import Iterable, Sequence


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (), *, padded: bool = False
) -> list[str]:
    """Return the lines of a Markdown table; cells are written as they are, so escape what could be markup.

    Columns at the positions `numbers` are aligned to the right. `padded` makes all cells of a column equally wide, to
    be read as plain text.
    """
    body = [list(row) for row in rows]
    right = set(numbers)
    rule = ["---:" if column in right else "---" for column in range(len(header))]
    if padded:
        widths = [max(len(row[column]) for row in [header, *body]) for column in range(len(header))]
        sides = [str.rjust if column in right else str.ljust for column in range(len(header))]
        header, *body = (
            [side(cell, width) for cell, side, width in zip(row, sides, widths, strict=True)] for row in [header, *body]
        )
        rule = ["-" * (width - (c in right)) + ":" * (c in right) for c, width in enumerate(widths)]
    lines = [f"| {' | '.join(row)} |" for row in (header, rule, *body)]
    return [lines[0].replace("|  |", "| |"), *lines[1:]]


def cut(text: str, width: int) -> str:
    """Return text in one line of at most `width` characters, with an ellipsis where some are left out."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
