"""Planted regressions: suites are really run, with one mistake in the code, against a baseline without it.

Each must be caught with the right metric named, and what the mistake does not touch must stay identical.
"""

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike
from torch import Tensor

import bench.api.optim
import bench.methods._weight_noise as weight_noise
import bench.training.drawing
from bench.gate.baseline import Baseline, read_baseline, write_baseline
from bench.gate.decide import Gate, gate
from bench.gate.measure import SuiteMeasurer, gate_suite, store_for
from bench.gate.same_suite import suite_content
from bench.gate.verdicts import Rules
from bench.metrics import Metric, calibration
from bench.metrics.bins import bin_index
from bench.plan.suite import Suite, check_suite
from bench.plugins.registry import Registry
from bench.run.driver import RunSettings
from bench.training.compiled_graphs import compiler_found
from bench.training.limits import Limits
from tests.fixtures.gate import baseline as of_numbers
from tests.fixtures.gate import measured, spread

REGRESSION = """
title = "Planted: regression"
seeds = 8
draws = 20
metrics = ["rmse", "crps", "picp95", "mpiw"]
training = {learning_rate = 0.02, weight_decay = 0.3, epochs = 60, batch = 100}
network = {hidden = [20]}
datasets.diabetes = {}
methods.deterministic = {}
methods.mcni-fixed = {alpha = 0.2}
"""
OVERFITTING = """
title = "Planted: without weight decay it learns its rows by heart"
seeds = 8
metrics = ["rmse", "nll"]
training = {learning_rate = 0.02, weight_decay = 0.3, epochs = 120, batch = 100}
network = {hidden = [50]}
datasets.diabetes = {}
methods.deterministic = {}
"""
CLASSIFICATION = """
title = "Planted: classification"
seeds = 8
metrics = ["accuracy", "ece", "brier"]
training = {learning_rate = 0.01, epochs = 10, batch = 64}
network = {hidden = [10]}
datasets.breast-cancer = {}
methods.deterministic = {}
"""


def suite_of(name: str, text: str) -> Suite:
    return check_suite({"name": name, **tomllib.loads(text)}, name)


def baseline_of(suite: Suite) -> Baseline:
    with store_for(None) as store:
        return Baseline(suite.name, suite_content(suite), SuiteMeasurer(suite, Registry(), store)(suite.seeds), ())


def gated(suite: Suite, held_to: Baseline) -> Gate:
    with store_for(None) as store:
        return gate_suite(suite, held_to, SuiteMeasurer(suite, Registry(), store))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own modules
@pytest.mark.skipif(not compiler_found(), reason="no C++ compiler: compiled graphs cannot be tried here")
def test_a_gate_repeats_the_form_in_which_the_baseline_was_trained(tmp_path: Path) -> None:
    suite = suite_of("planted", REGRESSION).model_copy(update={"seeds": 2}).only([], ["deterministic"])
    place = ("diabetes", "deterministic")
    with store_for(None) as store:
        settings = RunSettings(limits=Limits(compiling=True))
        made = SuiteMeasurer(suite, Registry(), store, settings)(suite.seeds)
    assert made.forms == {place: "compiled, 32 slots"}
    write_baseline(Baseline(suite.name, suite_content(suite), made, ()), tmp_path / "b.json")
    again = gated(suite, read_baseline(tmp_path / "b.json"))
    assert {row.verdict for row in again.rows} == {"identical"}
    assert not again.environment
    traced = gated(suite, Baseline(suite.name, suite_content(suite), replace(made, forms={place: "traced"}), ()))
    assert "identical" not in {row.verdict for row in traced.rows if row.metric == "rmse"}


def named(made: Gate, verdict: str) -> set[tuple[str, str]]:
    return {(row.method, row.metric) for row in made.rows if row.verdict == verdict}


@pytest.fixture(scope="module")
def regression() -> tuple[Suite, Baseline]:
    suite = suite_of("planted-regression", REGRESSION)
    return suite, baseline_of(suite)


