"""The hook through which methods change the hidden activations of a network.

Each `forward(x, hidden=...)` passes every hidden activation through `hidden` before the next layer, so a method can
add noise there (dropout, activation noise) without rewriting the module.
"""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, tanh

Hidden = Callable[[Tensor], Tensor]
Activation = Literal["relu", "tanh"]
ACTIVATIONS: dict[Activation, Hidden] = {"relu": F.relu, "tanh": tanh}


def unchanged(activation: Tensor) -> Tensor:
    """Return the activation itself: the hook of a network without noise."""
    return activation
