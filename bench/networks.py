"""The architectures: ordinary modules that methods transform.

Each `forward(x, hidden=...)` passes every hidden activation through `hidden` before the next layer sees it, so a
method can put noise there (dropout, activation noise) without rewriting the module.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn, tanh

from bench.api import NewNetwork, Problem
from bench.errors import UserError
from bench.protocol import Architecture

Hidden = Callable[[Tensor], Tensor]
Activation = Literal["relu", "tanh"]
ACTIVATIONS: dict[Activation, Hidden] = {"relu": F.relu, "tanh": tanh}


def unchanged(activation: Tensor) -> Tensor:
    """The hidden hook of a network without noise."""
    return activation


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


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with batch norm and a shortcut (He et al. 2016, arXiv:1512.03385)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's activation."""
        inner = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(inner + self.shortcut(x))


class ResNet8(nn.Module):
    """The CIFAR ResNet of He et al. with one block in each of three stages (16, 32, 64 channels): 78k parameters."""

    def __init__(self, channels: int, outputs: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.stages = nn.ModuleList([ResidualBlock(16, 16, 1), ResidualBlock(16, 32, 2), ResidualBlock(32, 64, 2)])
        self.head = nn.Linear(64, outputs)

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the logits `[rows, outputs]`; the hidden activations are those after each stage."""
        x = F.relu(self.norm(self.stem(x)))
        for stage in self.stages:
            x = hidden(stage(x))
        outputs: Tensor = self.head(x.mean((2, 3)))
        return outputs


def network_factory(network: Architecture, problem: Problem) -> NewNetwork:
    """Return what makes a fresh network for the problem, given the number of outputs."""
    if network.kind == "resnet8":
        if len(problem.inputs) != 3:
            raise UserError(f"network 'resnet8' needs images [channels, height, width], not rows of {problem.inputs}")
        return lambda outputs: ResNet8(problem.inputs[0], outputs)
    size = math.prod(problem.inputs)
    return lambda outputs: MLP(size, network.hidden, outputs, network.activation)
