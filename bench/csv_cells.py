"""Text in the cells of CSV files: a spreadsheet shows it and does not carry it out."""

from functools import lru_cache
from typing import Any

# What a spreadsheet would take for a formula: https://owasp.org/www-community/attacks/CSV_Injection
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001  # their wide forms count too


@lru_cache(maxsize=10_000)  # an export has a million cells with a few names
def harmless_text(words: str) -> str:
    """Return text with an apostrophe before it if a spreadsheet would take it for a formula."""
    if not words.lstrip(" ").startswith(FORMULA):
        return words
    try:
        float(words)
    except ValueError:
        return "'" + words
    return words  # a number with its sign


def harmless_cell(value: Any) -> Any:
    """Return a cell that is written as it is, unless it is text that a spreadsheet would take for a formula."""
    return harmless_text(value) if isinstance(value, str) else value
