"""Values that JSON can represent."""

import math
from collections.abc import Callable
from typing import Any


def without_nan(value: Any, substitute: Callable[[float], Any] = lambda number: None) -> Any:
    """Return the value with a substitute (by default null) for every NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {str(key): without_nan(inner, substitute) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(inner, substitute) for inner in value]
    return substitute(value) if isinstance(value, float) and not math.isfinite(value) else value
