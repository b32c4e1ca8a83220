"""A healthy wrapper passes all checks, and one broken wrapper fails each of them."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from bench.api import (
    Array,
    HeldOut,
    Look,
    Normal,
    PluginSpec,
    Points,
    Prediction,
    Probabilities,
    Problem,
    RegressionPrediction,
    UserError,
    Wrapper,
)
from bench.testing import verify, wrapper_checks


def moments(prediction: Prediction) -> Array:
    assert isinstance(prediction, RegressionPrediction)
    mean: Array = prediction.centre.mean(axis=0)
    return mean


@dataclass(frozen=True)
class Healthy(Wrapper):
    """Adds the error at held-out rows as noise.

        v = mean of (y_i - m(x_i))^2

    Somebody 2001.
    """

    method: PluginSpec = PluginSpec("deterministic")

    def skip(self, problem: Problem) -> str | None:
        return None if problem.task == "regression" else "classes have no noise"

    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Any:
        errors = [np.square(part.observed - moments(part.prediction)) for part in held]
        return {"variance": float(np.concatenate(errors).mean()), "jitter": generator.random()}

    def predict(self, state: Any, predictions: Sequence[Prediction], generator: np.random.Generator) -> Prediction:
        mean = np.mean([moments(prediction) for prediction in predictions], axis=0)
        noise = state["variance"] * (1 + 0.01 * generator.random(len(mean)) + 0.01 * state["jitter"])
        return Normal(mean[None], noise_variance=noise[None])


@dataclass(frozen=True)
class Folded(Healthy):
    """Adds the error of each fold as noise, as in

        v = mean of (y_i - m(x_i))^2

    Somebody 2002.
    """

    folds: int = 3


@dataclass(frozen=True)
class NoInner(Healthy):
    method: Any = None


@dataclass(frozen=True)
class BadInner(Healthy):
    method: PluginSpec = PluginSpec("deterministic", options={"rate": 0.1})


@dataclass(frozen=True)
class BadExcuse(Healthy):
    expected_failures: ClassVar[Mapping[str, str]] = {"seede": "they are what they are"}


@dataclass(frozen=True)
class BadReason(Healthy):
    def skip(self, problem: Problem) -> str | None:
        return "never"


@dataclass(frozen=True)
class Choosy(Healthy):
    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Any:
        if not isinstance(held[0].prediction, Points) or held[0].prediction.draw_count > 1:
            raise UserError("one point only")
        return super().calibrate(held, generator)


@dataclass(frozen=True)
class OtherTask(Healthy):
    def predict(self, state: Any, predictions: Sequence[Prediction], generator: np.random.Generator) -> Prediction:
        return Probabilities(np.full((1, predictions[0].row_count, 2), 0.5))


@dataclass(frozen=True)
class Deaf(Healthy):
    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Any:
        return {"variance": 1.0, "jitter": 0.5}


@dataclass(frozen=True)
class Remembers(Healthy):
    seen: list[float] = field(default_factory=list)

    def predict(self, state: Any, predictions: Sequence[Prediction], generator: np.random.Generator) -> Prediction:
        self.seen.append(1.0)
        return super().predict({**state, "variance": len(self.seen)}, predictions, generator)


@dataclass(frozen=True)
class OwnNumbers(Healthy):
    def predict(self, state: Any, predictions: Sequence[Prediction], generator: np.random.Generator) -> Prediction:
        return super().predict(state, predictions, np.random.default_rng())


@dataclass(frozen=True)
class GlobalNumbers(Healthy):
    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Any:
        random.random()
        return super().calibrate(held, generator)


@dataclass(frozen=True)
class LooksAround(Healthy):
    def predict(self, state: Any, predictions: Sequence[Prediction], generator: np.random.Generator) -> Prediction:
        level = float(np.abs(moments(predictions[0])).mean())
        return super().predict({**state, "variance": level}, predictions, generator)


@dataclass(frozen=True)
class Writes(Healthy):
    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Any:
        state = super().calibrate(held, generator)
        held[0].observed[:] = 0.0
        return state


@dataclass(frozen=True)
class Wears(Healthy):
    def predict(self, state: Any, predictions: Sequence[Prediction], generator: np.random.Generator) -> Prediction:
        state["used"] = True
        return super().predict(state, predictions, generator)


@dataclass(frozen=True)
class NeedsFive(Healthy):
    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Any:
        state = super().calibrate(held, generator)
        errors = held[0].observed - moments(held[0].prediction)
        return {**state, "variance": float(np.sort(np.square(errors))[4])}


@dataclass(frozen=True)
class Borrowed(Healthy):
    """Has the look of a built-in method."""

    look: ClassVar[Look | None] = Look("grey", "-", "o")


BROKEN: dict[str, Wrapper] = {
    "look": Borrowed(),
    "options": type("Bare", (Healthy,), {"__doc__": Healthy.__doc__})(),
    "version": type("NoVersion", (Healthy,), {"version": 1, "__doc__": Healthy.__doc__})(),
    "docstring": type("Undocumented", (Healthy,), {"__doc__": ""})(),
    "inner-method": NoInner(),
    "expected-failures": BadExcuse(),
    "skip": BadReason(),
    "inner-methods": Choosy(),
    "prediction": OtherTask(),
    "calibrates": Deaf(),
    "held-out-only": Remembers(),
    "seeded": OwnNumbers(),
    "row-wise": LooksAround(),
    "no-state": Writes(),
    "global-randomness": GlobalNumbers(),
    "few-rows": NeedsFive(),
}


@pytest.mark.slow
@pytest.mark.parametrize("wrapper", [Healthy(), Folded()], ids=lambda w: type(w).__name__)
def test_a_healthy_wrapper_passes(wrapper: Wrapper) -> None:
    verdicts = list(verify(wrapper))
    assert [str(v) for v in verdicts if v.state not in ("ok", "not applicable")] == []
    assert len(verdicts) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("check", BROKEN)
def test_a_broken_wrapper_fails(check: str) -> None:
    if check == "prediction":  # a prediction of another task is refused at the first attempt
        (verdict,) = verify(BROKEN[check], ["inner-methods"])
        assert "a Probabilities is no prediction of a regression" in verdict.message
    else:
        (verdict,) = verify(BROKEN[check], [check])
    assert verdict.state == "failed", verdict
    assert len(verdict.message) > 20


def test_every_check_has_a_wrapper_that_fails_it() -> None:
    assert {check.name for check in wrapper_checks()} - BROKEN.keys() == {"scored"}  # metrics accept all predictions


def test_a_state_that_predict_changes_is_found() -> None:
    (verdict,) = verify(Wears(), ["no-state"])
    assert "predict changed the state" in verdict.message


def test_options_that_the_inner_method_lacks_are_named() -> None:
    (verdict,) = verify(BadInner(), ["inner-method"])
    assert "unknown option 'rate'" in verdict.message
