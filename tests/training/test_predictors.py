"""What draws state reaches the metrics: a method's own `predict`, in training units, through the whole cell."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, nn

from bench.api import (
    Array,
    Batch,
    Dirichlet,
    Method,
    Net,
    NewNetwork,
    NormalInverseGamma,
    Prediction,
    Problem,
    Split,
    Tape,
    Task,
)
from bench.run.job import Job
from bench.run.jobs import outcomes
from bench.spec.cell import Outcome
from bench.spec.protocol import Protocol, Training
from bench.testing.problems import split_of
from bench.training.member import states_itself, watches_draws
from bench.training.predictors import require_prediction

PROTOCOL = Protocol(Training(learning_rate=0.01, epochs=20, batch=32, patience=5), validation=0.2, draws=4)
ALPHA, NU, BETA = 3.0, 2.0, 0.4


@dataclass(frozen=True)
class StudentT(Method):
    """States a Student t of known parameters around the network's output."""

    alpha: float = ALPHA

    def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
        return batch.loss(net(batch.x)) + 7.0

    def predict(self, drawn: Array, task: Task) -> Prediction:
        mean, same = drawn[..., 0], np.ones(drawn.shape[:2])
        return NormalInverseGamma(mean, NU * same, self.alpha * same, BETA * same)


@dataclass(frozen=True)
class Evidence(Method):
    """States the Dirichlet of positive evidence."""

    def build(self, problem: Problem, new_network: NewNetwork) -> nn.Module:
        return new_network(problem.outputs)

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        return F.softplus(net(x)) + 1.0

    def predict(self, drawn: Array, task: Task) -> Prediction:
        return Dirichlet(drawn)


@dataclass(frozen=True)
class Wrong(Method):
    def predict(self, drawn: Array, task: Task) -> Any:
        return drawn


def outcome(method: Method, split: Split, protocol: Protocol = PROTOCOL) -> Outcome:
    ((_, found),) = outcomes([Job(method, protocol, split, 3)])
    return found


def test_a_stated_student_t_is_scored_in_original_units() -> None:
    split = split_of("regression")
    split = replace(split, train_y=10 * split.train_y + 5, test_y=10 * split.test_y + 5)
    found = outcome(StudentT(), split)
    assert found.status == "ok", found.message
    mean = found.arrays["mean"]
    train = split.train_y  # the unit is that of the rows that trained: recovered from the stated variance
    variance = BETA / (ALPHA - 1) * (1 + 1 / NU)
    np.testing.assert_allclose(found.arrays["variance"], found.arrays["variance"][0])
    unit = math.sqrt(found.arrays["variance"][0] / variance)
    assert unit == pytest.approx(train.std(), rel=0.15)
    scale = unit * math.sqrt(BETA * (1 + NU) / (NU * ALPHA))
    log_score = -stats.t(2 * ALPHA, mean, scale).logpdf(split.test_y).mean()
    assert found.metrics["nll_mixture"] == pytest.approx(log_score, rel=1e-9)
    assert found.metrics["rmse"] < 0.6 * split.test_y.std()


def test_without_a_variance_its_metrics_are_left_out_and_the_others_stay() -> None:
    found = outcome(StudentT(alpha=0.9), split_of("regression"))
    assert found.status == "ok", found.message
    assert "crps_mixture" in found.metrics or "nll_mixture" in found.metrics
    assert "picp" not in found.metrics


def test_a_method_that_states_something_else_is_watched_by_its_own_loss() -> None:
    assert states_itself(StudentT())
    assert watches_draws(StudentT())
    found = outcome(StudentT(), split_of("regression"))
    assert found.training["validation_loss"][0] > 7.0


def test_a_stated_dirichlet_is_scored_by_its_mean() -> None:
    split = split_of("classification")
    found = outcome(Evidence(), split)
    assert found.status == "ok", found.message
    np.testing.assert_allclose(found.arrays["mean"].sum(1), 1.0)
    assert found.metrics["accuracy"] > 0.6


def test_what_is_no_prediction_is_refused_in_one_line() -> None:
    found = outcome(Wrong(), split_of("regression"))
    assert found.status == "failed"
    first = found.message.splitlines()[0]
    assert "predict" in first
    assert "ndarray is no prediction of a regression; return one of" in first
    with pytest.raises(Exception, match="has 4 rows, but it is of 5"):
        require_prediction(Dirichlet(np.ones((1, 4, 2))), "classification", 5, "predict")


@pytest.mark.parametrize("make", [StudentT, Evidence])
def test_the_first_draws_alone_are_scored(make: Callable[[], Method]) -> None:
    task: Task = "regression" if make is StudentT else "classification"
    protocol = replace(PROTOCOL, probe={"kind": "test", "draws": [1]})
    found = outcome(make(), split_of(task), protocol)
    name = "rmse" if task == "regression" else "accuracy"
    assert found.metrics[f"{name}@T=1"] == found.metrics[name]  # there is one function
    assert torch.isfinite(torch.tensor(list(found.metrics.values()))).any()
