"""The activation functions that networks offer as an option, and checks of sizes."""

from collections.abc import Sequence
from typing import Literal

import torch.nn.functional as F
from torch import tanh

from bench.api import Hidden

Activation = Literal["relu", "tanh"]
ACTIVATIONS: dict[Activation, Hidden] = {"relu": F.relu, "tanh": tanh}


def require_positive(name: str, *sizes: int) -> None:
    """Raise for a size below 1."""
    if any(size < 1 for size in sizes):
        raise ValueError(f"{name}: expected whole numbers above 0, got {', '.join(map(str, sizes))}")


def need_images(inputs: Sequence[int]) -> str | None:
    """Return why a network for images cannot take these rows, or None."""
    return None if len(inputs) == 3 else f"needs images [channels, height, width], not rows of {tuple(inputs)}"
