"""Wine: 178 wines of three growers, 13 chemical measurements (from scikit-learn); not the wine quality of `wine-red`.

Forina and others 1991, "PARVUS". Every split holds out a random tenth.
"""

from dataclasses import dataclass

from sklearn.datasets import load_wine

from bench.api import Dataset, Split
from bench.datasets._embedded import random_split


@dataclass(frozen=True)
class Wine(Dataset):
    """A very small, separable three-class problem."""

    task = "classification"
    source = "scikit-learn, load_wine; UCI 109, archive.ics.uci.edu/dataset/109"
    licence = "CC BY 4.0"
    notes = ("18 test rows per split: one error is 5.6 % of accuracy",)

    def load(self, split: int) -> Split:
        """Return one random split."""
        x, y = load_wine(return_X_y=True)
        return random_split("classification", x, y, split, classes=3)
