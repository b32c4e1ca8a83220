"""A cache of random draws that many comparisons share.

Every comparison of a suite starts from the seed of its settings, so hundreds of them draw the same resamples. A
generator in the same state draws the same numbers: they come from the cache, and the generator is advanced alike.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 64 * 2**20
Drawn = TypeVar("Drawn", bound=NDArray[Any])
_cache: "OrderedDict[Hashable, tuple[Any, Mapping[str, Any]]]" = OrderedDict()


def draw_cached(generator: np.random.Generator, what: Hashable, draw: Callable[[np.random.Generator], Drawn]) -> Drawn:
    """Return `draw(generator)`, read-only; `what` identifies the draw and all that it depends on but the generator."""
    state = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        return draw(generator)
    place = state["state"]
    key = (what, place["state"], place["inc"], state["has_uint32"], state["uinteger"])
    if key in _cache:
        _cache.move_to_end(key)
        known: Drawn
        known, generator.bit_generator.state = _cache[key]
        return known
    values = draw(generator)
    values.setflags(write=False)
    _cache[key] = (values, generator.bit_generator.state)
    while len(_cache) > 1 and sum(array.nbytes for array, _ in _cache.values()) > MOST_BYTES:
        _cache.popitem(last=False)
    return values
