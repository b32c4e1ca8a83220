"""Random crops and flips of a whole batch at once, on the device of the batch."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def crop_and_flip(images: Tensor, uniform: Tensor, padding: int = 4, border: Sequence[float] = ()) -> Tensor:
    """Shift every image by up to `padding` pixels each way and flip half of them (He et al. 2016).

    `uniform` `[rows, 3]` are random numbers from 0 to 1. What is shifted in has the values of `border`, one for each
    channel; without them it is 0, in standardised images the mean colour, in others black.
    """
    rows, channels, height, width = images.shape
    shift = (uniform[:, :2] * (2 * padding + 1)).long().clamp(max=2 * padding)  # a float32 uniform may round up to 1
    down = shift[:, 0, None] + torch.arange(height, device=images.device)
    across = torch.arange(width, device=images.device)
    flipped = (uniform[:, 2] < 0.5)[:, None]
    across = shift[:, 1, None] + torch.where(flipped, across.flip(0), across)
    # One gather of whole images: the index of every pixel in the padded, flattened image.
    wide = width + 2 * padding
    place = (down[:, :, None] * wide + across[:, None, :]).reshape(rows, 1, height * width)
    around = (padding,) * 4
    if border:  # numbers, not a tensor, which a graph that is kept on disk would not be named by
        parts = zip(images.split(1, 1), border, strict=True)
        padded = torch.cat([F.pad(part, around, value=value) for part, value in parts], 1)
    else:
        padded = F.pad(images, around)
    flat = padded.flatten(2)
    return flat.gather(2, place.expand(-1, channels, -1)).reshape(images.shape)
