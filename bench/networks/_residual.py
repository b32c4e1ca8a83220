"""Residual networks for images: convolutions with batch norm, blocks with a shortcut, and networks of such blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Hidden, Network, Problem, unchanged
from bench.networks._activations import need_images, require_positive

Shortcut = Literal["projection", "padding"]
Initialisation = Literal["torch", "he"]
NoisePlace = Literal["blocks", "last-branch"]


class NormalisedConvolution(nn.Module):
    """A convolution with batch norm; with fixed statistics the two are one convolution."""

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
        # Folding the norm into the weights of this draw costs little and saves a pass over the images.
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        kernel = self.conv.weight * scale[:, None, None, None]
        return F.conv2d(x, kernel, norm.bias - mean * scale, self.conv.stride, self.conv.padding)


class Stem(NormalisedConvolution):
    """The first convolution of a ResNet, with its activation."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the activation."""
        return F.relu(super().forward(x))


class PaddedShortcut(nn.Module):
    """The shortcut without parameters (option A of He et al. 2016): every stride-th pixel, new channels are zero."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.added, self.stride = outputs - inputs, stride

    def forward(self, x: Tensor) -> Tensor:
        """Return the smaller image with more channels."""
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with batch norm and a shortcut (He et al. 2016, arXiv:1512.03385)."""

    def __init__(self, inputs: int, outputs: int, stride: int, shortcut: Shortcut = "projection") -> None:
        super().__init__()
        self.first = NormalisedConvolution(inputs, outputs, 3, stride)
        self.second = NormalisedConvolution(outputs, outputs, 3)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            projection = shortcut == "projection"
            self.shortcut = (
                NormalisedConvolution(inputs, outputs, 1, stride)
                if projection
                else PaddedShortcut(inputs, outputs, stride)
            )

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the block's activation; `hidden` acts on the branch before the shortcut is added."""
        return F.relu(hidden(self.second(F.relu(self.first(x)))) + self.shortcut(x))


class ResidualNetwork(nn.Module):
    """A 3x3 stem, residual blocks in stages that halve the image, the mean over its pixels, and a linear layer."""

    def __init__(
        self,
        channels: int,
        outputs: int,
        widths: Sequence[int],
        blocks: int = 1,
        shortcut: Shortcut = "projection",
        noise_at: NoisePlace = "blocks",
    ) -> None:
        super().__init__()
        self.noise_at = noise_at
        self.stem = Stem(channels, widths[0], 3)
        made, before = [], widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                made.append(ResidualBlock(before, width, 2 if stage and not block else 1, shortcut))
                before = width
        self.stages = nn.ModuleList(made)
        self.head = nn.Linear(widths[-1], outputs)

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the logits `[rows, outputs]`; `hidden` acts where `noise_at` says."""
        x = self.stem(x)
        *before, last = self.stages
        if self.noise_at == "blocks":
            for block in self.stages:
                x = hidden(block(x))
        else:
            for block in before:
                x = block(x)
            x = last(x, hidden)
        outputs: Tensor = self.head(x.mean((2, 3)))
        return outputs


def initialise_as_he(module: nn.Module) -> None:
    """Draw weights from normals of variance 2 / (size^2 outputs) in convolutions and 2 / inputs in linear layers.

    He et al. 2015, "Delving Deep into Rectifiers", arXiv:1502.01852: by the outputs of a convolution, which keeps the
    size of gradients. Biases of linear layers start at 0.
    """
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(part, nn.Linear):
            nn.init.kaiming_normal_(part.weight, mode="fan_in", nonlinearity="relu")
            nn.init.zeros_(part.bias)


@dataclass(frozen=True)
class ResidualImages(Network):
    """The options of residual networks for images; subclasses say how stages grow and how many blocks each has."""

    width: int = 64  # channels of the first stage
    shortcut: Shortcut = "projection"  # where the shape changes: a 1x1 convolution, or zeros for the new channels
    initialisation: Initialisation = "torch"  # torch's own, or He et al.'s normals (2015, arXiv:1502.01852), no bias
    noise_at: NoisePlace = "blocks"  # hidden activations: after each block, or the last block's before its shortcut

    later = frozenset({"initialisation", "noise_at"})
    growth: ClassVar[tuple[int, ...]]  # of the stages: their channels, in multiples of the width
    blocks: ClassVar[int]  # of each stage

    def __post_init__(self) -> None:
        require_positive("width", self.width)

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        """Return the network."""
        widths = [self.width * times for times in self.growth]
        module = ResidualNetwork(problem.inputs[0], outputs, widths, self.blocks, self.shortcut, self.noise_at)
        if self.initialisation == "he":
            initialise_as_he(module)
        return module

    def skip(self, problem: Problem) -> str | None:
        """Only images."""
        return need_images(problem.inputs)
