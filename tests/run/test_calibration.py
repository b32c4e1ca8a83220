"""Calibration rows: what is fitted after the training sees them, and nothing else does."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest
from torch import Tensor

from bench.api import Batch, Net, Split
from bench.api.tape import Tape
from bench.methods.deterministic import Deterministic
from bench.run.job import Job
from bench.run.jobs import outcomes
from bench.spec.cell import Outcome
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Protocol, Training
from bench.training.rows import prepare

SEED = 3
PROTOCOL = Protocol(
    training=Training(epochs=6, batch=16, patience=2),
    network=PluginSpec("mlp", options={"hidden": [6]}),
    draws=2,
    validation=0.2,
    calibration=0.3,
)


@pytest.fixture(scope="module")
def split() -> Split:
    random = np.random.default_rng(4)
    x = random.normal(size=(70, 3))
    y = np.sin(x).sum(1) + 0.1 * random.normal(size=70)
    return Split("regression", x[:60], y[:60], x[60:], y[60:])


@dataclass(frozen=True)
class Keeps(Deterministic):
    """Remembers the rows that `finish` was given."""

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        assert validation is not None
        return {"train": train.x, "held": validation.x}

    def inspect(self, net: Net) -> dict[str, Tensor]:
        return dict(net.memory)


def result(split: Split, protocol: Protocol = PROTOCOL) -> Outcome:
    outcome = dict(outcomes([Job(Keeps(), protocol, split, SEED)]))[0]
    assert outcome.status == "ok", outcome.message
    return outcome


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_finish_is_given_the_calibration_rows_or_without_any_the_validation_rows(share: float, split: Split) -> None:
    protocol = replace(PROTOCOL, calibration=share)
    found, rows = result(split, protocol).arrays, prepare(split, protocol, SEED, "cpu").rows
    np.testing.assert_array_equal(found["inspect/train"], rows.x[rows.train])
    np.testing.assert_array_equal(found["inspect/held"], rows.x[rows.calibration if share else rows.validation])


def test_the_noise_is_fitted_on_calibration_rows_which_change_nothing_else(split: Split) -> None:
    rows, first = prepare(split, PROTOCOL, SEED, "cpu").rows, result(split)

    def moved(which: Tensor) -> Mapping[str, float]:
        y = split.train_y.copy()
        y[which.numpy()] += 3.0
        outcome = result(replace(split, train_y=y))
        assert (outcome.training["epochs"] == first.training["epochs"]) == (which is rows.calibration)
        return outcome.metrics

    noisier = moved(rows.calibration)
    assert noisier["rmse"] == first.metrics["rmse"]
    assert noisier["nll"] != pytest.approx(first.metrics["nll"], rel=0.01)
    assert moved(rows.validation)["rmse"] != first.metrics["rmse"]  # another epoch is the best one
