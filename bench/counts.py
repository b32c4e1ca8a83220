"""Counts in words: "1 cell", "2 cells"."""


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless there is exactly one."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
