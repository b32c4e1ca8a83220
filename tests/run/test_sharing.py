"""Fit once, many posteriors: what trains alike is trained once, with the results of training apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from bench.api import Split
from bench.api.tape import Tape
from bench.plugins.registry import Registry
from bench.run import jobs as jobs_module
from bench.run.jobs import Job, outcomes
from bench.spec.protocol import Architecture, Protocol, Training
from bench.training.member import training_form
from bench.training.stack import fit_and_tell

PROTOCOL = Protocol(training=Training(epochs=6, batch=16, patience=3), network=Architecture(hidden=[6]), draws=7)
REGISTRY = Registry()
POST_HOC = ["laplace", "pep", "temperature-scaling", "test-time-augmentation", "weight-noise"]


def split(task: Any) -> Split:
    random = np.random.default_rng(4)
    x = random.normal(size=(70, 3))
    y = x.sum(1) if task == "regression" else (x.sum(1) > 0).astype(np.int64)
    return Split(task, x[:50], y[:50], x[50:], y[50:], classes=0 if task == "regression" else 2)


def test_methods_after_the_fit_train_as_the_deterministic_one_does() -> None:
    plain, _ = training_form(REGISTRY.make("method", "deterministic", {}))
    kinds = {name: training_form(REGISTRY.make("method", name, {}))[0] for name in REGISTRY.plugins("method")}
    alike = {name for name, kind in kinds.items() if kind == plain}
    assert alike == {"deterministic", "deep-ensemble", *POST_HOC}
    assert kinds["mean-variance"] != kinds["mean-variance-ensemble"]  # hooks of their own: known by their class
    assert kinds["mcni-fixed"] != training_form(REGISTRY.make("method", "mcni-fixed", {"alpha": 0.3}))[0]


def test_a_method_that_changes_a_part_of_anothers_hook_trains_by_itself() -> None:
    from bench.methods.mc_dropout import MCDropout

    @dataclass(frozen=True)
    class Mine(MCDropout):
        def mask(self, shape: tuple[int, ...], tape: Tape) -> Tensor:
            return 3 * super().mask(shape, tape)

    assert training_form(Mine())[0] != training_form(MCDropout())[0]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_shared_training_gives_the_results_of_one_apart(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = split(task)
    names = ["deterministic", "deep-ensemble", *POST_HOC]
    methods = {name: REGISTRY.make("method", name, {}) for name in names}
    methods = {name: method for name, method in methods.items() if not method.skip(data.problem)}
    counted: list[int] = []

    def counting(members: Any, limits: Any) -> Any:
        counted.append(len(members))
        return fit_and_tell(members, limits)

    monkeypatch.setattr(jobs_module, "fit_and_tell", counting)
    together = dict(outcomes([Job(method, PROTOCOL, data, seed=2) for method in methods.values()]))
    assert counted == [0, 5]  # no search; the ensemble's five networks, the first of which is everybody's
    for number, (name, method) in enumerate(methods.items()):
        ((_, apart),) = outcomes([Job(method, PROTOCOL, data, seed=2)])
        assert apart.status == "ok", (name, apart.message)
        assert apart.metrics == together[number].metrics, name
        np.testing.assert_array_equal(apart.arrays["mean"], together[number].arrays["mean"])
