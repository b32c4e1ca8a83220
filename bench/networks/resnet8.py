"""ResNet8: the CIFAR ResNet of He et al. (2016, arXiv:1512.03385) with one block in each stage."""

from dataclasses import dataclass

from torch import nn

from bench.api import Problem
from bench.networks._residual import ResidualImages, ResidualNetwork, Shortcut


class ResNet8(ResidualNetwork):
    """One block in each of three stages; with the usual width of 16, 32, 64 channels: 78k parameters."""

    def __init__(self, channels: int, outputs: int, width: int = 16, shortcut: Shortcut = "projection") -> None:
        super().__init__(channels, outputs, (width, 2 * width, 4 * width), 1, shortcut)


@dataclass(frozen=True)
class ResNet8Network(ResidualImages):
    """Three stages of `width`, twice and four times as many channels; hidden activations are those after each."""

    width: int = 16  # channels of the first stage

    def build(self, problem: Problem, outputs: int) -> nn.Module:
        """Return the network."""
        return ResNet8(problem.inputs[0], outputs, self.width, self.shortcut)
