"""Shifted digits: trained on clean digits, tested on noisy, blurred, inverted, ... ones (from scikit-learn's digits).

`shift` names a corruption ('gaussian-noise', 'shot-noise', 'impulse-noise', 'speckle-noise', 'gaussian-blur',
'motion-blur', 'brightness', 'contrast', 'pixelate', 'occlusion', 'quantised', at `severity` 1 to 5) or a foreign set
('inverted', 'permuted', 'uniform-noise'); `noise` adds Gaussian noise of that standard deviation. The splits are those
of `digits`, so the two are pairs: the same training rows, the same test rows, once clean and once not.
"""

from dataclasses import dataclass

from sklearn.datasets import load_digits

from bench.api import Dataset, Split
from bench.datasets._embedded import random_split
from bench.datasets._shifts import check, shifted


@dataclass(frozen=True)
class DigitsShifted(Dataset):
    """Images of shape `[1, 8, 8]`; the test images are shifted."""

    title = "Shifted digits"
    shift: str = "gaussian-noise"  # of the test images: a corruption or a foreign set
    severity: int = 3  # of the corruption, 1 to 5
    noise: float = 0.0  # standard deviation of Gaussian noise on the test images

    task = "classification"
    source = "scikit-learn, load_digits; UCI 80, archive.ics.uci.edu/dataset/80"
    licence = "CC BY 4.0"
    notes = ("test images are shifted, training images are not", "the labels of foreign images mean nothing")

    def __post_init__(self) -> None:
        check(self.shift, self.severity, self.noise)

    def load(self, split: int) -> Split:
        """Return a split of the digits with shifted test images."""
        x, y = load_digits(return_X_y=True)
        clean = random_split("classification", x.reshape(-1, 1, 8, 8) / 16, y, split, classes=10)
        return shifted(clean, split, self.shift, self.severity, self.noise)
