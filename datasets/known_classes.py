"""Classes with known probabilities: overlapping normals, with wrong labels if wanted (generated).

    x | c ~ N(m_c, I),   p(c | x) = (1 - q) softmax_c(-|x - m_c|^2 / 2) + q / C

The centres m_c are at equal distances on a circle in the first two inputs, neighbours `distance` apart; further inputs
say nothing about the class. q is `label_noise`, the share of labels that are replaced by any class at random.
"""

from dataclasses import dataclass

import numpy as np

from bench.api import Split
from bench.datasets._laws import KnownLaw, NormalClasses, known_split


@dataclass(frozen=True)
class KnownClasses(KnownLaw):
    """A classification problem whose class probabilities are known exactly."""

    classes: int = 3
    rows: int = 300
    inputs: int = 2
    distance: float = 2.0
    label_noise: float = 0.0

    task = "classification"
    positive = ("distance",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes < 2 or self.inputs < 2:
            raise ValueError(f"at least 2 classes and 2 inputs are needed, got {self.classes} and {self.inputs}")
        if not 0 <= self.label_noise <= 1:
            raise ValueError(f"label_noise must be from 0 to 1, got {self.label_noise}")

    def load(self, split: int) -> Split:
        """Return samples of its own for every split."""
        random = np.random.default_rng([1732, split])
        angles = 2 * np.pi * np.arange(self.classes) / self.classes
        radius = self.distance / (2 * np.sin(np.pi / self.classes))
        centres = np.zeros((self.classes, self.inputs))
        centres[:, :2] = radius * np.column_stack([np.cos(angles), np.sin(angles)])
        x, test_x = (
            centres[random.integers(self.classes, size=rows)] + random.normal(size=(rows, self.inputs))
            for rows in (self.rows, self.test_rows)
        )
        return known_split(NormalClasses(centres, self.label_noise), x, test_x, random)
