"""CIFAR-100: 60,000 colour images of 32 x 32 pixels in 100 classes, or in 20 coarse ones; 50,000 train, 10,000 test.

Krizhevsky 2009, "Learning Multiple Layers of Features from Tiny Images",
https://www.cs.toronto.edu/~kriz/learning-features-2009-TR.pdf. There is one published split: the repeats of an
experiment differ in their seed. The files were not fetched for this repository: the address and the md5 sums are
torchvision's, the sha256 of the archive is that of Keras, and the reader is that of `cifar10`, tested on generated
files of the same format: pickles that would run code are refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.api import File
from bench.datasets._cifar import Images, read_batches
from bench.datasets._published_images import PublishedImages

ARCHIVE = File(
    "cifar-100-python.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    169_001_437,
    "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    "eb9058c3a382ffc7106e4002c42a8d85",
)


@dataclass(frozen=True)
class Cifar100(PublishedImages):
    """Images of shape `[3, 32, 32]`, pixels from 0 to 1."""

    labels: Literal["fine", "coarse"] = "fine"  # 100 classes, or 20

    title = "CIFAR-100"
    name = "cifar100"
    source = "www.cs.toronto.edu/~kriz/cifar.html"
    licence = "none stated; the authors ask to be cited"
    shape = (60_000, 3, 32, 32)
    files = (
        File("cifar-100-python/train", "", None, md5="16019d7e3df5f24257cddd939b257f8d", archive=ARCHIVE),
        File("cifar-100-python/test", "", None, md5="f0ef6b0ae62326f3e7ffdfab6717acfc", archive=ARCHIVE),
    )

    @property
    def number_of_classes(self) -> int:  # type: ignore[override]  # it depends on the option
        """How many classes there are."""
        return 100 if self.labels == "fine" else 20

    def read(self, paths: Sequence[Path]) -> Images:
        """Return the images and classes of two files."""
        key = f"{self.labels}_labels".encode()
        train, test = (read_batches([path], key) for path in paths)
        return Images(*train, *test)
