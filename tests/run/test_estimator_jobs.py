"""Jobs of estimators in this process: what fit is given, searched options, scores and latency."""

import random
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from bench.api import Array, Estimator, Examples, Normal, Points, Prediction, Split
from bench.run.job import Job
from bench.run.jobs import run_jobs
from bench.spec.cell import Outcome
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Protocol
from bench.testing.isolation import global_generators_untouched
from bench.training.limits import threads
from bench.training.search import Selection

SEEN: list[tuple[Examples, Examples | None]] = []


@dataclass(frozen=True)
class Constant(Estimator):
    """Predicts one number at every row; the best is the mean, 0 in training units."""

    value: float = 0.0
    search_space: ClassVar[Any] = {"value": (-1.0, 0.1, 2.0)}

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        SEEN.append((train, validation))
        return self.value

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        return Points(np.full((2, len(x)), state))


@dataclass(frozen=True)
class Network(Estimator):
    """Trains the suite's network in its own loop."""

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        network = train.new_network(train.problem.outputs)
        optimizer = torch.optim.Adam(network.parameters(), 0.05)
        x, y = torch.from_numpy(train.x), torch.from_numpy(train.y)
        for _ in range(60):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(network(x)[:, 0], y).backward()
            optimizer.step()
        return network.eval()

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        with torch.no_grad():
            mean = state(torch.from_numpy(x))[:, 0].numpy()[None]
        return Normal(mean, noise_variance=np.full_like(mean, 0.01))


def split(rows: int = 100) -> Split:
    random = np.random.default_rng(3)
    x = random.normal(size=(rows, 2))
    y = 50 + 10 * (x[:, 0] - x[:, 1])
    return Split("regression", x, y, x[:30] + 0.01, y[:30])


def outcome_of(estimator: Estimator, protocol: Protocol, space: Any = None) -> tuple[Outcome, list[Selection]]:
    SEEN.clear()
    events = [event for _, event in run_jobs([Job(estimator, protocol, split(), 0, space=space or {})])]
    assert isinstance(events[-1], Outcome), events
    return events[-1], [event for event in events if isinstance(event, Selection)]


PROTOCOL = Protocol(network=PluginSpec("mlp", options={"hidden": [8]}), validation=0.2, calibration=0.1, draws=4)


def test_fit_has_standardised_training_and_validation_rows_and_no_others() -> None:
    outcome, _ = outcome_of(Constant(), PROTOCOL)
    ((train, validation),) = SEEN
    assert validation is not None
    assert (len(train), len(validation)) == (70, 20)
    assert train.x.dtype == train.y.dtype == np.float32
    np.testing.assert_allclose([train.x.mean(0), train.x.std(0)], [[0, 0], [1, 1]], atol=1e-5)
    assert (train.y.mean(), train.y.std()) == pytest.approx((0, 1), abs=1e-5)
    assert outcome.metrics["rmse"] == pytest.approx(split().test_y.std(), rel=0.2)  # in original units


def test_a_search_takes_the_best_options_and_a_refit_all_rows() -> None:
    protocol = replace(PROTOCOL, calibration=0.0, search="grid", folds=2, refit=True)
    outcome, (selection,) = outcome_of(Constant(), protocol, Constant.search_space)
    assert len(SEEN) == 3 * 2 + 1
    assert selection.chosen is not None
    assert selection.chosen.method == {"value": 0.1}
    # The squared error of a constant c in training units is 1 + c^2, up to the means of the folds.
    assert np.allclose(selection.means, [2, 1.01, 5], rtol=0.15)
    assert outcome.training["search"]["chosen"] == {"value": 0.1}
    train, validation = SEEN[-1]
    assert (len(train), validation) == (100, None)


@pytest.mark.parametrize("criterion", ["nll", "crps"])
def test_a_search_may_judge_by_a_score(criterion: Any) -> None:
    protocol = replace(PROTOCOL, search="grid", folds=2, search_by=criterion)
    _, (selection,) = outcome_of(Constant(), protocol, Constant.search_space)
    assert selection.chosen is not None
    assert selection.chosen.method == {"value": 0.1}


def test_an_estimator_may_train_the_network_of_the_suite() -> None:
    outcome, _ = outcome_of(Network(), PROTOCOL)
    assert outcome.status == "ok"
    assert outcome.metrics["rmse"] < 0.2 * split().test_y.std()
    assert "crps" in outcome.metrics  # of the stated variance, with one draw


def test_what_it_raises_is_one_line_with_its_place() -> None:
    @dataclass(frozen=True)
    class Wrong(Constant):
        def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
            from sklearn.linear_model import LinearRegression

            return Points(LinearRegression().fit(x, x[:1]).predict(x).T)

    outcome, _ = outcome_of(Wrong(), PROTOCOL)
    assert outcome.status == "failed"
    first = outcome.message.partition("\n")[0]
    assert first.startswith("predict, test_estimator_jobs.py:")
    assert "ValueError: Found input variables with inconsistent numbers of samples" in first


@pytest.mark.parametrize(("declared", "expected"), [(1, 1), (0, 2)])
def test_it_computes_on_the_threads_that_it_declares(declared: int, expected: int) -> None:
    counts: list[int] = []

    @dataclass(frozen=True)
    class Counting(Constant):
        threads: ClassVar[int] = declared

        def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
            counts.extend([torch.get_num_threads(), *(each["num_threads"] for each in threadpool_info())])
            return super().fit(train, validation, seed)

    with threads(2), threadpool_limits(2):
        outcome, _ = outcome_of(Counting(), PROTOCOL)
        assert outcome.status == "ok"
        assert torch.get_num_threads() == 2
    assert set(counts) == {expected}


def global_numbers() -> tuple[float, ...]:
    return random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002


def test_global_generators_are_seeded_and_given_back() -> None:
    drawn: list[tuple[float, ...]] = []

    @dataclass(frozen=True)
    class Drawing(Constant):
        def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
            drawn.append(global_numbers())
            return 0.0

        def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
            drawn.append(global_numbers())
            return super().predict(state, x, draws, seed)

    for _ in range(2):
        with global_generators_untouched(""):
            outcome_of(Drawing(), PROTOCOL)
    calls = len(drawn) // 2
    assert drawn[:calls] == drawn[calls:]
    assert len({number for numbers in drawn for number in numbers}) == 3 * calls  # each call has a seed of its own


def test_a_wrong_prediction_is_explained() -> None:
    @dataclass(frozen=True)
    class Wrong(Constant):
        def predict(self, state: Any, x: Array, draws: int, seed: int) -> Any:
            return x[:, 0]

    outcome, _ = outcome_of(Wrong(), PROTOCOL)
    assert "a ndarray is no prediction of a regression; return one of Points, Normal" in outcome.message


def test_its_latency_is_that_of_its_predictions() -> None:
    @dataclass(frozen=True)
    class Twenty(Constant):
        def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
            return Points(np.full((min(draws, 20), len(x)), state))

    probe = {"kind": "latency", "draws": [1, 5, 50], "repeats": 2, "batch": 10}
    jobs = [Job(Twenty(), replace(PROTOCOL, probe=probe), split(), 0)]
    ((_, outcome),) = run_jobs(jobs)
    assert isinstance(outcome, Outcome)
    timed = {name for name in outcome.metrics if name.startswith("latency_total")}
    assert timed == {"latency_total@T=1", "latency_total@T=5"}  # it has no 50 draws, and one way to make them
    assert outcome.metrics["latency_total@T=1"] > 0
    assert "latency_memory@T=1" in outcome.metrics
    assert outcome.training["latency"]["series"]["T=5"]["chunks"]["draws"] == 5
