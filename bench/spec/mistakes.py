"""Mistakes in a user's tables, in one line."""

import reprlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from bench.errors import unknown_name

if TYPE_CHECKING:
    from pydantic import ValidationError

UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def first_mistake(error: "ValidationError", keys: Mapping[str, Collection[str]], table: str = "") -> str:
    """Return the first thing that is wrong with a table, and where.

    `keys` are those that are known, by the name of the table inside this one ("": this one itself).
    """
    # A misspelt key comes before the missing one that it was meant to be.
    first = min(error.errors(), key=lambda each: each["type"] not in UNKNOWN)
    parts = [str(part) for part in first["loc"]]
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    place, inside = ".".join([*([table] if table else []), *parts]), ".".join(parts[:-1])
    match first["type"]:
        case kind if kind in UNKNOWN:
            known = keys.get(inside, keys[""])
            text = str(unknown_name("key", parts[-1], known, place.removesuffix(parts[-1]).removesuffix(".")))
        case "missing":
            text = f"{place}: this key is required"
        case "too_short":
            text = f"{place}: name at least one"
        case "value_error":  # two keys that do not go together
            text = str(first["ctx"]["error"])
        case _:
            text = f"{place}: {first['msg']}, got {reprlib.repr(first['input'])}"
    return f"{text}{more}"
