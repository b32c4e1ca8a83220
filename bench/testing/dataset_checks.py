"""All checks of a dataset."""

import hashlib
import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import fields
from functools import cached_property

import numpy as np

from bench.api import Array, Blocks, ClassPrediction, Dataset, Prediction, Split
from bench.errors import UserError
from bench.plan.cells import checked
from bench.spec.replication import check_replication
from bench.testing import declarations
from bench.testing.check import Check, NotApplicable, require
from bench.testing.isolation import global_generators_untouched
from bench.training.predictors import require_prediction

ARRAYS = ("train_x", "train_y", "test_x", "test_y")
LARGEST = 4 * 2**30  # bytes of one split
SUSPICIOUS = 1e-5  # the probability of targets below which they do not follow a law
OVERHEAD = 64 * 2**20  # bytes that a library may need while it reads


class DatasetSubject:
    """A dataset under test; its first split is loaded once."""

    def __init__(self, plugin: Dataset) -> None:
        self.plugin = plugin

    @cached_property
    def first(self) -> Split:
        """Split 0."""
        return self.load(0)

    def load(self, split: int) -> Split:
        """Return a split; raise NotApplicable if the data is not installed."""
        if self.plugin.skip():
            raise NotApplicable("the data is not installed")
        return self.plugin.load(split)


def dataset_checks() -> Iterator[Check[DatasetSubject]]:
    """Yield every check that a dataset has to pass, the fast ones first."""
    yield declarations.OPTIONS
    yield declarations.VERSION
    yield Check("card", "it says what it is, its task, its source and its licence", _card)
    yield declarations.expected_failures_check(dataset_checks)
    yield Check("skip", "skip returns None or a reason", _skip)
    yield Check("arrays", "rows, targets and classes fit each other and are finite numbers", _arrays)
    yield Check("stated-shape", "the shape it states is the one it has", _stated_shape)
    yield Check("same-rows", "the same split number gives the same rows", _same_rows)
    yield Check("splits-differ", "another split number gives other rows", _splits_differ)
    yield Check("repeats", "splits are related as it declares: independent, overlapping splits, or seeds", _repeats)
    yield Check("split-count", "it has as many splits as it states, and no more", _split_count)
    yield Check("disjoint", "no test row is a training row, unless a note says so", _disjoint)
    yield Check("law", "targets follow the law that it states, and the true function is its mean", _law)
    yield Check("isolated", "a caller who writes into the arrays does not change the next load", _isolated)
    yield Check("global-randomness", "global random generators are untouched", _global_randomness)
    yield Check("memory", "loading needs at most a few times the memory of the rows", _memory)


def _card(subject: DatasetSubject) -> None:
    declarations.check_first_line(subject)
    dataset = subject.plugin
    task = getattr(dataset, "task", None)
    good = task in ("regression", "classification")
    require(good, f"task is {task!r}; write task = 'regression' or 'classification'")
    for name in ("source", "licence"):
        stated = getattr(dataset, name).strip()
        require(stated, f"{name} is empty; state it in a few words, or write 'generated' or 'none stated'")
    notes = dataset.notes
    good = not isinstance(notes, str) and all(isinstance(note, str) and note.strip() for note in notes)
    require(good, "notes must be a tuple of sentences; a single one needs a comma after it: notes = ('...',)")


def _skip(subject: DatasetSubject) -> None:
    reason = subject.plugin.skip()
    declarations.check_reason(reason)
    if reason:
        raise NotApplicable(f"the data is not installed: {reason}")


def _arrays(subject: DatasetSubject) -> None:
    split = subject.first
    for name in ARRAYS:
        array = getattr(split, name)
        require(isinstance(array, np.ndarray), f"{name} is a {type(array).__name__}; return numpy arrays")
        require(array.dtype.kind in "fiub", f"{name} has dtype {array.dtype}; return numbers")
    checked(split)
    task = subject.plugin.task
    require(split.task == task, f"the split is for {split.task}, the dataset says {task}")
    if split.test_truth is not None:
        good = split.test_truth.shape == split.test_y.shape and np.isfinite(split.test_truth).all()
        require(good, "test_truth must have one finite value for each test row")


def _stated_shape(subject: DatasetSubject) -> None:
    stated = subject.plugin.shape
    if not stated:
        raise NotApplicable("it states no shape")
    split = subject.first
    held = 0 if split.test_x is split.train_x else len(split.test_y)
    found = (len(split.train_y) + held, *split.problem.inputs)
    require(found == tuple(stated), f"shape says {tuple(stated)}, split 0 has {found}: all rows, then one row's shape")


def _same(one: Split, other: Split) -> bool:
    names = [field.name for field in fields(Split) if field.name != "law"]  # a function of the rows, checked by itself
    return all(_equal(getattr(one, name), getattr(other, name)) for name in names)


def _equal(one: object, other: object) -> bool:
    """Return whether two fields are the same; missing values are the same as missing values."""
    if isinstance(one, Blocks) and isinstance(other, Blocks):
        return one.ordered == other.ordered and np.array_equal(one.of_rows, other.of_rows)
    numbers = isinstance(one, np.ndarray) and one.dtype.kind == "f"
    return np.array_equal(one, other, equal_nan=numbers)  # type: ignore[arg-type]  # anything can be an array


def _same_rows(subject: DatasetSubject) -> None:
    again = subject.load(0)
    message = "split 0 gave other rows the second time; seed a generator with the split's number"
    require(_same(subject.first, again), message)


def _second(subject: DatasetSubject) -> Split:
    """Return split 1; raise NotApplicable if there is none."""
    try:
        return subject.load(1)
    except UserError as error:
        raise NotApplicable(f"it has one split and says so: {error}") from None


