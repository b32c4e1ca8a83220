"""Wrappers share the networks of their inner method and calibrate on rows that did not train them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.api import (
    Batch,
    Estimator,
    Examples,
    HeldOut,
    Net,
    Normal,
    PluginSpec,
    Points,
    Prediction,
    RegressionPrediction,
    Split,
    Wrapper,
)
from bench.api.tape import Tape
from bench.methods.deep_ensemble import DeepEnsemble
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.split_conformal import SplitConformal
from bench.run import jobs as jobs_module
from bench.run.job import Job
from bench.run.jobs import outcomes
from bench.spec.cell import Outcome, from_bytes, to_bytes
from bench.spec.protocol import Protocol, Training
from bench.training.fit import fit_with_progress
from bench.training.rows import calibration_folds, prepare

SEED = 3
PROTOCOL = Protocol(
    training=Training(epochs=6, batch=16, patience=2),
    network=PluginSpec("mlp", options={"hidden": [6]}),
    draws=4,
    validation=0.2,
    calibration=0.3,
)


def split_of(shift: float = 0.0) -> Split:
    random = np.random.default_rng(4)
    x = random.normal(size=(71, 3))
    y = 5 * np.sin(x).sum(1) + 0.1 * random.normal(size=71) + 100 + shift
    return Split("regression", x[:61], y[:61], x[61:], y[61:])


Seen = list[tuple[list[HeldOut], list[Prediction]]]


@dataclass(frozen=True)
class Spread(Wrapper):
    """States twice the mean squared residual at held-out rows as noise."""

    method: PluginSpec = PluginSpec("deterministic")
    folds: int = 0
    seen: Seen = field(default_factory=list, compare=False)  # for the tests

    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> float:
        self.seen.append((list(held), []))
        return 2 * float(np.mean([np.square(part.observed - _mean(part.prediction)).mean() for part in held]))

    def predict(self, state: float, predictions: Sequence[Prediction], generator: np.random.Generator) -> Prediction:
        self.seen[-1][1].extend(predictions)
        mean = np.mean([_mean(prediction) for prediction in predictions], axis=0)[None]
        return Normal(mean, noise_variance=np.full_like(mean, state))

    def doubts(self, state: float) -> Sequence[str]:
        return ["a test"]


def _mean(prediction: Prediction) -> Any:
    assert isinstance(prediction, RegressionPrediction)
    return prediction.centre.mean(axis=0)


def run(*jobs: Job) -> list[Outcome]:
    found = dict(outcomes(jobs))
    assert all(outcome.status == "ok" for outcome in found.values()), [o.message for o in found.values()]
    return [found[number] for number in range(len(jobs))]


@pytest.mark.parametrize(
    "inner", [Deterministic(), MCDropout(), DeepEnsemble(networks=2)], ids=lambda m: type(m).__name__
)
def test_a_wrapper_trains_nothing_and_has_the_mean_of_its_inner_method(
    inner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def counting(members: Any, limits: Any) -> Any:
        counted.append(len(members))
        return fit_with_progress(members, limits)

    monkeypatch.setattr(jobs_module, "fit_with_progress", counting)
    split = split_of()
    own, wrapped = run(Job(inner, PROTOCOL, split, SEED), Job(inner, PROTOCOL, split, SEED, wrapper=Spread()))
    assert counted == [0, inner.networks]
    assert wrapped.metrics["rmse"] == pytest.approx(own.metrics["rmse"], rel=1e-12)
    assert wrapped.training["train_loss"] == own.training["train_loss"]
    assert wrapped.metrics["width95"] != own.metrics["width95"]
    assert wrapped.message == "a test"


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_held_out_rows_are_the_calibration_rows_or_without_any_the_validation_rows(share: float) -> None:
    protocol, split, wrapper = replace(PROTOCOL, calibration=share), split_of(), Spread()
    (outcome,) = run(Job(MCDropout(), protocol, split, SEED, wrapper=wrapper))
    data = prepare(split, protocol, SEED, "cpu")
    rows = data.rows.calibration if share else data.rows.validation
    ((held,), predicted) = wrapper.seen[0]
    np.testing.assert_allclose(held.observed, data.rows.y[rows], rtol=1e-6)
    assert held.prediction.draw_count == predicted[0].draw_count == protocol.draws
    assert ("rows of early stopping" in outcome.message) == (not share)


def test_calibration_rows_and_all_others_are_predicted_by_the_same_functions() -> None:
    """A row that is both a calibration row and a test row has the same inner prediction."""
    split, wrapper = split_of(), Spread()
    rows = prepare(split, PROTOCOL, SEED, "cpu").rows.calibration.numpy()
    again = replace(split, test_x=split.train_x[rows], test_y=split.train_y[rows])
    run(Job(MCDropout(), PROTOCOL, again, SEED, wrapper=wrapper))
    ((held,), predicted) = wrapper.seen[0]
    assert isinstance(held.prediction, Points) and isinstance(predicted[0], Points)  # noqa: PT018  # for types
    assert held.prediction.centre.std(0).min() > 0
    np.testing.assert_allclose(held.prediction.values, predicted[0].values, rtol=1e-5, atol=1e-6)


def test_folds_hold_every_row_out_once_and_share_one_unit() -> None:
    split, wrapper = split_of(), Spread(folds=4)
    (outcome,) = run(Job(DeepEnsemble(networks=2), PROTOCOL, split, SEED, wrapper=wrapper))
    assert len(outcome.training["train_loss"]) == 4 * 2
    held, predicted = wrapper.seen[0]
    assert len(held) == 4
    assert len(predicted) == 2 * 4  # at the test rows, then at those that noise is fitted on
    parts = calibration_folds(61, PROTOCOL, SEED, 4)
    whole = prepare(split, PROTOCOL, SEED, "cpu")
    for part, (train, validation, calibration) in zip(held, parts, strict=True):
        assert not set(calibration.tolist()) & {*train.tolist(), *validation.tolist()}
        original = part.observed * whole.target_std + whole.target_mean
        np.testing.assert_allclose(original, split.train_y[calibration.numpy()])
        # A prediction in another fold's unit would be off by the differences of their means and deviations.
        error = np.sqrt(np.mean(np.square(part.observed - _mean(part.prediction))))
        assert error < 1.5
    assert len({row for *_, calibration in parts for row in calibration.tolist()}) == 4 * (61 // 4)
    assert all((len(train), len(validation)) == (37, 9) for train, validation, _ in parts)  # of 61 - 15 rows


def test_units_of_folds_do_not_matter() -> None:
    """Targets moved by a constant and inputs in other units move the prediction with them, folds or not."""
    split = split_of()
    moved = replace(split_of(shift=1000.0), train_x=100 * split.train_x - 3, test_x=100 * split.test_x - 3)
    for wrapper in (Spread(), Spread(folds=3)):
        one, other = run(*(Job(Deterministic(), PROTOCOL, s, SEED, wrapper=wrapper) for s in (split, moved)))
        np.testing.assert_allclose(other.arrays["mean"], one.arrays["mean"] + 1000, atol=0.02)


@dataclass(frozen=True)
class Tunes(Deterministic):
    """Remembers the rows that `finish` was given."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        return {} if validation is None else {"held": validation.x}

    def inspect(self, net: Net) -> dict[str, Tensor]:
        return dict(net.memory)


