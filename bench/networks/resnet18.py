"""ResNet-18 in its CIFAR form: a 3x3 stem without pooling, then four stages of two blocks; 11 million parameters.

He et al. 2016, "Deep Residual Learning for Image Recognition", arXiv:1512.03385. The form for images of 32 x 32 pixels
replaces the 7x7 stem with stride 2 and the pooling behind it, which would leave an image of 1 x 1 pixel.
"""

from dataclasses import dataclass

from bench.networks._residual import ResidualImages


@dataclass(frozen=True)
class ResNet18Network(ResidualImages):
    """Stages of `width` and 2, 4, 8 times as many channels; hidden activations are those after each of 8 blocks."""

    width: int = 64  # channels of the first stage

    growth = (1, 2, 4, 8)
    blocks = 2
