"""A dataset gives numbered splits of its rows, in original units. Nothing here loads torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from numpy.typing import NDArray

from bench.machine.data_files import File
from bench.spec.replication import Replication

if TYPE_CHECKING:
    from bench.api.law import Law

Task = Literal["regression", "classification"]
Array = NDArray[Any]


@dataclass(frozen=True)
class Problem:
    """What a network has to predict: the task, the shape of one input row, how many outputs."""

    task: Task
    inputs: tuple[int, ...]
    outputs: int
    rows: int = field(default=0, compare=False, repr=False)  # for training, held-out ones included; 0: not known
    law: "Law | None" = field(default=None, compare=False, repr=False)  # of the targets, where the dataset states it


@dataclass(frozen=True)
class Blocks:
    """Which training rows are held out together, for validation, calibration and the folds of a search.

    Rows with the same value are one block: a group, or a moment. `ordered`: the rows that are held out have larger
    values than those that train.
    """

    of_rows: Array
    ordered: bool = False


@dataclass(frozen=True)
class PublishedShifts:
    """Shifted test images that come with a dataset, for the probe `shift`, which names them `published-NAME`."""

    names: Sequence[str]
    images: Callable[[str, int], Array]  # of a name and a severity from 1 to 5, in the order of the test rows


@dataclass(frozen=True)
class Split:
    """One train/test split of a dataset, in original units."""

    task: Task
    train_x: Array
    train_y: Array
    test_x: Array
    test_y: Array
    classes: int = 0  # classification only
    test_truth: Array | None = None  # the noise-free target at the test rows, where it is known
    test_groups: Array | None = None  # the group of each test row, by name: metrics are also scored by group
    about: str = ""  # what rows these are, where a dataset may return one or another
    count: int | None = None  # how many splits the dataset has; None: as many as are asked for
    gaps: bool = False  # whether NaN in the inputs is a missing value, which the mean of the rows that train fills
    features: Sequence[str] = ()  # the names of a table's features, where they have names
    law: "Law | None" = None  # the exact law of the targets given the inputs, where the dataset knows it
    blocks: Blocks | None = None  # of the training rows; None: rows are held out at random
    shifts: PublishedShifts | None = None  # shifted forms of the test images, where the dataset has them

    @property
    def test_share(self) -> float:
        """The share of its rows that are test rows."""
        return len(self.test_y) / (len(self.train_y) + len(self.test_y))

    @property
    def problem(self) -> Problem:
        """What a network has to predict on this split."""
        outputs = self.classes if self.task == "classification" else 1
        return Problem(self.task, tuple(self.train_x.shape[1:]), outputs, len(self.train_x), self.law)


class Dataset:
    """A name in `uqbench list datasets`. Subclass it as a frozen dataclass whose fields are its options."""

    version: ClassVar[str] = "1"  # part of a cell's key: raise it when the rows change
    later: ClassVar[frozenset[str]] = frozenset()  # options that came later: no part of a key at their defaults
    task: ClassVar[Task]
    # How its numbered splits are related, which decides on the test of a comparison: "independent" are fresh rows for
    # every split (generated data), "splits" are overlapping choices from one table, "seeds" are always the same rows.
    repeats: ClassVar[Replication] = "splits"
    title: ClassVar[str] = ""  # what tables for papers call it; by default its name with blanks
    notes: ClassVar[Sequence[str]] = ()  # flaws and facts that reports print
    source: ClassVar[str] = ""  # where the rows come from
    licence: ClassVar[str] = ""
    shape: ClassVar[
        tuple[int, ...]
    ] = ()  # all rows, then one row's shape: for pages and lists when the files are missing
    files: ClassVar[Sequence[File]] = ()  # what has to be on the disk; 'uqbench data' fetches and verifies it
    expected_failures: ClassVar[Mapping[str, str]] = {}  # checks of 'uqbench verify' it fails, and why that is right

    def skip(self) -> str | None:
        """Return why the data is not available here and how to get it, or None."""
        return None

    def load(self, split: int) -> Split:
        """Return split number 0, 1, 2, ..., always the same rows for the same number."""
        raise NotImplementedError

    def fetch(self, folder: Path) -> None:
        """Download the files into a data folder and verify them; override it where a library does this."""
        from bench.machine.download import fetch

        fetch(self.files, folder)


def options(plugin: object) -> dict[str, Any]:
    """Return the fields of a plug-in with their values."""
    return {f.name: getattr(plugin, f.name) for f in fields(plugin)}  # type: ignore[arg-type]  # plug-ins are dataclasses


def float_options(plugin: object) -> dict[str, float]:
    """Return the fields that may differ between the members of a stack."""
    return {name: value for name, value in options(plugin).items() if isinstance(value, float)}
