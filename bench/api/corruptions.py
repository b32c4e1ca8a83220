"""Shifted and out-of-distribution images, computed from clean ones: noise, blur, light, loss of detail, foreign sets.

Images are arrays `[rows, channels, height, width]` with pixels from 0 to 1. Every corruption has five severities, is
vectorised over the rows, takes its random numbers from the generator it is given, and returns float32. The kinds and
their order of strength follow Hendrycks and Dietterich 2019, "Benchmarking Neural Network Robustness to Common
Corruptions and Perturbations" (arXiv:1903.12261); the code is not theirs and the pixels differ from CIFAR-10-C.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError, unknown_name

Images = NDArray[np.float32]
Corruption = Callable[[Images, Any, np.random.Generator], Images]
SEVERITIES = 5


def add_noise(images: NDArray[Any], std: float, random: np.random.Generator) -> Images:
    """Return x + std * eps, eps ~ N(0, 1) for every value, not cut off at 0 and 1: the paper's demonstration."""
    if std < 0:
        raise UserError(f"the standard deviation of noise must not be negative, got {std}")
    x = _images(images)
    return x + np.float32(std) * random.standard_normal(x.shape, dtype=np.float32)


def corrupt(images: NDArray[Any], kind: str, severity: int, random: np.random.Generator) -> Images:
    """Return corrupted images, pixels from 0 to 1; severity 1 is the mildest, 5 the strongest."""
    if kind not in CORRUPTIONS:
        raise unknown_name("corruption", kind, CORRUPTIONS)
    if not 1 <= severity <= SEVERITIES:
        raise UserError(f"severity must be from 1 to {SEVERITIES}, got {severity}")
    change, strengths = CORRUPTIONS[kind]
    return change(_images(images), strengths[severity - 1], random).clip(0, 1).astype(np.float32, copy=False)


def corrupted_test_images(images: NDArray[Any], kind: str, severity: int, number: int) -> Images:
    """Return the corrupted test images of a split, the same in every process.

    Severities of one kind share their random numbers: they differ in strength alone.
    """
    return corrupt(images, kind, severity, np.random.default_rng([37, number]))


def foreign_test_images(images: NDArray[Any], kind: str, number: int) -> Images:
    """Return images of the same shape that belong to no class, computed from the test images of a split."""
    if kind not in FOREIGN:
        raise unknown_name("foreign set", kind, FOREIGN)
    return FOREIGN[kind](images, np.random.default_rng([31, number]))


def noisy_test_images(images: NDArray[Any], std: float, number: int) -> Images:
    """Return the test images of a split under noise; levels share their random numbers as severities do."""
    return add_noise(images, std, np.random.default_rng([41, number]))


def inverted(images: NDArray[Any]) -> Images:
    """Return the negative, 1 - x: same shapes, foreign brightness."""
    return 1 - _images(images)


def uniform_noise(images: NDArray[Any], random: np.random.Generator) -> Images:
    """Return images without any content: every value uniform between 0 and 1 (Hendrycks and Gimpel 2017)."""
    return random.random(_images(images).shape, dtype=np.float32)


def permuted(images: NDArray[Any], random: np.random.Generator) -> Images:
    """Return the images with their pixels in one random order, the same for all: same histograms, no shapes."""
    x = _images(images)
    order = random.permutation(x.shape[2] * x.shape[3])
    return x.reshape(*x.shape[:2], -1)[:, :, order].reshape(x.shape)


def _images(images: NDArray[Any]) -> Images:
    if images.ndim != 4:
        raise UserError(f"images must have the shape [rows, channels, height, width], got {list(images.shape)}")
    return images.astype(np.float32, copy=False)


def _gaussian_noise(x: Images, std: float, random: np.random.Generator) -> Images:
    return add_noise(x, std, random)


def _shot_noise(x: Images, photons: float, random: np.random.Generator) -> Images:
    """Poisson counts of a sensor that a white pixel hits with so many photons."""
    return (random.poisson(x.clip(0, 1) * photons) / photons).astype(np.float32)


def _impulse_noise(x: Images, share: float, random: np.random.Generator) -> Images:
    """Salt and pepper: this share of all values becomes 0 or 1."""
    chance = random.random(x.shape, dtype=np.float32)
    return np.where(chance < share / 2, np.float32(0), np.where(chance < share, np.float32(1), x))


def _speckle_noise(x: Images, std: float, random: np.random.Generator) -> Images:
    """Noise in proportion to the light."""
    return x * (1 + np.float32(std) * random.standard_normal(x.shape, dtype=np.float32))


