"""CIFAR-10's test images where they are on the disk, noise of their shape where they are not.

For measuring what a prediction costs, where only the shape of the images matters: 10,000 of 3 x 32 x 32 pixels. The row
of a result says which of the two it was measured on.
"""

from dataclasses import dataclass

import numpy as np

from bench.api import Array, Dataset, Split, find_file
from bench.datasets._cifar import COPY, TEST, TRAIN, images

TRAINING_ROWS = 1000  # enough to scale the inputs by


@dataclass(frozen=True)
class Cifar10Shaped(Dataset):
    """Images of shape `[3, 32, 32]` in ten classes."""

    title = "CIFAR-10 shaped"
    test_rows: int = 10_000  # images of the test set

    task = "classification"
    repeats = "independent"  # costs do not depend on the images
    source = "CIFAR-10 (www.cs.toronto.edu/~kriz/cifar.html), or generated"
    licence = "that of CIFAR-10, or none needed"
    notes = ("for costs, not for quality: the images are noise where CIFAR-10 is not on the disk",)

    def __post_init__(self) -> None:
        if not 2 <= self.test_rows <= 10_000:
            raise ValueError(f"test_rows must be from 2 to 10000, got {self.test_rows}")

    def load(self, split: int) -> Split:
        """Return images; the split's number chooses the training images, or seeds the noise."""
        if find_file(COPY) or all(find_file(file.name) for file in (*TRAIN, *TEST)):
            found, about = images(), "CIFAR-10"
            begin = split * TRAINING_ROWS % len(found.train_x)
            train, test = (found.train_x[begin:], found.train_y[begin:]), (found.test_x, found.test_y)
        else:
            random, about = np.random.default_rng([1777, split]), "noise of the shape of CIFAR-10"
            train, test = _noise(random, TRAINING_ROWS), _noise(random, self.test_rows)
        x, y = _scaled(train[0][:TRAINING_ROWS]), train[1][:TRAINING_ROWS].copy()
        test_x, test_y = _scaled(test[0][: self.test_rows]), test[1][: self.test_rows].copy()
        return Split("classification", x, y, test_x, test_y, classes=10, about=about)


def _noise(random: np.random.Generator, rows: int) -> tuple[Array, Array]:
    pixels = random.integers(0, 256, (rows, 3, 32, 32), dtype=np.uint8)
    return pixels, np.arange(rows) % 10


def _scaled(pixels: Array) -> Array:
    """Return pixels from 0 to 1."""
    return np.divide(pixels, np.float32(255), dtype=np.float32)
