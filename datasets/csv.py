"""A table of your own: csv:path/to/file.csv, with column names in the first row and numbers below.

`csv:houses.csv?target=price` on the command line is the same as this in a suite:

    [datasets.houses]
    use = "csv"
    path = "houses.csv"
    target = "price"

Without `target` the last column is it. `task = "classification"` takes the target's values, numbers or words, as class
names in sorted order. `group = "region"` is a column that is no feature: metrics are also scored within each of its
values (`rmse@group=north`) and for the worst of them (`rmse@worst-group`). Columns may be separated by commas,
semicolons or tabs. Every split holds out a random tenth; `splits = "gap"` holds out the middle third of feature 0, 1,
2, ... (regression).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.api import Dataset, Split, Task, UserError, find_file, unknown_name
from bench.datasets._embedded import random_split
from bench.datasets._splits import gap_split
from bench.datasets._table import classes_of, groups_of, numbers, read_table, targets_of


@dataclass(frozen=True)
class Csv(Dataset):
    """Any table of numbers; it is checked, and errors name the row and the column."""

    path: str = ""  # of the file
    target: str = ""  # column that is predicted; '': the last one
    task: Task = "regression"  # type: ignore[misc]  # of all datasets, only this one cannot know it beforehand
    splits: Literal["random", "gap"] = "random"  # a random tenth held out, or a gap
    group: str = ""  # column whose values are groups of rows; '': none

    source = "the user"
    licence = "the user's"

    def __post_init__(self) -> None:
        if self.splits == "gap" and self.task == "classification":
            raise ValueError("splits = 'gap' is for regression")

    def skip(self) -> str | None:
        """Return what to write when no table is named."""
        return None if self.path else "names no table; write csv:path/to/file.csv, or give the option path"

    def load(self, split: int) -> Split:
        """Return one split of the table."""
        if reason := self.skip():
            raise UserError(f"csv {reason}")
        table = read_table(Path(self.path) if Path(self.path).exists() else find_file(self.path) or Path(self.path))
        target = self.target or table.columns[-1]
        if target not in table.columns:
            raise unknown_name("column", target, table.columns, f"{self.path}: target")
        if self.group and self.group not in table.columns:
            raise unknown_name("column", self.group, table.columns, f"{self.path}: group")
        if self.group == target:
            raise UserError(f"{self.path}: group: {target!r} is the target; name another column")
        features = [name for name in table.columns if name not in (target, self.group)]
        if not features:
            others = (
                f"{target!r} and {self.group!r} are the only columns"
                if self.group
                else f"{target!r} is the only column"
            )
            raise UserError(f"{self.path}: no features: {others}")
        x = numbers(table, features)
        groups = groups_of(table, self.group) if self.group else None
        if self.task == "classification":
            y, classes = classes_of(table, target)
            return random_split("classification", x, y, split, classes, groups)
        y = targets_of(table, target)
        if self.splits == "gap":
            return gap_split(x, y, split, self.path, groups)
        return random_split("regression", x, y, split, groups=groups)
