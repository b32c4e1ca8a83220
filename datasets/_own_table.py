"""What tables of users have in common, whatever file they are in: options, features, target and splits."""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from bench.api import Array, Blocks, Dataset, Split, Task, UserError, find_file, unknown_name
from bench.datasets._about import about_table
from bench.datasets._embedded import tenth
from bench.datasets._encoding import (
    Categories,
    Missing,
    Rules,
    dates_of,
    encode,
    fit_encoding,
    missing_cells,
    refuse,
    rows_of,
)
from bench.datasets._splits import check_number, gap_indices, grouped_indices, time_indices
from bench.datasets._table import LAST, Table, classes_of, groups_of, is_number, number, targets_of, words_of

TIME_SPLITS = 5  # the last tenth, the one before, ...: half of the rows train in the last of them

Names = tuple[str, ...] | str  # several columns; on the command line one text with commas


@dataclass(frozen=True)
class OwnTable(Dataset):
    """A table of the user's."""

    path: str = ""
    target: str = ""
    task: Task = "regression"  # type: ignore[misc]  # of all datasets, only these cannot know it beforehand
    splits: Literal["random", "gap", "grouped", "time"] = "random"
    group: str = ""
    by: str = ""
    categories: Categories = "refuse"
    categorical: Names = ()
    missing: Missing = "refuse"
    dates: Names = ()
    ignore: Names = ()

    source = "the user"
    licence = "the user's"
    later = frozenset({"by", "categories", "categorical", "missing", "dates", "ignore"})
    kind: ClassVar[str]  # what a name begins with, as in csv:table.csv
    commas: ClassVar[str] = "numbers need a decimal point"  # about a decimal comma

    def __post_init__(self) -> None:
        for name in ("categorical", "dates", "ignore"):
            value = getattr(self, name)
            names = (
                tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value
            )
            object.__setattr__(self, name, names)
        if self.splits == "gap" and self.task == "classification":
            raise ValueError("splits = 'gap' is for regression")
        if bool(self.by) != (self.splits in ("grouped", "time")):
            raise ValueError("by: splits = 'grouped' or 'time' need the column that groups or orders, others have none")
        if self.categorical and self.categories == "refuse":
            raise ValueError("categorical: say how they are encoded: categories = 'one-hot' or 'ordinal'")

    @property
    def where(self) -> str:
        """The table as messages name it."""
        return self.path

    @abstractmethod
    def read(self, path: Path, text: frozenset[str]) -> Table:
        """Read the file; the columns in `text` as words."""

    def located(self) -> tuple[Path, str]:
        """Return the path of the file, and the name of the target ("": the last column)."""
        return (Path(self.path) if Path(self.path).exists() else find_file(self.path) or Path(self.path)), self.target

    def categories_in(self, table: Table) -> tuple[str, ...]:
        """Return the columns that hold categories even where their cells are numbers."""
        return tuple(self.categorical)

    def left_out(self, table: Table) -> set[str]:
        """Return the columns that are no features."""
        return set(self.ignore)

    def skip(self) -> str | None:
        """Return what to write when no table is named."""
        return (
            None
            if self.path
            else f"names no table; write {self.kind}:path/to/file.{self.kind}, or give the option path"
        )

    def load(self, split: int) -> Split:
        """Return one split of the table: its rows are chosen first, then features are fitted on the training rows."""
        table, target, named = self._table()
        names = self._features(table, target)
        groups = groups_of(table, self.group) if self.group else None
        if self.task == "classification":
            y, classes = classes_of(table, target)
        else:
            y, classes = targets_of(table, target, self.commas), 0
        rules = Rules(self.categories, self.missing, self.categories_in(table), tuple(self.dates), self.commas)
        refuse(table, names, rules)
        train, test, count = self._rows(table, names, split)
        training, held = rows_of(table, train), rows_of(table, test)
        encodings = fit_encoding(training, names, rules)
        train_x, test_x = (encode(part, encodings) for part in (training, held))
        return Split(
            self.task,
            train_x,
            y[train],
            test_x,
            y[test],
            classes,
            test_groups=None if groups is None else groups[test],
            about=about_table(self.where, table, encodings, target, named=named),
            count=count,
            gaps=bool(np.isnan(train_x).any() or np.isnan(test_x).any()),
            features=tuple(feature for each in encodings for feature in each.features),
            blocks=self._blocks(table, train),
        )

    def _table(self) -> tuple[Table, str, bool]:
        """Return the table, its target and whether that was named, with all columns that options name checked."""
        if reason := self.skip():
            raise UserError(f"{self.kind} {reason}")
        path, target = self.located()
        words = {self.group, self.by, *self.categorical, *self.dates}
        # The last column is the target where none is named, and whether its classes are words is known by then.
        table = self.read(path, frozenset(words | ({target or LAST} if self.task == "classification" else set())))
        columns, is_named = list(table.columns), bool(target)
        target = target or columns[-1]
        named: dict[str, tuple[str, ...]] = {"target": (target,), "group": (self.group,), "by": (self.by,)}
        named |= {"categorical": tuple(self.categorical), "dates": tuple(self.dates), "ignore": tuple(self.ignore)}
        for option, names in named.items():
            for name in filter(None, names):
                if name not in columns:
                    raise unknown_name("column", name, columns, f"{self.where}: {option}")
                if name == target and option != "target":
                    raise UserError(f"{self.where}: {option}: {target!r} is the target; name another column")
        return table, target, is_named

    def _features(self, table: Table, target: str) -> list[str]:
        """Return the columns that become features. What groups or orders rows is one only where it is named a date."""
        left_out = self.left_out(table)
        others = {target, self.group, self.by, *left_out} - (set(self.dates) - left_out)
        features = [name for name in table.columns if name not in others]
        if not features:
            used = [repr(name) for name in table.columns]
            what = f"{used[0]} is the only column" if len(used) == 1 else f"{_and(target, *used)} are the only columns"
            raise UserError(f"{self.where}: no features: {what}")
        return features

    def _rows(self, table: Table, names: list[str], split: int) -> tuple[Array, Array, int | None]:
        """Return the training rows, the test rows and how many splits there are (None: any number)."""
        if self.splits == "random":
            return *tenth(len(table), split), None
        if self.splits == "grouped":
            return *grouped_indices(groups_of(table, self.by), split, f"{self.where}: by = {self.by!r}"), None
        if self.splits == "time":
            check_number(split, TIME_SPLITS, f"a time-ordered table has {TIME_SPLITS} splits")
            return *time_indices(_moments(table, self.by), split, f"{self.where}: by = {self.by!r}"), TIME_SPLITS
        ordered = [name for name in names if not np.isnan(table.columns[name].numbers).any()]
        check_number(split, len(ordered), f"{self.where} has {len(ordered)} features, so {len(ordered)} gap splits")
        return *gap_indices(table.columns[ordered[split]].numbers), len(ordered)

    def _blocks(self, table: Table, train: Array) -> Blocks | None:
        """Return which training rows are held out together: those of a group, or the latest."""
        if self.splits == "grouped":
            return Blocks(groups_of(table, self.by)[train])
        return Blocks(_moments(table, self.by)[train], ordered=True) if self.splits == "time" else None


def _and(target: str, *used: str) -> str:
    """Return the names of all columns, the target first."""
    names = [repr(target), *(name for name in used if name != repr(target))]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _moments(table: Table, name: str) -> Array:
    """Return the time of every row: a number, or a date in days."""
    words_of(table, name, "a time")
    column = table.columns[name]
    if all(is_number(word) for word in column.words):
        return np.array([number(word) for word in column.words])[column.codes]
    missing = missing_cells(table, name)
    if missing.any():
        raise UserError(f"{table.place(int(np.flatnonzero(missing)[0]), name)}: every row needs a time")
    return dates_of(table, name, missing)
