"""A small convolutional network without batch norm, for small images."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Hidden, Network, Problem, unchanged
from bench.networks._activations import ACTIVATIONS, Activation, need_images, require_positive


class SmallConvolutional(nn.Module):
    """3x3 convolutions, each followed by the activation and 2x2 pooling, and a linear layer."""

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


@dataclass(frozen=True)
class ConvNetwork(Network):
    """3x3 convolutions, each followed by 2x2 pooling; members of a stack do not affect each other."""

    hidden: tuple[int, ...] = (50,)  # channels of each convolution
    activation: Activation = "relu"

    def __post_init__(self) -> None:
        require_positive("hidden", *self.hidden)

    def skip(self, problem: Problem) -> str | None:
        """Only images that can be halved once for every layer."""
        if reason := need_images(problem.inputs):
            return reason
        _, height, width = problem.inputs
        if not min(height, width) >> len(self.hidden):
            return f"halves {height} x {width} images too often: give 'hidden' fewer layers"
        return None

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        """Return the network."""
        return SmallConvolutional(problem.inputs, self.hidden, outputs, self.activation)
