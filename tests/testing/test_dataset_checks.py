"""Springs: a healthy dataset, and one broken dataset for every check."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from bench.api import Array, Dataset, Law, Normal, Replication, Split
from bench.errors import UserError
from bench.testing import dataset_checks, verify


@dataclass(frozen=True)
class Healthy(Dataset):
    """Loads and lengths."""

    rows: int = 40

    task = "regression"
    repeats: ClassVar[Replication] = "independent"
    source, licence = "generated", "none needed"
    shape = (40, 2)

    def load(self, split: int) -> Split:
        if split >= 8:
            raise UserError(f"split {split} does not exist")
        x = np.random.default_rng([4, split]).normal(size=(self.rows, 2))
        return Split("regression", x[10:], x[10:].sum(1), x[:10], x[:10].sum(1), count=8)


@dataclass(frozen=True)
class NoDefault(Dataset):
    """Loads and lengths."""

    rows: int

    task, source, licence = "regression", "generated", "none needed"
    repeats = "independent"

    def load(self, split: int) -> Split:
        return Healthy().load(split)


@dataclass(frozen=True)
class NoVersion(Healthy):
    """Springs without version."""

    version: ClassVar[Any] = None


@dataclass(frozen=True)
class NoLicence(Healthy):
    """Springs without licence."""

    licence = ""


@dataclass(frozen=True)
class BadExcuse(Healthy):
    """Springs with an excuse."""

    expected_failures: ClassVar[Mapping[str, str]] = {"no-such-check": "because I say so"}


@dataclass(frozen=True)
class BadSkip(Healthy):
    """Springs that skip."""

    def skip(self) -> Any:
        return ""


@dataclass(frozen=True)
class NotFinite(Healthy):
    """Springs with infinite targets."""

    def load(self, split: int) -> Split:
        made = super().load(split)
        made.train_y[3] = np.inf
        return made


@dataclass(frozen=True)
class OtherShape(Healthy):
    """Springs that say to be more."""

    shape = (41, 2)


calls = [0]


@dataclass(frozen=True)
class Changing(Healthy):
    """Springs that depend on when they are asked."""

    def load(self, split: int) -> Split:
        calls[0] += 1
        made = super().load(split)
        return replace(made, train_y=made.train_y + 1e-9 * (calls[0] == 2))


@dataclass(frozen=True)
class OneSplit(Healthy):
    """Springs whatever the split."""

    repeats: ClassVar[Replication] = "splits"

    def load(self, split: int) -> Split:
        return replace(super().load(0), count=None)


@dataclass(frozen=True)
class Overlapping(Healthy):
    """Springs of one table, said to be fresh ones for every split."""

    def load(self, split: int) -> Split:
        x = np.random.default_rng([4, split]).permutation(np.random.default_rng(4).normal(size=(self.rows, 2)))
        return Split("regression", x[10:], x[10:].sum(1), x[:10], x[:10].sum(1))


@dataclass(frozen=True)
class Leaking(Healthy):
    """Springs that are tested on what they were trained on."""

    def load(self, split: int) -> Split:
        made = super().load(split)
        return replace(made, test_x=made.train_x[:10].copy(), test_y=made.train_y[:10].copy())


kept = [replace(Healthy().load(split), count=None) for split in (0, 1)]


@dataclass(frozen=True)
class Shared(Healthy):
    """Springs that hand out what they keep."""

    def load(self, split: int) -> Split:
        return kept[split]


@dataclass(frozen=True)
class GlobalNumbers(Healthy):
    """Springs that use the global generator."""

    def load(self, split: int) -> Split:
        random.random()
        return super().load(split)


@dataclass(frozen=True)
class Greedy(Healthy):
    """Springs that need room."""

    def load(self, split: int) -> Split:
        np.zeros(10**7)
        return super().load(split)


@dataclass(frozen=True)
class MoreSplits(Healthy):
    """Springs with more splits than they state."""

    def load(self, split: int) -> Split:
        return replace(super().load(split), count=3)


@dataclass(frozen=True)
class SumLaw(Law):
    """Lengths are the sum of the loads, with noise."""

    noise: float

    def at(self, x: Array) -> Normal:
        mean = x.sum(1)[None]
        return Normal(mean, noise_variance=np.full_like(mean, self.noise**2))


@dataclass(frozen=True)
class Lawful(Healthy):
    """Springs with noise of a known law."""

    noise: float = 0.5
    stated: float = 0.5
    repeats: ClassVar[Replication] = "independent"
    shape = (200, 2)

    def load(self, split: int) -> Split:
        if split >= 8:
            raise UserError(f"split {split} does not exist")
        random = np.random.default_rng([5, split])
        x = random.normal(size=(200, 2))
        y = x.sum(1) + self.noise * random.normal(size=200)
        law = SumLaw(self.stated)
        return Split("regression", x[50:], y[50:], x[:50], y[:50], count=8, test_truth=x[:50].sum(1), law=law)


BROKEN: dict[str, Dataset] = {
    "options": NoDefault(40),
    "version": NoVersion(),
    "card": NoLicence(),
    "expected-failures": BadExcuse(),
    "skip": BadSkip(),
    "arrays": NotFinite(),
    "stated-shape": OtherShape(),
    "same-rows": Changing(),
    "splits-differ": OneSplit(),
    "repeats": Overlapping(),
    "split-count": MoreSplits(),
    "disjoint": Leaking(),
    "law": Lawful(stated=2.0),
    "isolated": Shared(),
    "global-randomness": GlobalNumbers(),
    "memory": Greedy(),
}


def test_the_healthy_dataset_passes_all() -> None:
    assert {v.check: v.state for v in verify(Healthy()) if v.state != "ok"} == {"law": "not applicable"}
    assert {str(v) for v in verify(Lawful()) if v.state != "ok"} == set()


def test_there_is_a_broken_dataset_for_every_check() -> None:
    assert list(BROKEN) == [check.name for check in dataset_checks()]


@pytest.mark.parametrize("name", BROKEN)
def test_a_check_finds_its_fault_and_no_other(name: str) -> None:
    calls[0] = 0
    found = {v.check: v.message for v in verify(BROKEN[name]) if v.state == "failed"}
    assert list(found) == [name], found
    assert len(found[name].split()) > 6


@dataclass(frozen=True)
class Elsewhere(Healthy):
    """Springs that are not here."""

    def skip(self) -> str | None:
        return "springs.csv was not found"

    def load(self, split: int) -> Split:
        raise OSError


def test_without_its_files_a_dataset_is_asked_for_its_words_only() -> None:
    states = {v.check: v.state for v in verify(Elsewhere())}
    assert {name for name, state in states.items() if state == "ok"} == {
        "options",
        "version",
        "card",
        "expected-failures",
    }
    assert set(states.values()) == {"ok", "not applicable"}


@dataclass(frozen=True)
class Single(Healthy):
    """Springs of one split that says so."""

    def load(self, split: int) -> Split:
        if split:
            raise UserError("split 1 does not exist")
        return super().load(split)


def test_a_split_that_does_not_exist_is_said_to_be_so() -> None:
    (verdict,) = verify(Single(), ["splits-differ"])
    assert verdict.state == "not applicable"
    assert "split 1 does not exist" in verdict.message


@dataclass(frozen=True)
class Repeating(Leaking):
    """Springs with a note."""

    notes = ("every test row has a duplicate among the training rows",)


def test_duplicates_that_are_noted_are_no_fault() -> None:
    (verdict,) = verify(Repeating(), ["disjoint"])
    assert verdict.state == "ok"


@dataclass(frozen=True)
class SaidToBeSeeds(Healthy):
    """Fresh springs, said to be the same."""

    repeats = "seeds"


@dataclass(frozen=True)
class SaidToBeSplits(Healthy):
    """Fresh springs, said to be of one table."""

    repeats = "splits"


@dataclass(frozen=True)
class SeedsOnly(OneSplit):
    """The same springs whatever the split."""

    repeats = "seeds"


def test_a_wrong_declaration_of_repeats_is_told_the_right_one() -> None:
    for plugin, advice in ((SaidToBeSeeds(), "'independent'"), (SaidToBeSplits(), "'independent'")):
        (verdict,) = verify(plugin, ["repeats"])
        assert verdict.state == "failed"
        assert f"declare repeats = {advice}" in verdict.message
    assert {v.state for v in verify(SeedsOnly(), ["repeats", "splits-differ"])} == {"ok", "not applicable"}