@pytest.mark.slow
def test_mcni_noise_that_is_too_large_widens_its_intervals(
    regression: tuple[Suite, Baseline], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = weight_noise.standard
    monkeypatch.setattr(weight_noise, "standard", lambda *args: 1.3 * right(*args))
    made = gated(*regression)
    assert named(made, "regressed") == {("mcni-fixed", "mpiw")}
    assert {method for method, _ in named(made, "identical")} == {"deterministic"}
    (row,) = made.failing()
    assert row.now == pytest.approx(1.3 * row.baseline, rel=0.15)


@pytest.mark.slow
def test_a_dropped_weight_decay_costs_accuracy_and_putting_it_back_is_no_regression(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def undecayed(name: str, param: Tensor, gradient: Tensor, step: object) -> Tensor:
        return gradient

    suite = suite_of("planted-overfitting", OVERFITTING)
    right = baseline_of(suite)
    monkeypatch.setattr(bench.api.optim, "decayed", undecayed)
    with store_for(None) as store:
        wrong = SuiteMeasurer(suite, Registry(), store)(suite.seeds)
    made = gate(right, lambda seeds, places: wrong, Rules())
    assert ("deterministic", "rmse") in named(made, "regressed")
    mended = gate(Baseline(suite.name, right.asked, wrong, ()), lambda seeds, places: right.measured, Rules())
    assert ("deterministic", "rmse") in named(mended, "improved")
    assert named(mended, "regressed") == set()


@pytest.mark.slow
def test_noise_that_is_the_same_in_every_draw_costs_coverage(
    regression: tuple[Suite, Baseline], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.api.tape import stream as right

    monkeypatch.setattr(bench.training.drawing, "stream", lambda seed, name, number, *salt: right(seed, name, 0, *salt))
    made = gated(*regression)
    assert ("mcni-fixed", "picp95") in named(made, "regressed")
    assert {method for method, _ in named(made, "identical")} == {"deterministic"}


@pytest.mark.slow
def test_bins_of_ece_that_are_off_by_one_are_named_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_by_one(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> float:
        """Rows are counted in their bin by confidence, and in the next one by correctness."""
        scores, hits = np.asarray(confidence, dtype=float), np.asarray(correct, dtype=float)
        index = bin_index(scores, bins)
        sums = (np.bincount(i, weights=w, minlength=bins + 2) for i, w in ((index, scores), (index + 1, hits)))
        a, b = sums
        return float(np.abs(a - b).sum() / scores.size)

    suite = suite_of("planted-classification", CLASSIFICATION)
    held_to = baseline_of(suite)
    monkeypatch.setattr(calibration, "expected_calibration_error", off_by_one)
    made = gated(suite, held_to)
    assert named(made, "regressed") == {("deterministic", "ece")}
    assert named(made, "identical") == {("deterministic", "accuracy"), ("deterministic", "brier")}


@pytest.fixture
def latency(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Gate]:
    """A gate of times; the metric is declared here, so that the test needs no clock."""
    metric = Metric(
        name="latency_forward",
        task="any",
        family="cost",
        direction="lower",
        target=None,
        unit="ms",
        needs=frozenset({"probe"}),
        formula="time of a pass",
        source="a clock",
        compute=None,
    )
    monkeypatch.setattr("bench.gate.verdicts.find_declaration", lambda name: metric)

    def run(factor: float, **environment: object) -> Gate:
        before = spread(20.0, 1.0)
        after = factor * np.random.default_rng(5).permutation(before)  # clocks are not tied to seeds
        then = measured({("digits", "mcni-fixed"): {"latency_forward@T=10": before}})
        facts = {**then.environment, **environment}
        now = measured({("digits", "mcni-fixed"): {"latency_forward@T=10": after}}, environment=facts)
        return gate(of_numbers(then), lambda seeds, places: now, Rules())

    return run


def test_a_slow_down_by_half_is_caught_on_the_same_machine_only(latency: Callable[..., Gate]) -> None:
    (row,) = latency(1.5).rows
    assert (row.metric, row.verdict) == ("latency_forward@T=10", "regressed")
    assert row.note == "the seeds of one run share the noise of the machine: run it again before you believe it"
    (row,) = latency(1.5, cpu="Another CPU").rows
    assert (row.verdict, row.note) == ("not compared", "times of another machine")


def test_a_slow_down_within_a_fifth_and_a_speed_up_pass(latency: Callable[..., Gate]) -> None:
    assert latency(1.05).rows[0].verdict == "equivalent"
    assert latency(0.5).rows[0].verdict == "improved"
    assert not latency(0.5).failing(strict=True)
