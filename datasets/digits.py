"""Handwritten digits: 1,797 grey images of 8 x 8 pixels in ten classes (from scikit-learn).

The test part of the UCI "Optical Recognition of Handwritten Digits" set (Alpaydin and Kaynak 1998). Every split holds
out a random tenth.
"""

from dataclasses import dataclass

from sklearn.datasets import load_digits

from bench.api import Dataset, Split
from bench.datasets._embedded import random_split


@dataclass(frozen=True)
class Digits(Dataset):
    """A small image classification problem; pixels from 0 to 1, shape `[1, 8, 8]`."""

    task = "classification"
    source = "scikit-learn, load_digits; UCI 80, archive.ics.uci.edu/dataset/80"
    licence = "CC BY 4.0"

    def load(self, split: int) -> Split:
        """Return one random split."""
        x, y = load_digits(return_X_y=True)
        return random_split("classification", x.reshape(-1, 1, 8, 8) / 16, y, split, classes=10)
