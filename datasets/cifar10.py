"""CIFAR-10: 60,000 colour images of 32 x 32 pixels in ten classes; 50,000 train, 10,000 test.

Krizhevsky 2009, "Learning Multiple Layers of Features from Tiny Images",
https://www.cs.toronto.edu/~kriz/learning-features-2009-TR.pdf. There is one published split: the repeats of an
experiment differ in their seed (weights, batches, validation rows), not in their rows. `shift`, `severity` and `noise`
change the test images alone, as described for `digits-shifted`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.api import Dataset, Split, UserError, by_hand, download, extract, find_file, import_torchvision, missing_file
from bench.datasets._cifar import ARCHIVE, COPY, NAMES, TEST, TRAIN, images, scaled
from bench.datasets._shifts import check, shifted


@dataclass(frozen=True)
class Cifar10(Dataset):
    """Images of shape `[3, 32, 32]`, pixels from 0 to 1."""

    title = "CIFAR-10"
    shift: str = "none"  # of the test images: a corruption, a foreign set, or none
    severity: int = 3  # of the corruption, 1 to 5
    noise: float = 0.0  # standard deviation of Gaussian noise on the test images

    task = "classification"
    repeats = "seeds"
    source = "www.cs.toronto.edu/~kriz/cifar.html"
    licence = "none stated; the authors ask to be cited"
    shape = (60_000, 3, 32, 32)
    files = (*TRAIN, *TEST, NAMES)
    notes = (
        "one published split: repeats differ in their seed only",
        "3.3 % of the test images have a near-duplicate among the training images (Barz and Denzler 2020)",
        "about 0.5 % of the test labels are wrong (Northcutt, Athalye and Mueller 2021)",
    )
    expected_failures: ClassVar[Mapping[str, str]] = {
        "isolated": "the images are kept once for all splits: a copy for each would take 740 MB"
    }

    def __post_init__(self) -> None:
        check(self.shift, self.severity, self.noise)

    def skip(self) -> str | None:
        """Return how to have the files when they are not there."""
        lacking = [file.name for file in (*TRAIN, *TEST) if not find_file(file.name)]
        if not lacking or find_file(COPY):
            return None
        return f"{missing_file(lacking[0])}; 'uqbench data fetch cifar10' downloads it (170 MB)"

    def load(self, split: int) -> Split:
        """Return the published split, whatever the number; the number seeds the shift of the test images."""
        return shifted(scaled(images()), split, self.shift, self.severity, self.noise)

    def fetch(self, folder: Path) -> None:
        """Download the archive, and let torchvision, where it is installed, verify and unpack it."""
        archive = download(ARCHIVE, folder)
        extract(archive, [], folder)  # raises if it is not safe to unpack
        try:
            reader = import_torchvision().datasets.CIFAR10
        except UserError:
            extract(archive, self.files, folder)
        else:
            # Its constructor would read the pickles without any restriction; the download alone does not.
            unpacked = reader.__new__(reader)
            unpacked.root = str(folder)
            try:
                unpacked.download()
            except (OSError, RuntimeError) as error:
                raise by_hand(ARCHIVE, folder, str(error)) from None
        archive.unlink()
