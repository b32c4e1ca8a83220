"""The residual perceptron for rows: blocks of two linear layers, each added to its input.

    h <- h + W2 s(W1 h + b1) + b2

He et al. 2016, arXiv:1512.03385; for tables Gorishniy et al. 2021, "Revisiting Deep Learning Models for Tabular Data",
arXiv:2106.11959, there with batch norm and dropout.
"""

import math
from dataclasses import dataclass

from torch import Tensor, nn

from bench.api import Hidden, Network, Problem, unchanged
from bench.networks._activations import ACTIVATIONS, Activation, require_positive


class ResidualMLP(nn.Module):
    """A linear layer, residual blocks, and a linear layer; rows of any shape are flattened."""

    def __init__(self, inputs: int, outputs: int, width: int, blocks: int, activation: Activation = "relu") -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.inner = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.outer = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.head = nn.Linear(width, outputs)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the outputs `[rows, outputs]`; the hidden activations are those inside of the blocks and the last."""
        h = self.first(x.flatten(1))
        for inner, outer in zip(self.inner, self.outer, strict=True):
            h = h + outer(hidden(self.activation(inner(h))))
        outputs: Tensor = self.head(hidden(self.activation(h)))
        return outputs


@dataclass(frozen=True)
class ResidualMLPNetwork(Network):
    """All hidden layers have the same width."""

    width: int = 50  # units of every hidden layer
    blocks: int = 2
    activation: Activation = "relu"

    def __post_init__(self) -> None:
        require_positive("width and blocks", self.width, self.blocks)

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        """Return the network."""
        return ResidualMLP(math.prod(problem.inputs), outputs, self.width, self.blocks, self.activation)
