"""The architectures: ordinary modules that methods transform.

Each `forward(x, hidden=...)` passes every hidden activation through `hidden` before the next layer sees it, so a
method can put noise there (dropout, activation noise) without rewriting the module.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import torch
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


class NormalisedConvolution(nn.Module):
    """A convolution and its batch norm, which are one convolution once the statistics are fixed."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised activation."""
        norm, mean, variance = self.norm, self.norm.running_mean, self.norm.running_var
        if self.training or mean is None or variance is None:
            normalised: Tensor = norm(self.conv(x))
            return normalised
        # The weights here are those of the draw, noise and all: folding costs little and saves a pass over the images.
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        kernel = self.conv.weight * scale[:, None, None, None]
        return F.conv2d(x, kernel, norm.bias - mean * scale, self.conv.stride, self.conv.padding)


class Stem(NormalisedConvolution):
    """The first convolution of a ResNet, with its activation."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the activation."""
        return F.relu(super().forward(x))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with batch norm and a shortcut (He et al. 2016, arXiv:1512.03385)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = NormalisedConvolution(inputs, outputs, 3, stride)
        self.second = NormalisedConvolution(outputs, outputs, 3)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = NormalisedConvolution(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's activation."""
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet8(nn.Module):
    """The CIFAR ResNet of He et al. with one block in each of three stages (16, 32, 64 channels): 78k parameters."""

    def __init__(self, channels: int, outputs: int) -> None:
        super().__init__()
        self.stem = Stem(channels, 16, 3)
        self.stages = nn.ModuleList([ResidualBlock(16, 16, 1), ResidualBlock(16, 32, 2), ResidualBlock(32, 64, 2)])
        self.head = nn.Linear(64, outputs)

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the logits `[rows, outputs]`; the hidden activations are those after each stage."""
        x = self.stem(x)
        for stage in self.stages:
            x = hidden(stage(x))
        outputs: Tensor = self.head(x.mean((2, 3)))
        return outputs


class SmallConvolutional(nn.Module):
    """3x3 convolutions, each followed by the activation and by 2x2 pooling, and a linear layer on what is left.

    For small images: no batch norm, so that it can train in a stack without touching the other members.
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


def network_factory(network: Architecture, problem: Problem) -> NewNetwork:
    """Return what makes a fresh network for the problem, given the number of outputs."""
    if network.kind != "mlp" and len(problem.inputs) != 3:
        raise UserError(
            f"network {network.kind!r} needs images [channels, height, width], not rows of {problem.inputs}"
        )
    if network.kind == "resnet8":
        return lambda outputs: ResNet8(problem.inputs[0], outputs)
    if network.kind == "conv":
        _, height, width = problem.inputs
        if not min(height, width) >> len(network.hidden):
            raise UserError(f"network 'conv' halves {height} x {width} images too often: give 'hidden' fewer layers")
        return lambda outputs: SmallConvolutional(problem.inputs, network.hidden, outputs, network.activation)
    size = math.prod(problem.inputs)
    return lambda outputs: MLP(size, network.hidden, outputs, network.activation)
