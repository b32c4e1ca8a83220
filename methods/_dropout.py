"""The masks of dropout."""

from collections.abc import Sequence

from torch import Tensor

from bench.api import Tape


def keep(shape: Sequence[int], rate: float, tape: Tape) -> Tensor:
    """Return a mask that drops each entry with this probability and keeps the mean."""
    return (tape.uniform(shape) >= rate) / (1 - rate)
