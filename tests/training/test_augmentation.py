from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from bench.api import Split
from bench.spec.protocol import Protocol, Training
from bench.training.augmentation import crop_and_flip
from bench.training.rows import prepare


def one_by_one(images: Tensor, uniform: Tensor, padding: int, border: Sequence[float] = ()) -> Tensor:
    """Each image by itself, with slices."""
    height, width = images.shape[2:]
    done = []
    for image, (down, across, mirror) in zip(images, uniform.tolist(), strict=True):
        larger = torch.zeros(len(image), height + 2 * padding, width + 2 * padding, dtype=images.dtype)
        for channel, value in zip(larger, border, strict=False):
            channel[:] = value
        larger[:, padding : padding + height, padding : padding + width] = image
        top, left = int(down * (2 * padding + 1)), int(across * (2 * padding + 1))
        cut = larger[:, top : top + height, left : left + width]
        done.append(cut.flip(2) if mirror < 0.5 else cut)
    return torch.stack(done)


def test_equals_slicing_image_by_image() -> None:
    source = torch.Generator().manual_seed(0)
    for shape, padding in (((50, 3, 32, 32), 4), ((20, 1, 8, 6), 2), ((5, 2, 4, 4), 0)):
        images, uniform = torch.randn(shape, generator=source), torch.rand(shape[0], 3, generator=source)
        torch.testing.assert_close(crop_and_flip(images, uniform, padding), one_by_one(images, uniform, padding))
    whole = torch.randint(0, 256, (9, 3, 8, 8), generator=source, dtype=torch.uint8)
    uniform = torch.rand(9, 3, generator=source)
    torch.testing.assert_close(crop_and_flip(whole, uniform), one_by_one(whole, uniform, 4))


def test_a_black_border_is_what_pixels_of_zero_are_in_training_units() -> None:
    """Cropping images whose border is padded before they are scaled gives the same."""
    source = torch.Generator().manual_seed(0)
    pixels, uniform = torch.rand(40, 3, 8, 8, generator=source), torch.rand(40, 3, generator=source)
    split = Split("classification", pixels.numpy(), np.arange(40) % 2, pixels.numpy()[:4], np.arange(4) % 2, classes=2)
    training = Training(augmentation="crop-flip-black")
    rows = prepare(split, Protocol(training=training, validation=0.0), 0, "cpu").rows
    mean, std = pixels.mean((0, 2, 3), keepdim=True), pixels.std((0, 2, 3), correction=0, keepdim=True)
    expected = (one_by_one(pixels, uniform, 4) - mean) / std
    torch.testing.assert_close(crop_and_flip(rows.x, uniform, border=rows.black), expected, atol=1e-5, rtol=1e-4)
    border = [-1.0, 0.5, 2.0]
    torch.testing.assert_close(crop_and_flip(pixels, uniform, 2, border), one_by_one(pixels, uniform, 2, border))
    plain = prepare(split, Protocol(training=training, validation=0.0, scale_inputs=False), 0, "cpu").rows
    torch.testing.assert_close(crop_and_flip(plain.x, uniform, border=plain.black), one_by_one(pixels, uniform, 4))


def test_the_middle_leaves_an_image_alone_and_one_is_no_place_outside() -> None:
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    middle = torch.tensor([[0.5, 0.5, 0.9]]).repeat(2, 1)
    torch.testing.assert_close(crop_and_flip(images, middle), images)
    torch.testing.assert_close(
        crop_and_flip(images, torch.ones(2, 3)), crop_and_flip(images, torch.full((2, 3), 0.999999))
    )


def test_every_shift_is_as_likely_as_any_other() -> None:
    count = 81 * 400
    images = torch.zeros(count, 1, 9, 9)
    images[:, :, 4, 4] = 1
    uniform = torch.rand(count, 3, generator=torch.Generator().manual_seed(0))
    place = crop_and_flip(images, uniform).flatten(1).argmax(1).bincount(minlength=81)
    chi_square = ((place - 400) ** 2 / 400).sum()
    assert chi_square < 80 + 5 * (2 * 80) ** 0.5


def test_it_stacks() -> None:
    source = torch.Generator().manual_seed(0)
    images, uniform = torch.randn(4, 6, 3, 8, 8, generator=source), torch.rand(4, 6, 3, generator=source)
    expected = torch.stack([crop_and_flip(x, u) for x, u in zip(images, uniform, strict=True)])
    torch.testing.assert_close(vmap(crop_and_flip)(images, uniform), expected)
    black = partial(crop_and_flip, border=(-1.0, 0.5, 2.0))
    expected = torch.stack([black(x, u) for x, u in zip(images, uniform, strict=True)])
    torch.testing.assert_close(vmap(black)(images, uniform), expected)
