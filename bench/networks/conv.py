"""A small convolutional network without batch norm."""

from collections.abc import Sequence
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from bench.networks.activations import ACTIVATIONS, Activation, Hidden, unchanged


class SmallConvolutional(nn.Module):
    """3x3 convolutions, each followed by the activation and 2x2 pooling, and a linear layer.

    For small images. Without batch norm, so that members of a stack do not affect each other.
    """

    def __init__(
        self, inputs: tuple[int, ...], channels: Sequence[int], outputs: int, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        widths = [inputs[0], *channels]
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise(widths))
        left = (inputs[1] >> len(channels)) * (inputs[2] >> len(channels))
        self.head = nn.Linear(widths[-1] * left, outputs)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the logits `[rows, outputs]`; the hidden activations are the pooled ones."""
        for layer in self.layers:
            x = hidden(F.max_pool2d(self.activation(layer(x)), 2))
        outputs: Tensor = self.head(x.flatten(1))
        return outputs
