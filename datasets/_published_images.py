"""What image sets with one published split have in common: verified files, pixels from 0 to 1, kept once."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench.api import Array, Dataset, Split, UserError, find_file, missing_file, verified_file
from bench.datasets._cifar import Images


@dataclass(frozen=True)
class PublishedImages(Dataset):
    """Images in classes with one published split: repeats differ in their seed, not in their rows."""

    task = "classification"
    repeats = "seeds"
    notes = ("one published split: repeats differ in their seed only",)
    expected_failures: ClassVar[Mapping[str, str]] = {
        "isolated": "the images are kept once for all splits: a copy for each would take hundreds of megabytes"
    }
    name: ClassVar[str]
    number_of_classes: ClassVar[int] = 10

    @abstractmethod
    def read(self, paths: Sequence[Path]) -> Images:
        """Return bytes `[rows, channels, height, width]` and classes from the verified files, in their order."""

    def skip(self) -> str | None:
        """Return how to have the files when they are not there."""
        lacking = [file for file in self.files if not find_file(file.name)]
        if not lacking:
            return None
        megabytes = round(
            sum(file.origin.size or 0 for file in {each.origin: each for each in self.files}.values()) / 1e6
        )
        advice = f"'uqbench data fetch {self.name}' downloads it ({megabytes} MB)"
        return f"{missing_file(lacking[0].name)}; {advice}"

    def load(self, split: int) -> Split:
        """Return the published split, whatever the number."""
        paths = [verified_file(file) for file in self.files]
        return _scaled(self, tuple((path, path.stat().st_mtime_ns) for path in paths))


@lru_cache(maxsize=1)  # one object for all splits, because it takes hundreds of megabytes
def _scaled(dataset: PublishedImages, files: tuple[tuple[Path, int], ...]) -> Split:
    found = dataset.read([path for path, _ in files])
    for y in (found.train_y, found.test_y):
        if len(y) and not 0 <= y.min() <= y.max() < dataset.number_of_classes:
            about = f"classes from {y.min()} to {y.max()}, expected 0 to {dataset.number_of_classes - 1}"
            raise UserError(f"{files[0][0].parent}: {about}")
    train_x, test_x = (as_pixels(x) for x in (found.train_x, found.test_x))
    return Split("classification", train_x, found.train_y, test_x, found.test_y, classes=dataset.number_of_classes)


def as_pixels(values: Array) -> Array:
    """Return bytes as pixels from 0 to 1."""
    pixels: Array = np.divide(values, np.float32(255), dtype=np.float32)
    return pixels
