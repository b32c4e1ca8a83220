"""Numbers with as many digits as their uncertainty leaves."""

import math
from collections.abc import Iterable

import numpy as np


def digits(widths: Iterable[float], values: Iterable[float]) -> int:
    """Return the decimal places for a column: two digits of the typical half-width of its intervals.

    Without intervals four digits of the typical value.
    """
    halves = [width / 2 for width in widths if math.isfinite(width) and width > 0]
    if halves:
        return _places(float(np.median(halves)), 2)
    sizes = [abs(value) for value in values if math.isfinite(value) and value != 0]
    return _places(float(np.median(sizes)), 4) if sizes else 3


def _places(size: float, significant: int) -> int:
    return min(max(significant - 1 - math.floor(math.log10(size)), 0), 7)


def shown(value: float, places: int) -> str:
    """Return a number as text: with these places, in powers of ten where it is too large for that, a dash for none."""
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1e6:
        return f"{value:.2e}"
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text
