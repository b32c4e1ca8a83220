"""A healthy estimator, and one that is broken for every check.

    y = x w + eps,   w_t: least squares on bootstrap sample t

Efron 1979, "Bootstrap Methods: Another Look at the Jackknife".
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from bench.api import Array, Estimator, Examples, Look, Normal, Points, Prediction, Probabilities, Problem
from bench.testing import estimator_checks, verify


@dataclass(frozen=True)
class Healthy(Estimator):
    """Passes every check: bootstrapped least squares, and centres of classes."""

    samples: int = 20

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        if train.problem.task == "classification":
            known = np.unique(train.y)
            centres = np.zeros((train.problem.outputs, train.x.shape[1]))
            centres[known] = [train.x[train.y == each].mean(0) for each in known]
            return "centres", centres
        random = np.random.default_rng(seed)
        rows = random.integers(len(train), size=(self.samples, len(train)))
        return "weights", np.stack([np.linalg.lstsq(train.x[r], train.y[r], rcond=None)[0] for r in rows])

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        kind, values = state
        if kind == "weights":
            return Points(self.drawn(values, x, draws))
        distance = ((x[:, None] - values) ** 2).sum(-1)
        p = np.exp(distance.min(1, keepdims=True) - distance)
        return Probabilities((p / p.sum(1, keepdims=True))[None])

    def drawn(self, weights: Array, x: Array, draws: int) -> Array:
        return np.stack([(x * w).sum(1) for w in weights[:draws]])


@dataclass(frozen=True)
class NoDefault(Healthy):
    """An option whose default is refused."""

    level: float = -1.0

    def __post_init__(self) -> None:
        if self.level == -1:
            raise ValueError("level must not be negative, got -1")


@dataclass(frozen=True)
class NoVersion(Healthy):
    """A number as version."""

    version: ClassVar[Any] = 1


@dataclass(frozen=True)
class BadSpace(Healthy):
    """A value that cannot be built."""

    search_space: ClassVar[Mapping[str, Any]] = {"samples": ("many",)}


@dataclass(frozen=True)
class BadExcuse(Healthy):
    """An excuse for no check."""

    expected_failures: ClassVar[Mapping[str, str]] = {"seded": "it is what it is"}


@dataclass(frozen=True)
class BorrowedLook(Healthy):
    """The look of mcni-fixed."""

    look = Look("blue", "-", "^")


@dataclass(frozen=True)
class TooHumble(Healthy):
    """Accepts classes, which it cannot do."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        if train.problem.task == "classification":
            raise ValueError("no classes, please")
        return super().fit(train, validation, seed)


@dataclass(frozen=True)
class TooMany(Healthy):
    """Returns all draws, however few are wanted."""

    def drawn(self, weights: Array, x: Array, draws: int) -> Array:
        return super().drawn(weights, x, self.samples)


@dataclass(frozen=True)
class Overflow(Healthy):
    """Not finite far from the data."""

    def drawn(self, weights: Array, x: Array, draws: int) -> Array:
        with np.errstate(all="ignore"):
            overflow: Array = super().drawn(weights, x, draws) + np.exp(np.abs(x[:, 0]) ** 4)
            return overflow


@dataclass(frozen=True)
class LastDraws(Healthy):
    """Other first draws for every T."""

    def drawn(self, weights: Array, x: Array, draws: int) -> Array:
        return super().drawn(weights[-draws:], x, draws)


@dataclass(frozen=True)
class Centred(Healthy):
    """A row that depends on the others."""

    def drawn(self, weights: Array, x: Array, draws: int) -> Array:
        return super().drawn(weights, x - x.mean(0), draws)


@dataclass(frozen=True)
class Unseeded(Healthy):
    """Random numbers that no seed decides."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        return super().fit(train, validation, int(np.random.default_rng().integers(2**31)))


@dataclass(frozen=True)
class ByProcess(Healthy):
    """Random numbers of the process."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        return super().fit(train, validation, os.getpid())


FITTED: dict[str, Any] = {}


@dataclass(frozen=True)
class Global(Healthy):
    """Keeps what it fitted in the module."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        state = super().fit(train, validation, seed)
        FITTED[state[0]] = state
        return state[0]

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        return super().predict(FITTED[state], x, draws, seed)


@dataclass(frozen=True)
class Unpicklable(Healthy):
    """A state that holds a function."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        state = super().fit(train, validation, seed)
        return lambda: state

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        return super().predict(state(), x, draws, seed)


@dataclass(frozen=True)
class OriginalUnits(Healthy):
    """Predicts in another unit."""

    def drawn(self, weights: Array, x: Array, draws: int) -> Array:
        return 10 + 5 * super().drawn(weights, x, draws)


@dataclass(frozen=True)
class NeedsValidation(Healthy):
    """Tunes on validation rows that need not be there."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        if validation is None:
            raise ValueError("give me validation rows to tune on")
        return super().fit(train, validation, seed)


@dataclass(frozen=True)
class NeedsRows(Healthy):
    """Needs two rows."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        if len(train) < 2:
            raise ValueError("two rows, please")
        return super().fit(train, validation, seed)


@dataclass(frozen=True)
class DividesBySpread(Healthy):
    """Divides by the spread of the targets."""

    def skip(self, problem: Problem) -> str | None:
        return None if problem.task == "regression" else "is for regression"

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        weights, spread = state
        return Normal((x * weights).sum(1)[None], noise_variance=np.full((1, len(x)), 1 / spread))

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        _, weights = super().fit(train, validation, seed)
        with np.errstate(divide="ignore"):
            return weights.mean(0), np.float64(train.y.var() if len(train) > 3 else 1.0)


@dataclass(frozen=True)
class KnownClasses(Healthy):
    """A column for each class that has rows."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        kind, values = super().fit(train, validation, seed)
        if kind == "centres" and len(train) > 3:
            counts = np.bincount(train.y, minlength=3)
            values = values / (counts > 0)[:, None]
        return kind, values


BROKEN = {
    "options": NoDefault,
    "version": NoVersion,
    "search-space": BadSpace,
    "expected-failures": BadExcuse,
    "look": BorrowedLook,
    "skip": TooHumble,
    "prediction": TooMany,
    "finite": Overflow,
    "draws": LastDraws,
    "rows": Centred,
    "seeded": Unseeded,
    "fresh-process": ByProcess,
    "no-state": Global,
    "round-trip": Unpicklable,
    "learns": OriginalUnits,
    "no-validation": NeedsValidation,
    "tiny-data": NeedsRows,
    "constant-targets": DividesBySpread,
    "missing-class": KnownClasses,
}


@pytest.mark.slow
def test_a_healthy_estimator_passes_all_checks() -> None:
    verdicts = list(verify(Healthy()))
    assert {verdict.state for verdict in verdicts} == {"ok"}
    assert len(verdicts) == len(list(estimator_checks())) >= 19


@pytest.mark.parametrize("check", [c.name for c in estimator_checks() if c.name != "docstring"])
@pytest.mark.filterwarnings("ignore")
def test_every_check_finds_its_fault(check: str) -> None:
    plugin = BROKEN[check](level=1.0) if check == "options" else BROKEN[check]()
    (verdict,) = verify(plugin, [check])
    assert verdict.state == "failed", verdict
    assert len(verdict.message.split()) > 5
    assert "\n" not in verdict.message


def test_a_fault_of_a_class_inside_a_function_is_not_looked_for_elsewhere() -> None:
    @dataclass(frozen=True)
    class Local(Healthy):
        """A class that no other process can import."""

    (verdict,) = verify(Local(), ["fresh-process"])
    assert verdict.state == "not applicable"