def test_what_the_inner_method_tunes_it_tunes_on_other_rows_than_the_wrapper() -> None:
    split = split_of()
    rows = prepare(split, PROTOCOL, SEED, "cpu").rows
    own, wrapped = run(Job(Tunes(), PROTOCOL, split, SEED), Job(Tunes(), PROTOCOL, split, SEED, wrapper=Spread()))
    assert torch.equal(torch.from_numpy(own.arrays["inspect/held"]), rows.x[rows.calibration])
    assert torch.equal(torch.from_numpy(wrapped.arrays["inspect/held"]), rows.x[rows.validation])


def test_a_wrapper_that_raises_fails_its_own_cell_alone() -> None:
    @dataclass(frozen=True)
    class Raises(Spread):
        def predict(self, state: Any, predictions: Any, generator: Any) -> Prediction:
            raise RuntimeError("bad luck")

    jobs = [Job(Deterministic(), PROTOCOL, split_of(), SEED, wrapper=w) for w in (None, Raises(), Spread())]
    found = dict(outcomes(jobs))
    assert [found[n].status for n in range(3)] == ["ok", "failed", "ok"]
    assert "bad luck" in found[1].message.partition("\n")[0]


@dataclass(frozen=True)
class Line(Estimator):
    """Least squares."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        return np.linalg.lstsq(np.c_[train.x, np.ones(len(train))], train.y, rcond=None)[0]

    def predict(self, state: Any, x: Any, draws: int, seed: int) -> Prediction:
        return Points((np.c_[x, np.ones(len(x))] @ state)[None])


def test_a_wrapper_may_be_around_an_estimator() -> None:
    split, wrapper, folded = split_of(), Spread(), Spread(folds=3)
    own, wrapped, _ = run(*(Job(Line(), PROTOCOL, split, SEED, wrapper=w) for w in (None, wrapper, folded)))
    np.testing.assert_allclose(wrapped.arrays["mean"], own.arrays["mean"])
    rows = prepare(split, PROTOCOL, SEED, "cpu").rows.calibration
    assert len(wrapper.seen[0][0][0].observed) == len(rows)
    # In original units each fold predicts what least squares in original units does.
    whole = prepare(split, PROTOCOL, SEED, "cpu")
    held = folded.seen[0][0]
    for part, (train, _, calibration) in zip(held, calibration_folds(61, PROTOCOL, SEED, 3), strict=True):
        design = np.c_[split.train_x, np.ones(61)]
        weights = np.linalg.lstsq(design[train], split.train_y[train], rcond=None)[0]
        found = _mean(part.prediction) * whole.target_std + whole.target_mean
        np.testing.assert_allclose(found, design[calibration] @ weights, rtol=1e-4)
    tests = [_mean(p) * whole.target_std + whole.target_mean for p in folded.seen[0][1][:3]]
    for found, (train, _, _) in zip(tests, calibration_folds(61, PROTOCOL, SEED, 3), strict=True):
        weights = np.linalg.lstsq(design[train], split.train_y[train], rcond=None)[0]
        np.testing.assert_allclose(found, np.c_[split.test_x, np.ones(10)] @ weights, rtol=1e-4)


def test_infinite_intervals_are_scored_and_travel() -> None:
    """Six calibration rows: the intervals of 90 and 95 % are infinite, that of 80 % is not."""
    protocol = replace(PROTOCOL, calibration=0.1)
    (outcome,) = run(Job(Deterministic(), protocol, split_of(), SEED, wrapper=SplitConformal()))
    assert "6 calibration rows are too few for coverage 0.9 and 0.95" in outcome.message
    assert outcome.metrics["coverage95"] == 1.0
    assert outcome.metrics["width95"] == outcome.metrics["interval_score95"] == np.inf
    assert np.isfinite(outcome.metrics["rmse"])
    assert "crps_mixture" not in outcome.metrics
    assert from_bytes(to_bytes(outcome)).metrics == outcome.metrics
