"""The multilayer perceptron: fully connected layers; rows of any shape are flattened."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn

from bench.api import Hidden, Network, Problem, unchanged
from bench.networks._activations import ACTIVATIONS, Activation, require_positive
from bench.networks._dense import Dense, activated


class MLP(nn.Module):
    """A fully connected network; rows of any shape are flattened."""

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int, activation: Activation = "relu") -> None:
        super().__init__()
        sizes = [inputs, *hidden, outputs]
        self.layers = nn.ModuleList(Dense(a, b) for a, b in pairwise(sizes))
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the outputs `[rows, outputs]`."""
        x = x.flatten(1)
        *inner, last = self.layers  # a slice would be a new module, which takes as long as a small layer
        for layer in inner:
            x = hidden(activated(self.activation, layer(x)))
        outputs: Tensor = last(x)
        return outputs


@dataclass(frozen=True)
class MLPNetwork(Network):
    """Without a hidden layer it is a linear model."""

    hidden: tuple[int, ...] = (50,)  # units of each hidden layer
    activation: Activation = "relu"

    def __post_init__(self) -> None:
        require_positive("hidden", *self.hidden)

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        """Return the network."""
        return MLP(math.prod(problem.inputs), self.hidden, outputs, self.activation)
