"""Where methods reach the hidden activations of a network.

Each `forward(x, hidden=...)` passes every hidden activation through `hidden` before the next layer sees it, so a
method can put noise there (dropout, activation noise) without rewriting the module.
"""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, tanh

Hidden = Callable[[Tensor], Tensor]
Activation = Literal["relu", "tanh"]
ACTIVATIONS: dict[Activation, Hidden] = {"relu": F.relu, "tanh": tanh}


def unchanged(activation: Tensor) -> Tensor:
    """The hidden hook of a network without noise."""
    return activation