def _gaussian_blur(x: Images, width: float, random: np.random.Generator) -> Images:
    """A Gaussian of this standard deviation in pixels, in both directions."""
    reach = max(1, round(4 * width))
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    return _filtered(_filtered(x, bell / bell.sum(), 2), bell / bell.sum(), 3)


def _motion_blur(x: Images, length: int, random: np.random.Generator) -> Images:
    """The mean over so many neighbours: along the rows in about half of the images, along the columns in the rest."""
    box = np.full(length, 1 / length)
    sideways = random.random(len(x)) < 0.5
    return np.where(sideways[:, None, None, None], _filtered(x, box, 3), _filtered(x, box, 2))


def _brightness(x: Images, added: float, random: np.random.Generator) -> Images:
    return x + np.float32(added)


def _contrast(x: Images, kept: float, random: np.random.Generator) -> Images:
    """Each channel of each image drawn together around its mean."""
    mean: Images = x.mean((2, 3), keepdims=True)
    return mean + np.float32(kept) * (x - mean)


def _pixelate(x: Images, kept: float, random: np.random.Generator) -> Images:
    """Fewer pixels (this share of a side): each takes the mean of the area it covers, and is drawn as large again."""
    for axis in (2, 3):
        size = x.shape[axis]
        few = max(1, round(kept * size))
        # Row i holds the share of each old pixel in the new pixel i.
        edges = np.linspace(0, size, few + 1)
        old = np.arange(size)
        cover = (np.minimum(edges[1:, None], old + 1) - np.maximum(edges[:-1, None], old)).clip(0) * few / size
        nearest = ((old + 0.5) * few / size).astype(int)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ cover[nearest].T.astype(np.float32), -1, axis)
    return x


def _occlusion(x: Images, share: float, random: np.random.Generator) -> Images:
    """A grey square at a random place in every image; its side is this share of the image's."""
    height, width = x.shape[2:]
    tall, wide = max(1, round(share * height)), max(1, round(share * width))
    top = random.integers(0, height - tall + 1, len(x))[:, None, None, None]
    left = random.integers(0, width - wide + 1, len(x))[:, None, None, None]
    row, column = np.arange(height)[:, None], np.arange(width)
    inside = (row >= top) & (row < top + tall) & (column >= left) & (column < left + wide)
    return np.where(inside, np.float32(0.5), x)


def _quantised(x: Images, levels: int, random: np.random.Generator) -> Images:
    """So many levels of brightness and no others."""
    return (np.round(x * (levels - 1)) / (levels - 1)).astype(np.float32)


def _filtered(x: Images, weights: NDArray[np.float64], axis: int) -> Images:
    """Weighted means of neighbours along one axis; beyond its edge an image is mirrored."""
    before = len(weights) // 2
    beyond = [(0, 0)] * x.ndim
    beyond[axis] = (before, len(weights) - 1 - before)
    padded = np.pad(x, beyond, mode="symmetric")
    size, result = x.shape[axis], np.zeros_like(x)
    for start, weight in enumerate(weights.astype(np.float32)):
        result += weight * padded[(slice(None),) * axis + (slice(start, start + size),)]
    return result


CORRUPTIONS: dict[str, tuple[Corruption, Sequence[float]]] = {
    "gaussian-noise": (_gaussian_noise, (0.04, 0.06, 0.08, 0.10, 0.12)),
    "shot-noise": (_shot_noise, (500, 250, 100, 75, 50)),
    "impulse-noise": (_impulse_noise, (0.01, 0.02, 0.03, 0.05, 0.07)),
    "speckle-noise": (_speckle_noise, (0.06, 0.10, 0.15, 0.20, 0.30)),
    "gaussian-blur": (_gaussian_blur, (0.4, 0.6, 0.8, 1.0, 1.3)),
    "motion-blur": (_motion_blur, (3, 5, 7, 9, 11)),
    "brightness": (_brightness, (0.05, 0.10, 0.15, 0.20, 0.30)),
    "contrast": (_contrast, (0.75, 0.50, 0.40, 0.30, 0.15)),
    "pixelate": (_pixelate, (0.95, 0.85, 0.75, 0.60, 0.45)),
    "occlusion": (_occlusion, (0.15, 0.25, 0.35, 0.45, 0.55)),
    "quantised": (_quantised, (32, 16, 8, 5, 3)),
}

FOREIGN: dict[str, Callable[[NDArray[Any], np.random.Generator], Images]] = {
    "inverted": lambda images, random: inverted(images),
    "permuted": permuted,
    "uniform-noise": uniform_noise,
}
