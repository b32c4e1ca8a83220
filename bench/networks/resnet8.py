"""ResNet8: the CIFAR ResNet of He et al. (2016, arXiv:1512.03385) with one block in each stage."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.networks.activations import Hidden, unchanged


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
