"""What JSON can hold."""

import math
from typing import Any


def without_nan(value: Any) -> Any:
    """Return the value with null for every NaN and infinity, which JSON does not know."""
    if isinstance(value, dict):
        return {str(key): without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
