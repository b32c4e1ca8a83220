"""A wrapper under test, around methods of the kit whose predictions are of different kinds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from torch import Tensor

from bench.api import (
    Array,
    Dirichlet,
    HeldOut,
    Logits,
    Method,
    Net,
    Normal,
    Prediction,
    Quantiles,
    Split,
    Tape,
    Task,
    Wrapper,
)
from bench.errors import UserError
from bench.testing.check import CheckFailure, NotApplicable, require
from bench.testing.problems import LEARNING, PROBLEMS, SEED, STACK, Plain, members_of, split_of
from bench.training.fit import fit
from bench.training.member import Fitted
from bench.training.predictors import Networks
from bench.training.rows import Prepared, calibration_folds
from bench.training.wrapped import Calibrated, Part, calibrate

ROWS = 160
DRAWS = 8
PROTOCOL = replace(LEARNING, calibration=0.3)


@dataclass(frozen=True)
class Drawn(Method):
    """Draws that differ."""

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the outputs times a random number."""
        return net(x) * (1 + 0.2 * tape.normal((1,)))


@dataclass(frozen=True)
class Stated(Method):
    """One prediction that states a distribution."""

    def predict(self, drawn: Array, task: Task) -> Prediction:
        """Return a variance for every row, or a Dirichlet distribution."""
        if task == "classification":
            return Dirichlet(0.5 + np.exp(np.clip(drawn, -9, 9)))
        return Normal(drawn[..., 0], noise_variance=0.05 + 0.1 * np.square(drawn[..., 0]))


@dataclass(frozen=True)
class Skewed(Method):
    """One prediction that states quantiles, or logits."""

    def predict(self, drawn: Array, task: Task) -> Prediction:
        """Return an interval and a median for every row, or logits."""
        if task == "classification":
            return Logits(drawn)
        return Quantiles(np.array([0.1, 0.5, 0.9]), drawn[..., :1] + np.array([-0.2, 0.0, 0.5]))


# What is trained is the same network for all of them.
INNER: Mapping[str, Method] = {
    "points": Plain(),
    "several draws": Drawn(),
    "a distribution": Stated(),
    "quantiles or logits": Skewed(),
}


class WrapperSubject:
    """A wrapper under test."""

    def __init__(self, plugin: Wrapper) -> None:
        self.plugin = plugin

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks that the wrapper does not skip."""
        found: list[Task] = [p.task for p in PROBLEMS.values() if self.plugin.skip(p) is None]
        require(found, "skip refuses regression and classification on rows of numbers; nothing can be checked")
        return found

    @cached_property
    def attempts(self) -> dict[tuple[Task, str], Calibrated | UserError]:
        """The wrapper, or its refusal, for every task and inner method of the kit."""
        found: dict[tuple[Task, str], Calibrated | UserError] = {}
        for task in self.tasks:
            for name in INNER:
                try:
                    calibrated = self.calibrate(task, name)
                    calibrated.predict(calibrated.whole.test_x[:2], DRAWS, 0)
                    found[task, name] = calibrated
                except UserError as error:
                    found[task, name] = error
        return found

    @property
    def places(self) -> list[tuple[Task, str]]:
        """The tasks and inner methods that the wrapper does not refuse."""
        found = [place for place, each in self.attempts.items() if isinstance(each, Calibrated)]
        if not found:
            raise NotApplicable("it refuses every inner method: see inner-methods")
        return found

    @property
    def calibrated(self) -> list[Calibrated]:
        """The wrapper around every inner method and task that it does not refuse."""
        return [self.calibrate(*place) for place in self.places]

    def material(self, task: Task, inner: str) -> tuple[list[HeldOut], list[Prediction]]:
        """Return what the hooks are given: predictions at held-out rows and at the test rows."""
        whole, trained = _trained(task, self.plugin.folds)
        held, predictions = [], []
        for networks, data in trained:
            part = Part(Networks(INNER[inner], networks, task, STACK), data)
            rows = data.rows.calibrating
            held.append(HeldOut(part.predict(data.rows.x[rows], DRAWS, 1, whole), data.rows.y[rows].numpy().copy()))
            predictions.append(part.predict(data.test_x, DRAWS, 1, whole))
        return held, predictions

    def calibrate(
        self, task: Task, inner: str, *, seed: int = SEED, split: Split | None = None, rows: int | None = None
    ) -> Calibrated:
        """Calibrate around one inner method, on other targets or on the first rows alone if wanted."""
        whole, trained = _trained(task, self.plugin.folds)
        few = [(networks, data if rows is None else _first_rows(data, rows)) for networks, data in trained]
        parts = [Part(Networks(INNER[inner], networks, task, STACK), data) for networks, data in few]
        whole = parts[0].data if len(parts) == 1 else whole
        return calibrate(self.plugin, parts, whole, split or split_of(task, ROWS), DRAWS, seed)


@cache  # the same for all wrappers
def _trained(task: Task, folds: int) -> tuple[Prepared, list[tuple[list[Fitted], Prepared]]]:
    """Return the rows of the whole cell, and the network and the rows of each part."""
    split = split_of(task, ROWS)
    parts: Sequence[Sequence[Tensor] | None] = calibration_folds(ROWS, PROTOCOL, SEED, folds) if folds else [None]
    prepared = [members_of(Plain(), split, PROTOCOL, fold=fold) for fold in parts]
    done = dict(fit([member for _, (member,) in prepared], STACK))
    if any(network.status != "ok" for network in done.values()):
        raise CheckFailure("the networks of the kit diverged; see 'uqbench doctor'")
    trained = [([done[number]], data) for number, (data, _) in enumerate(prepared)]
    return members_of(Plain(), split, PROTOCOL)[0] if folds else trained[0][1], trained


def _first_rows(data: Prepared, count: int) -> Prepared:
    rows = data.rows
    return replace(data, rows=replace(rows, calibration=rows.calibration[:count]))
