"""Random crops and mirror images of a whole batch at once, on the device where the batch is."""

import torch
import torch.nn.functional as F
from torch import Tensor


def crop_and_flip(images: Tensor, uniform: Tensor, padding: int = 4) -> Tensor:
    """Shift every image by up to `padding` pixels each way, 0 beyond its edge, and mirror one in two (He et al. 2016).

    `uniform` `[rows, 3]` are the random numbers, from 0 to 1: a tape's, or a generator's. In standardised images the
    border is the mean colour, in others it is black.
    """
    rows, channels, height, width = images.shape
    shift = (uniform[:, :2] * (2 * padding + 1)).long().clamp(max=2 * padding)  # a float32 uniform may round up to 1
    down = shift[:, 0, None] + torch.arange(height, device=images.device)
    across = torch.arange(width, device=images.device)
    mirrored = (uniform[:, 2] < 0.5)[:, None]
    across = shift[:, 1, None] + torch.where(mirrored, across.flip(0), across)
    # One gather of whole images: the place of every pixel in the padded, flattened picture.
    wide = width + 2 * padding
    place = (down[:, :, None] * wide + across[:, None, :]).reshape(rows, 1, height * width)
    flat = F.pad(images, (padding,) * 4).flatten(2)
    return flat.gather(2, place.expand(-1, channels, -1)).reshape(images.shape)
