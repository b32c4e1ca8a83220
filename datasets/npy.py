"""Arrays of your own: npy:inputs.npy?target=targets.npy, a table `[rows, features]` or images.

Images are `[rows, channels, height, width]`, `[rows, height, width]` (grey), or, with `channels = "last"`,
`[rows, height, width, channels]`; whole numbers of 8 bits become pixels from 0 to 1. `task = "classification"` takes
the target's values as classes in sorted order. Every split holds out a random tenth. With `test` and `test_target`
there is one split, and repeats differ in their seed only.

    [datasets.cells]
    use = "npy"
    path = "cells.npy"
    target = "labels.npy"
    task = "classification"

Paths are those of files, or names of files in a data folder. Files with Python objects (pickles) are refused.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from bench.api import Array, Dataset, Replication, Split, Task, UserError, find_file, read_array_file
from bench.datasets._embedded import random_split

FEWEST = 10  # rows: a tenth of them is one test row


@dataclass(frozen=True)
class Npy(Dataset):
    """Any array of numbers with one target per row."""

    path: str = ""
    target: str = ""
    task: Task = "regression"  # type: ignore[misc]  # only the user knows it
    test: str = ""
    test_target: str = ""
    channels: Literal["first", "last"] = "first"

    source = "the user"
    licence = "the user's"

    def __post_init__(self) -> None:
        if bool(self.test) != bool(self.test_target):
            raise ValueError("test and test_target are given together, or neither is")

    @property
    def repeats(self) -> Replication:  # type: ignore[override]  # of all datasets, only this one cannot know it before
        """How its splits are related: where test rows are given, there is one."""
        return "seeds" if self.test else "splits"

    def skip(self) -> str | None:
        """Return what to write when an array is not named."""
        if self.path and self.target:
            return None
        return "needs two arrays; write npy:inputs.npy?target=targets.npy, or give the options path and target"

    def load(self, split: int) -> Split:
        """Return one split."""
        if reason := self.skip():
            raise UserError(f"npy {reason}")
        x, y = self._rows(self.path, self.target)
        if not self.test:
            if len(y) < FEWEST:
                raise UserError(f"{self.path}: {len(y)} rows; at least {FEWEST} are needed")
            y, classes = self._classes(y)
            return random_split(self.task, x, y, split, classes)
        test_x, test_y = self._rows(self.test, self.test_target)
        both, classes = self._classes(np.concatenate([y, test_y]))
        return Split(self.task, x, both[: len(y)], test_x, both[len(y) :], classes)

    def _rows(self, inputs: str, targets: str) -> tuple[Array, Array]:
        """Return inputs in the shape that networks take, and one target each."""
        x, y = (_read(name) for name in (inputs, targets))
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1 or x.ndim == 0 or len(x) != len(y):
            found = f"{list(x.shape)} and {list(y.shape)}"
            raise UserError(f"{targets}: one target for each row of {inputs} is needed, the shapes are {found}")
        if x.ndim in (1, 3):
            x = x[:, None]
        elif x.ndim == 4 and self.channels == "last":
            x = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
        elif x.ndim > 4:
            raise UserError(f"{inputs}: shape {list(x.shape)}; expected a table [rows, features] or images")
        if x.ndim == 4 and x.dtype == np.uint8:
            return np.divide(x, np.float32(255), dtype=np.float32), y
        return x.astype(np.float32 if x.ndim == 4 else np.float64), y

    def _classes(self, y: Array) -> tuple[Array, int]:
        """Return targets as the task needs them, and the number of classes."""
        if self.task == "regression":
            return y.astype(np.float64), 0
        names, codes = np.unique(y, return_inverse=True)
        if len(names) < 2 or 2 * len(names) > len(y):
            raise UserError(f"{self.target}: {len(names)} classes in {len(y)} rows; is it a number to be predicted?")
        return codes.astype(np.int64), len(names)


def _read(name: str) -> Array:
    """Return an array of numbers."""
    array = read_array_file(Path(name) if Path(name).exists() else find_file(name) or Path(name))
    if array.dtype.kind not in "fiub":
        raise UserError(f"{name}: holds {array.dtype}, not numbers")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UserError(f"{name}: {int((~np.isfinite(array)).sum())} of {array.size} values are NaN or infinite")
    return array
