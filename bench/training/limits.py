"""Limits on the use of the machine by training and drawing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch

PathName = Literal["auto", "stack", "plain"]

SLOTS = 128  # networks trained together: the cost per network is constant from about 100 on
# Above this, arithmetic dominates: an MLP needs thousands of operations per row, a ResNet8 25 million.
FLOPS_PER_ROW_OF_A_LARGE_NETWORK = 1e6


@dataclass(frozen=True)
class Limits:
    """Limits on the use of the machine. They change results by rounding at most."""

    path: PathName = "auto"
    compiling: bool | None = None  # None: if there is a compiler and the training is long enough
    slots: int = SLOTS
    bytes: int = 2**30
    checkpoints: str = ""  # folder for large networks in training; empty: none
    networks: str = ""  # folder in which trained networks are kept, and looked for; empty: none


def is_large(flops_per_row: float, limits: Limits, alone: bool = False) -> bool:
    """Return whether a network trains by itself rather than in a stack; `alone`: its plug-in says that it must."""
    return (
        alone or limits.path == "plain" or (limits.path == "auto" and flops_per_row > FLOPS_PER_ROW_OF_A_LARGE_NETWORK)
    )


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute with this many threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
