"""A table of your own: csv:path/to/file.csv, with column names in the first row.

`csv:houses.csv?target=price` on the command line is the same as this in a suite:

    [datasets.houses]
    use = "csv"
    path = "houses.csv"
    target = "price"

Without `target` the last column is it. `task = "classification"` takes the target's values, numbers or words, as class
names in sorted order. `group = "region"` is a column that is no feature: metrics are also scored within each of its
values (`rmse@group=north`) and for the worst of them (`rmse@worst-group`). Columns may be separated by commas,
semicolons or tabs. `decimal = ","` reads numbers with a decimal comma (`4,9`).

What is no finite number is refused, with its line and column, unless an option says what to do:
`categories = "one-hot"` or `"ordinal"` encodes columns of words, and those of numbers that `categorical` names;
`missing = "impute"` takes empty cells (and NA, N/A, NaN, null, ?): the mean of the training rows fills them, and one
more feature says where; `dates` names columns of dates; `ignore` names columns that are no features.

Every split holds out a random tenth. `splits = "gap"` holds out the middle third of feature 0, 1, 2, ... (regression),
`splits = "grouped"` with `by = "patient"` a random tenth of the patients with all their rows, and `splits = "time"`
with `by = "day"` the last tenth, the one before, ... (5 splits), trained on earlier rows. `by` is no feature.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from bench.datasets._own_table import OwnTable
from bench.datasets._table import Table, read_csv


@dataclass(frozen=True)
class Csv(OwnTable):
    """Any table; it is checked, and errors name the row and the column."""

    decimal: Literal[".", ","] = "."

    later = OwnTable.later | {"decimal"}
    kind: ClassVar[str] = "csv"
    commas: ClassVar[str] = "a decimal comma needs decimal = ','"

    def read(self, path: Path, text: frozenset[str]) -> Table:
        """Read the file."""
        return read_csv(path, text, self.decimal)
