"""How the engine may use the machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch

PathName = Literal["auto", "stack", "plain"]

SLOTS = 128  # networks trained side by side: cost per network is flat from about 100 on
# Above this a network's cost is arithmetic: an MLP needs thousands of operations a row, a ResNet8 25 million.
FLOPS_PER_ROW_OF_A_LARGE_NETWORK = 1e6


@dataclass(frozen=True)
class Limits:
    """How the engine may use the machine. None of it changes a result by more than rounding."""

    path: PathName = "auto"
    compiling: bool | None = None  # None: where a compiler is found and the training is long enough to pay
    slots: int = SLOTS
    bytes: int = 2**30
    checkpoints: str = ""  # the folder where large networks are kept after every epoch; none: nowhere


def is_large(flops_per_row: float, limits: Limits) -> bool:
    """Should this network run by itself rather than in a stack?"""
    return limits.path == "plain" or (limits.path == "auto" and flops_per_row > FLOPS_PER_ROW_OF_A_LARGE_NETWORK)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute with so many threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