def _splits_differ(subject: DatasetSubject) -> None:
    if subject.plugin.repeats == "seeds":
        raise NotApplicable("it declares that repeats are seeds on one split")
    first, second = subject.first, _second(subject)
    message = (
        "splits 0 and 1 are the same; use the split's number, raise UserError for a split that does not exist, or "
        "declare repeats = 'seeds'"
    )
    require(not _same(first, second), message)


def _split_count(subject: DatasetSubject) -> None:
    """Plans for more seeds end at this number."""
    count = subject.first.count
    if count is None:
        raise NotApplicable("it states no number of splits: there are as many as are asked for")
    require(isinstance(count, int) and count > 0, f"count of split 0 is {count!r}; state a number of splits, or None")
    subject.load(count - 1)
    try:
        subject.load(count)
    except UserError:
        return
    require(False, f"split 0 states {count} splits, but there is a split {count}; raise UserError, or state no count")


def _repeats(subject: DatasetSubject) -> None:
    """Training rows decide: where they overlap, repeats are correlated."""
    declared, first, second = subject.plugin.repeats, subject.first, _second(subject)
    check_replication(declared)
    known = set(_hashes(first.train_x, first.train_y))
    common = float(np.mean([row in known for row in _hashes(second.train_x, second.train_y)]))
    same = _equal(first.train_x, second.train_x) and _equal(first.train_y, second.train_y)
    fits = {"independent": common == 0, "splits": common > 0, "seeds": same}[declared]
    share, right = f"{common:.1%} of the training rows of split 1 are in split 0", "splits" if common else "independent"
    require(fits, f"repeats = {declared!r}, but {share}; declare repeats = {right!r}")


def _disjoint(subject: DatasetSubject) -> None:
    split = subject.first
    if split.test_x is split.train_x:
        share = 1.0
    else:
        known = set(_hashes(split.train_x, split.train_y))
        share = float(np.mean([row in known for row in _hashes(split.test_x, split.test_y)]))
    noted = any("duplicate" in note for note in subject.plugin.notes)
    advice = "split by index; if the source itself repeats rows, say so in notes with the word 'duplicate'"
    require(share == 0 or noted, f"{share:.1%} of the test rows are training rows too, with their target; {advice}")


def _law(subject: DatasetSubject) -> None:
    """A law is compared with the targets of both parts: by the uniform law of F(y), or by the shares of classes."""
    split = subject.first
    if split.law is None:
        raise NotApplicable("it states no law of its targets")
    law = pickle.loads(pickle.dumps(split.law))  # one that this process made
    for part, x, y in (("training", split.train_x, split.train_y), ("test", split.test_x, split.test_y)):
        stated = law.at(x)
        require_prediction(stated, split.task, len(x), "law")
        require(stated.draw_count == 1, f"the law at {part} rows has {stated.draw_count} draws; state one")
        p = _probability_of_targets(stated, y)
        found = f"the {part} targets have the probability {p:.1g} under the law"
        require(p > SUSPICIOUS, f"{found}; draw them from law.at(x), and state the same law")
        if isinstance(stated, ClassPrediction):
            continue
        extra = stated.model_variance
        require(extra is None or not (extra > 1e-9 * stated.variance).any(), "a law is noise: state no model variance")
        if part == "test" and split.test_truth is not None:
            gap = float(np.abs(stated.centre[0] - split.test_truth).max())
            require(gap < 1e-6 * (1 + float(np.abs(split.test_truth).max())), "test_truth is not the mean of the law")


def _probability_of_targets(stated: Prediction, y: Array) -> float:
    """Return the probability of targets at least as far from their law."""
    from scipy.stats import chi2, kstest

    if not isinstance(stated, ClassPrediction):
        return float(kstest(stated.cdf(np.asarray(y, dtype=np.float64))[0], "uniform").pvalue)
    p = stated.probabilities[0]
    hits = np.eye(p.shape[1])[y.astype(np.int64)] - p
    # Weighted by the probabilities themselves: shares of classes alone would not see a law at the wrong rows.
    weighted = np.column_stack([(hits * p).sum(axis=1), hits[:, :-1]])
    covariance = np.zeros((weighted.shape[1],) * 2)
    for label in range(p.shape[1]):  # exactly, by going through the classes that each row might have had
        possible = np.eye(p.shape[1])[label] - p
        each = np.column_stack([(possible * p).sum(axis=1), possible[:, :-1]])
        covariance += np.einsum("n,ni,nj->ij", p[:, label], each, each)
    total = weighted.sum(axis=0)
    size = float(total @ np.linalg.pinv(covariance) @ total)
    return float(chi2.sf(size, np.linalg.matrix_rank(covariance)))


def _hashes(x: Array, y: Array) -> list[bytes]:
    """Return a hash of every row and its target; a table of large images would not fit into memory."""
    rows = (row.tobytes() + target.tobytes() for row, target in zip(x, y, strict=True))
    return [hashlib.blake2b(row, digest_size=16).digest() for row in rows]


def _isolated(subject: DatasetSubject) -> None:
    first = subject.load(0)
    kept = {name: getattr(first, name).copy() for name in ARRAYS}
    for name in ARRAYS:
        array = getattr(first, name)
        if array.flags.writeable:
            array[...] = 1
    again = subject.load(0)
    changed = [name for name in ARRAYS if not _equal(getattr(again, name), kept[name])]
    for name in changed:  # restore what is shared
        getattr(first, name)[...] = kept[name]
    advice = "return copies of arrays that are kept, or make them read-only"
    require(not changed, f"writing into {', '.join(changed)} changed the next load; {advice}")


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
    advice = "read in parts, and in the dtype that is returned"
    require(peak < 16 * size + OVERHEAD, f"loading {size:,} bytes of rows took {peak:,} at its peak; {advice}")
