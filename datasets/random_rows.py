"""Random rows: tables of standard normal numbers and targets that have nothing to do with them (generated).

For measuring what a prediction costs, where only the shape of the rows matters. There is nothing to learn here.
"""

from dataclasses import dataclass

import numpy as np

from bench.api import Dataset, Split


@dataclass(frozen=True)
class RandomRows(Dataset):
    """A table of `features` columns."""

    features: int = 8  # inputs of a row
    rows: int = 500  # of the training set
    test_rows: int = 2000  # rows of the test set

    task = "regression"
    repeats = "independent"
    source = "generated"
    licence = "none needed"
    notes = ("random numbers: for costs, not for quality",)

    def __post_init__(self) -> None:
        if self.features < 1 or min(self.rows, self.test_rows) < 2:
            raise ValueError(f"at least 1 feature and 2 rows are needed, got {self}")

    def load(self, split: int) -> Split:
        """Return samples of its own for every split."""
        random = np.random.default_rng([5772, split])
        x, test_x = (random.normal(size=(rows, self.features)) for rows in (self.rows, self.test_rows))
        return Split("regression", x, random.normal(size=self.rows), test_x, random.normal(size=self.test_rows))
