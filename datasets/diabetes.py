"""Diabetes progression: 442 patients, 10 measurements, a disease score after one year (from scikit-learn).

Efron, Hastie, Johnstone and Tibshirani 2004, "Least Angle Regression", doi:10.1214/009053604000000067. Every split
holds out a random tenth.
"""

from dataclasses import dataclass

from sklearn.datasets import load_diabetes

from bench.api import Dataset, Split
from bench.datasets._embedded import random_split


@dataclass(frozen=True)
class Diabetes(Dataset):
    """A small, noisy regression problem."""

    task = "regression"
    source = "scikit-learn, load_diabetes"
    licence = "none stated; scikit-learn ships it (BSD-3-Clause)"

    def load(self, split: int) -> Split:
        """Return one random split."""
        x, y = load_diabetes(return_X_y=True, scaled=False)
        return random_split("regression", x, y, split)
