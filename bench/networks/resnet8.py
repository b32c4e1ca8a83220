"""ResNet8: the CIFAR ResNet of He et al. (2016, arXiv:1512.03385) with one block in each stage."""

from dataclasses import dataclass

from bench.networks._residual import ResidualImages


@dataclass(frozen=True)
class ResNet8Network(ResidualImages):
    """Three stages of `width`, twice and four times as many channels; the usual 16, 32, 64 have 78k parameters."""

    width: int = 16  # channels of the first stage

    growth = (1, 2, 4)
    blocks = 1
