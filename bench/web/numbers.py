"""Numbers as text, with as many digits as their uncertainty justifies."""

import math
from collections.abc import Iterable

import numpy as np


def decimal_places(intervals: Iterable[tuple[float, float, float]]) -> int:
    """Return the decimal places for a column of values with their lower and upper ends.

    They give two digits of the typical half-width of the intervals; without intervals, four of the typical value.
    """
    rows = list(intervals)
    halves = [(high - low) / 2 for _, low, high in rows if math.isfinite(high - low) and high > low]
    if halves:
        return _places(float(np.median(halves)), 2)
    sizes = [abs(value) for value, _, _ in rows if math.isfinite(value) and value != 0]
    return _places(float(np.median(sizes)), 4) if sizes else 3


def _places(size: float, significant: int) -> int:
    return min(max(significant - 1 - math.floor(math.log10(size)), 0), 7)


def format_number(value: float, places: int, *, sign: bool = False) -> str:
    """Return a number with these decimal places: in powers of ten where it is large, a dash where it is not finite."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:.2e}" if abs(value) >= 1e6 else f"{value:.{places}f}"
    text = text.removeprefix("-") if float(text) == 0.0 else text
    return f"+{text}" if sign and value > 0 else text


def format_interval(low: float, high: float, places: int) -> str:
    """Return an interval; '' where an end is not finite."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{format_number(low, places)} to {format_number(high, places)}"
