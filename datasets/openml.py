"""A table of OpenML by its number: openml:44956, with the options of `csv`.

    uqbench data fetch openml:44956
    uqbench run quick --dataset openml:44956

The ARFF file is compared with the md5 that OpenML states for it. The target is the one that OpenML declares, columns
that it declares as categories are categories, those that it says to ignore and those without any value are left out,
and, other than for `csv`, categories are encoded and gaps filled without being asked for. A table whose target is a
category needs `task = "classification"`.

Every split holds out a random tenth. With `task_id` the splits are the folds of that task of OpenML, repeat by repeat,
and the target is the task's. `UQBENCH_OPENML` names another server than https://www.openml.org, such as a mirror.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.api import Array, File, UserError, find_file, missing_file, verified_file
from bench.datasets._arff import read_arff, read_header
from bench.datasets._encoding import Categories, Missing, missing_cells
from bench.datasets._openml import (
    Description,
    OpenmlTask,
    description,
    documents,
    fetch,
    folds_of,
    needed,
    task_description,
    task_document,
)
from bench.datasets._own_table import OwnTable
from bench.datasets._splits import check_number
from bench.datasets._table import Table


@dataclass(frozen=True)
class Openml(OwnTable):
    """Any dense table of OpenML; fetch it first."""

    path: str = ""  # the number of the dataset
    categories: Categories = "one-hot"
    missing: Missing = "impute"
    task_id: int = 0  # of an OpenML task on this dataset, whose folds are the splits; 0: none

    source = "OpenML, www.openml.org"
    licence = "that of the dataset, see its page"
    kind: ClassVar[str] = "openml"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.path and not (self.path.isascii() and self.path.isdigit() and 0 < int(self.path[:10]) < 2**31):
            raise ValueError(f"path: expected the number of a dataset of OpenML, as in openml:44956, got {self.path!r}")
        if self.task_id < 0:
            raise ValueError(f"task_id must be the number of a task, got {self.task_id}")
        if self.task_id and self.splits != "random":
            raise ValueError("task_id: its folds are the splits; leave out splits")

    @property
    def where(self) -> str:
        """The table as messages name it."""
        return f"openml:{self.path}" + (f"?task_id={self.task_id}" if self.task_id else "")

    @property
    def files(self) -> Sequence[File]:  # type: ignore[override]  # which they are is known once the description is there
        """What has to be on the disk: documents, and the files that they name once they are there."""
        if not self.path:
            return ()
        known, task = self._described()
        asked = [*documents(int(self.path)), *([task_document(self.task_id)] if self.task_id else [])]
        return [*asked, *([known.file] if known else []), *([task.folds] if task else [])]

    def skip(self) -> str | None:
        """Return how to have the table when it is not there."""
        if not self.path:
            return "names no table; write openml:44956, the number of a dataset of OpenML"
        lacking = [file.name for file in self.files if not find_file(file.name)]
        return f"{missing_file(lacking[0])}; 'uqbench data fetch \"{self.where}\"' downloads it" if lacking else None

    def fetch(self, folder: Path) -> None:
        """Download the descriptions, then the files that they name."""
        fetch(int(self.path), self.task_id, folder)

    def _described(self) -> tuple[Description | None, OpenmlTask | None]:
        number = int(self.path)
        return description(number), task_description(self.task_id, number) if self.task_id else None

    def _known(self) -> tuple[Description, OpenmlTask | None]:
        known, task = self._described()
        if known is None or (self.task_id and task is None):
            raise UserError(f"{self.where} {self.skip()}")
        return known, task

    def located(self) -> tuple[Path, str]:
        """Return the path of the file, whose checksum was compared, and the name of the target."""
        known, task = self._known()
        path = verified_file(known.file)
        target = self.target or (task.target if task else known.target)
        if not target:
            raise UserError(f"{self.where}: OpenML declares no single target; name one, as in {self.where}?target=NAME")
        if self.task == "regression" and target in read_header(path).nominal:
            raise UserError(f"{self.where}: the target {target!r} is a category; task = 'classification'")
        return path, target

    def read(self, path: Path, text: frozenset[str]) -> Table:
        """Read the file."""
        return read_arff(path, text)

    def categories_in(self, table: Table) -> tuple[str, ...]:
        """Return the columns that the file declares as categories, and those that the user does."""
        return tuple({*self.categorical, *(read_header(table.path).nominal if self.categories != "refuse" else ())})

    def left_out(self, table: Table) -> set[str]:
        """Return the columns that the user or OpenML says to ignore, and those without any value."""
        known, _ = self._known()
        empty = {name for name in table.columns if missing_cells(table, name).all()}
        return {*self.ignore, *known.ignored, *empty}

    def _rows(self, table: Table, names: list[str], split: int) -> tuple[Array, Array, int | None]:
        """Return the rows of a fold of the task, or what the options say."""
        _, task = self._known()
        if task is None:
            return super()._rows(table, names, split)
        path = needed(task.folds)
        folds = folds_of(path)
        check_number(split, len(folds), f"task {self.task_id} has {len(folds)} folds")
        train, test = folds[split]
        if max(train.max(), test.max()) >= len(table):
            raise UserError(f"{path}: row {max(train.max(), test.max())} of a table of {len(table)} rows")
        return train, test, len(folds)
