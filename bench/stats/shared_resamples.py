"""Random draws that many studies share.

Every comparison of a suite starts from the seed of its settings, so hundreds of them draw the same resamples. A
generator in the same state draws the same numbers: they are looked up, and the generator moves on as if it had drawn.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from bench.stats.tests import Array

MOST_BYTES = 64 * 2**20
_kept: "OrderedDict[Hashable, tuple[Array, Mapping[str, Any]]]" = OrderedDict()


def draw_cached(generator: np.random.Generator, what: Hashable, draw: Callable[[np.random.Generator], Array]) -> Array:
    """Return what `draw` draws, read-only; `what` names the draw and everything it depends on but the generator."""
    state = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        return draw(generator)
    place = state["state"]
    key = (what, place["state"], place["inc"], state["has_uint32"], state["uinteger"])
    if key in _kept:
        _kept.move_to_end(key)
        values, generator.bit_generator.state = _kept[key]
        return values
    values = draw(generator)
    values.setflags(write=False)
    _kept[key] = (values, generator.bit_generator.state)
    while len(_kept) > 1 and sum(array.nbytes for array, _ in _kept.values()) > MOST_BYTES:
        _kept.popitem(last=False)
    return values
