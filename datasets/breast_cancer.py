"""Breast cancer: 569 tumours, 30 measurements of cell nuclei, malignant or benign (from scikit-learn).

Street, Wolberg and Mangasarian 1993, "Nuclear Feature Extraction for Breast Tumor Diagnosis", doi:10.1117/12.148698.
Every split holds out a random tenth.
"""

from dataclasses import dataclass

from sklearn.datasets import load_breast_cancer

from bench.api import Dataset, Split
from bench.datasets._embedded import random_split


@dataclass(frozen=True)
class BreastCancer(Dataset):
    """A small, nearly separable two-class problem; class 1 is benign."""

    task = "classification"
    source = "scikit-learn, load_breast_cancer; UCI 17, archive.ics.uci.edu/dataset/17"
    licence = "CC BY 4.0"

    def load(self, split: int) -> Split:
        """Return one random split."""
        x, y = load_breast_cancer(return_X_y=True)
        return random_split("classification", x, y, split, classes=2)
