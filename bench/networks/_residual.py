"""Residual networks for images: convolutions with batch norm, blocks with a shortcut, and networks of such blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Hidden, Network, Problem, unchanged
from bench.networks._activations import need_images, require_positive

Shortcut = Literal["projection", "padding"]


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

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's activation."""
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResidualNetwork(nn.Module):
    """A 3x3 stem, residual blocks in stages that halve the image, the mean over its pixels, and a linear layer."""

    def __init__(
        self, channels: int, outputs: int, widths: Sequence[int], blocks: int = 1, shortcut: Shortcut = "projection"
    ) -> None:
        super().__init__()
        self.stem = Stem(channels, widths[0], 3)
        made, before = [], widths[0]
        for stage, width in enumerate(widths):
            for block in range(blocks):
                made.append(ResidualBlock(before, width, 2 if stage and not block else 1, shortcut))
                before = width
        self.stages = nn.ModuleList(made)
        self.head = nn.Linear(widths[-1], outputs)

    def forward(self, x: Tensor, hidden: Hidden = unchanged) -> Tensor:
        """Return the logits `[rows, outputs]`; the hidden activations are those after each block."""
        x = self.stem(x)
        for stage in self.stages:
            x = hidden(stage(x))
        outputs: Tensor = self.head(x.mean((2, 3)))
        return outputs


@dataclass(frozen=True)
class ResidualImages(Network):
    """The options of residual networks for images."""

    width: int = 64  # channels of the first stage
    shortcut: Shortcut = "projection"  # where the shape changes: a 1x1 convolution, or zeros for the new channels

    def __post_init__(self) -> None:
        require_positive("width", self.width)

    def skip(self, problem: Problem) -> str | None:
        """Only images."""
        return need_images(problem.inputs)
