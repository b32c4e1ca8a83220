"""Which of many curves in a panel stand out: those of the best methods and of the baseline; the others are grey."""

from collections.abc import Collection, Mapping
from typing import Any

from bench.api import style

MOST_COLOURED = 8  # methods up to which every curve has its colour
HIGHLIGHTED = 5  # of more than that, beside the baseline


def highlighted(losses: Mapping[str, float], baseline: str | None) -> list[str]:
    """Return the methods whose curves stand out: all where they are few, else the best and the baseline."""
    order = sorted(losses, key=lambda method: losses[method])
    if len(order) <= MOST_COLOURED:
        return order
    best = order[:HIGHLIGHTED]
    return [*best, *(method for method in order[HIGHLIGHTED:] if method == baseline)]


def line_of(method: str, chosen: Collection[str], points: float = 0.0) -> dict[str, Any]:
    """Return the arguments of `Axes.plot` for a curve, with markers of some size where it stands out."""
    if method not in chosen:
        return {"color": style.EVEN, "linewidth": 0.7, "alpha": 0.55, "zorder": 1.5}
    look = style.look(method)
    return {**(look.of_points(points) if points else {}), **look.of_line(), "zorder": 2.5}


def about_grey(count: int, what: str) -> str:
    """Return the sentence of a caption that says which curves have colours; empty where all have."""
    if count <= MOST_COLOURED:
        return ""
    return f" Of {count} methods the {HIGHLIGHTED} best of each panel {what} and the baseline have colours and names."
