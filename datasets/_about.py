"""One line about a user's table: what it holds, what became of its columns, and which of them is predicted."""

from collections.abc import Sequence

from bench.datasets._encoding import Encoding
from bench.datasets._table import Table

MOST_NAMES = 5  # of columns of one kind


def about_table(where: str, table: Table, encodings: Sequence[Encoding], target: str, *, named: bool) -> str:
    """Return the line; `named`: whether the user named the target."""
    count = sum(len(each.features) for each in encodings)
    parts = {
        "one-hot": [f"{each.name} {len(each.categories)}" for each in encodings if each.kind == "one-hot"],
        "ordinal": [each.name for each in encodings if each.kind == "ordinal"],
        "dates": [each.name for each in encodings if each.kind == "date"],
        "gaps": [each.name for each in encodings if each.indicator],
    }
    kinds = "; ".join(f"{kind}: {_listed(names)}" for kind, names in parts.items() if names)
    features = f"{count} feature{'s' * (count != 1)}" + (f" ({kinds})" if kinds else "")
    last = "" if named else " (the last column, because none was named)"
    return f"{where} has {len(table):,} rows and {len(table.columns)} columns: {features}, target {target!r}{last}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
