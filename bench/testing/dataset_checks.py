"""All checks of a dataset, one at a time."""

import hashlib
import tracemalloc
from collections.abc import Iterator
from dataclasses import fields
from functools import cached_property

import numpy as np

from bench.api import Array, Dataset, Split
from bench.errors import UserError
from bench.plan.cells import checked
from bench.testing import declarations
from bench.testing.check import Check, NotApplicable, require
from bench.testing.isolation import global_generators_untouched

ARRAYS = ("train_x", "train_y", "test_x", "test_y")
LARGEST = 4 * 2**30  # bytes of one split
ROOM = 64 * 2**20  # for what a library needs by itself while it reads


class DatasetSubject:
    """A dataset under examination: its first split is loaded once."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    @cached_property
    def first(self) -> Split:
        """Split 0."""
        return self.load(0)

    def load(self, split: int) -> Split:
        """Return a split, or end the check where the data is not here; why, the check of skip tells."""
        if self.dataset.skip():
            raise NotApplicable("the data is not here")
        return self.dataset.load(split)


def dataset_checks() -> Iterator[Check[DatasetSubject]]:
    """Yield every check that a dataset is asked to pass, the quick ones first."""
    yield Check("options", "it is a frozen dataclass and every option has a default", _options)
    yield Check("version", "its version is a text that can be part of a key", _version)
    yield Check("card", "it says what it is, its task, its source and its licence", _card)
    yield Check("expected-failures", "its excuses are about checks that exist, each with a reason", _expected_failures)
    yield Check("skip", "skip returns None or a reason", _skip)
    yield Check("arrays", "rows, targets and classes fit each other and are finite numbers", _arrays)
    yield Check("stated-shape", "the shape it states is the one it has", _stated_shape)
    yield Check("same-rows", "the same split number gives the same rows", _same_rows)
    yield Check("splits-differ", "another split number gives other rows", _splits_differ)
    yield Check("disjoint", "no test row is a training row, or a note says so", _disjoint)
    yield Check("isolated", "a caller who writes into the arrays does not change the next load", _isolated)
    yield Check("global-randomness", "global random generators are untouched", _global_randomness)
    yield Check("memory", "loading needs no more than a few times the memory of the rows", _memory)


def _options(subject: DatasetSubject) -> None:
    declarations.check_options(subject.dataset)


def _version(subject: DatasetSubject) -> None:
    declarations.check_version(subject.dataset)


def _expected_failures(subject: DatasetSubject) -> None:
    declarations.check_expected_failures(subject.dataset, [check.name for check in dataset_checks()])


def _card(subject: DatasetSubject) -> None:
    dataset = subject.dataset
    declarations.check_first_line(dataset)
    task = getattr(dataset, "task", None)
    require(
        task in ("regression", "classification"), f"task is {task!r}; write task = 'regression' or 'classification'"
    )
    for name in ("source", "licence"):
        require(
            getattr(dataset, name).strip(), f"{name} is empty; say it in a few words, 'generated' or 'none stated' too"
        )
    notes = dataset.notes
    good = not isinstance(notes, str) and all(isinstance(note, str) and note.strip() for note in notes)
    require(good, "notes must be a tuple of sentences; a single one needs a comma behind it: notes = ('...',)")


def _skip(subject: DatasetSubject) -> None:
    reason = subject.dataset.skip()
    declarations.check_reason(reason, "skip")
    if reason:
        raise NotApplicable(f"the data is not here: {reason}")


def _arrays(subject: DatasetSubject) -> None:
    split = subject.first
    for name in ARRAYS:
        array = getattr(split, name)
        require(isinstance(array, np.ndarray), f"{name} is a {type(array).__name__}; return numpy arrays")
        require(array.dtype.kind in "fiub", f"{name} has dtype {array.dtype}; return numbers")
    checked(split)
    require(
        split.task == subject.dataset.task, f"the split is for {split.task}, the dataset says {subject.dataset.task}"
    )
    if split.test_truth is not None:
        good = split.test_truth.shape == split.test_y.shape and np.isfinite(split.test_truth).all()
        require(good, "test_truth must have one finite value for each test row")


def _stated_shape(subject: DatasetSubject) -> None:
    stated = subject.dataset.shape
    if not stated:
        raise NotApplicable("it states no shape")
    split = subject.first
    held = 0 if split.test_x is split.train_x else len(split.test_y)
    found = (len(split.train_y) + held, *split.problem.inputs)
    require(found == tuple(stated), f"shape says {tuple(stated)}, split 0 has {found}: all rows, then one row's shape")


def _same(one: Split, other: Split) -> bool:
    return all(np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(Split))


def _same_rows(subject: DatasetSubject) -> None:
    again = subject.load(0)
    require(
        _same(subject.first, again), "split 0 gave other rows the second time; seed a generator with the split's number"
    )


def _splits_differ(subject: DatasetSubject) -> None:
    first = subject.first
    try:
        second = subject.load(1)
    except UserError as error:
        raise NotApplicable(f"it has one split, and says so: {error}") from None
    require(
        not _same(first, second),
        "splits 0 and 1 are the same; use the split's number, or raise UserError where a split does not exist",
    )


def _disjoint(subject: DatasetSubject) -> None:
    split = subject.first
    if split.test_x is split.train_x:
        share = 1.0
    else:
        known = set(_prints(split.train_x, split.train_y))
        share = float(np.mean([row in known for row in _prints(split.test_x, split.test_y)]))
    noted = any("duplicate" in note for note in subject.dataset.notes)
    require(
        share == 0 or noted,
        f"{share:.1%} of the test rows, target included, stand among the training rows; divide by index, and if the "
        "source itself repeats rows, say so in notes with the word 'duplicate'",
    )


def _prints(x: Array, y: Array) -> list[bytes]:
    """Return a hash of every row and its target: of large images, all of them at once would not fit into memory."""
    return [
        hashlib.blake2b(row.tobytes() + target.tobytes(), digest_size=16).digest()
        for row, target in zip(x, y, strict=True)
    ]


def _isolated(subject: DatasetSubject) -> None:
    spoilt = subject.load(0)
    kept = {name: getattr(spoilt, name).copy() for name in ARRAYS}
    for name in ARRAYS:
        array = getattr(spoilt, name)
        if array.flags.writeable:
            array[...] = 1
    again = subject.load(0)
    changed = [name for name in ARRAYS if not np.array_equal(getattr(again, name), kept[name])]
    for name in changed:  # what is shared is given back as it was
        getattr(spoilt, name)[...] = kept[name]
    told = (
        f"writing into {', '.join(changed)} changed the next load; return copies of what is kept, or make it read-only"
    )
    require(not changed, told)


def _global_randomness(subject: DatasetSubject) -> None:
    with global_generators_untouched("write np.random.default_rng([number, split])"):
        subject.load(0)


def _memory(subject: DatasetSubject) -> None:
    size = sum(getattr(subject.first, name).nbytes for name in ARRAYS)
    require(size < LARGEST, f"a split has {size:,} bytes; keep it below {LARGEST:,}")
    tracemalloc.start()
    try:
        subject.load(0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    require(
        peak < 16 * size + ROOM,
        f"loading {size:,} bytes of rows took {peak:,} at its height; read in parts, and in the dtype that is returned",
    )
