"""The multilayer perceptron."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from bench.networks.activations import ACTIVATIONS, Activation, Hidden, unchanged


class MLP(nn.Module):
    """A fully connected network; rows of any shape are flattened."""

    def __init__(self, inputs: int, hidden: Sequence[int], outputs: int, activation: Activation = "relu") -> None:
        super().__init__()
        sizes = [inputs, *hidden, outputs]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the outputs `[rows, outputs]`."""
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = hidden(self.activation(layer(x)))
        outputs: Tensor = self.layers[-1](x)
        return outputs
