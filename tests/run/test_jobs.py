"""Jobs: searches by cross-validation, and trainings that several methods share."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from bench.api import Split
from bench.api.tape import Tape, stream
from bench.errors import UserError
from bench.methods.deep_ensemble import DeepEnsemble
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.networks.mlp import MLPNetwork
from bench.plan.cells import Task, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run import jobs as jobs_module
from bench.run.driver import run
from bench.run.job import Job
from bench.run.jobs import outcomes, run_jobs
from bench.spec.cell import Outcome
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Protocol, Training
from bench.spec.spec import read_spec
from bench.store.store import Store
from bench.training.fit import fit, fit_with_progress
from bench.training.folds import folds
from bench.training.limits import Limits
from bench.training.member import Member, training_form
from bench.training.network_factory import network_factory
from bench.training.rows import prepare
from bench.training.search import Selection, configurations
from bench.training.validation import held_out_loss
from tests.fixtures.suites import tiny_suite
from tests.fixtures.training import NETWORK_METHODS

pytestmark = pytest.mark.slow

GRID: Any = {"learning_rate": [1e-3, 1e-2], "weight_decay": [0.0, 0.1]}
NETWORK = PluginSpec("mlp", options={"hidden": [6]})
PROTOCOL = Protocol(
    training=Training(epochs=12, batch=16, patience=2), network=NETWORK, draws=3, search="grid", folds=3, grid=GRID
)


def split(rows: int = 50) -> Split:
    random = np.random.default_rng(4)
    x = random.normal(size=(rows + 10, 3))
    y = np.sin(x).sum(1) + 0.1 * random.normal(size=rows + 10)
    return Split("regression", x[:rows], y[:rows], x[rows:], y[rows:])


def test_a_search_is_what_a_loop_over_configurations_and_folds_finds() -> None:
    """Every configuration on every fold by itself, with the parts of the engine below the search."""
    data, space = split(), {"rate": [0.05, 0.4]}
    grid: Any = {"learning_rate": [1e-3, 1e-2], "weight_decay": [0.1]}
    protocol = replace(PROTOCOL, folds=2, grid=grid)
    job = Job(MCDropout(), protocol, data, seed=7, space=space)
    said = [each for _, each in run_jobs([job])]
    (selection,) = (each for each in said if isinstance(each, Selection))
    (outcome,) = (each for each in said if isinstance(each, Outcome))
    by_hand = []
    for rate_, decay, rate in [
        (lr, wd, r) for lr in grid["learning_rate"] for wd in grid["weight_decay"] for r in space["rate"]
    ]:
        training = Training(epochs=12, batch=16, patience=2, learning_rate=rate_, weight_decay=decay)
        row = []
        for number, fold in enumerate(folds(50, 2, 7)):
            rows = prepare(data, protocol, 7, "cpu", fold).rows
            factory = network_factory(MLPNetwork((6,)), data.problem)
            seed = stream(7, "fold", number)
            one = Member(MCDropout(rate), data.problem, factory, repr(PROTOCOL.network), training, rows, seed)
            row.append(held_out_loss(one, dict(fit([one]))[0]))
        by_hand.append(row)
    assert selection.losses == by_hand  # to the last bit: a result does not depend on its neighbours
    chosen = outcome.training["search"]["chosen"]
    assert outcome.training["search"]["validation_loss"] == min(sum(row) / 2 for row in by_hand)
    # The final fit is that of a cell with these values and no search.
    fixed = Protocol(
        training=replace(PROTOCOL.training, **{name: chosen[name] for name in grid}), network=PROTOCOL.network, draws=3
    )
    ((_, plain),) = outcomes([Job(MCDropout(chosen["rate"]), fixed, data, seed=7)])
    searched = {"cv_mse": min(sum(row) / 2 for row in by_hand)}
    assert {**plain.metrics, **searched} == outcome.metrics


def count_members(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by the number of networks of each fit."""
    counted: list[int] = []

    def counting(members: Any, limits: Any) -> Any:
        counted.append(len(members))
        return fit_with_progress(members, limits)

    monkeypatch.setattr(jobs_module, "fit_with_progress", counting)
    return counted


def test_those_that_train_alike_search_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = count_members(monkeypatch)
    jobs = [
        Job(method, PROTOCOL, split(), seed=1, data="same") for method in (Deterministic(), DeepEnsemble(networks=3))
    ]
    ended = dict(outcomes(jobs))
    assert counted == [4 * 3, 3]  # configurations x folds, then three networks, the first of which serves both
    assert ended[0].training["search"] == ended[1].training["search"]
    assert ended[0].training["train_loss"][0] == ended[1].training["train_loss"][0]


def test_a_search_that_was_done_before_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Job(Deterministic(), PROTOCOL, split(), seed=1)
    before = dict(outcomes([first]))[0]
    counted = count_members(monkeypatch)
    assert first.selection is not None
    known = Selection.from_json(first.selection.to_json())
    again = dict(outcomes([Job(Deterministic(), PROTOCOL, split(), seed=1, selection=known)]))[0]
    assert counted == [0, 1]
    assert again.metrics == before.metrics
    assert again.training == before.training


@pytest.mark.parametrize("kind", ["grid", "random:1"])
def test_one_configuration_is_taken_without_a_trial(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grid: Any = {"learning_rate": [0.05]}
    plain = replace(PROTOCOL, search="none", grid={})
    ((_, expected),) = outcomes(
        [Job(Deterministic(), replace(plain, training=replace(plain.training, learning_rate=0.05)), split(), seed=1)]
    )
    counted = count_members(monkeypatch)
    ((_, outcome),) = outcomes([Job(Deterministic(), replace(PROTOCOL, search=kind, grid=grid), split(), seed=1)])
    assert outcome.metrics == expected.metrics
    assert outcome.training["search"] == {"chosen": {"learning_rate": 0.05}, "configurations": 1}
    assert counted == [0, 1]


def test_the_test_rows_play_no_part() -> None:
    wild = split()
    wild = Split("regression", wild.train_x, wild.train_y, 1e3 * wild.test_x - 7, wild.test_y[::-1])
    found = [dict(outcomes([Job(Deterministic(), PROTOCOL, data, seed=1)]))[0] for data in (split(), wild)]
    assert found[0].training == found[1].training
    assert found[0].metrics != found[1].metrics


def test_all_configurations_may_diverge() -> None:
    protocol = Protocol(
        training=Training(epochs=3, batch=16),
        network=NETWORK,
        draws=3,
        search="grid",
        folds=2,
        grid={"learning_rate": [1e30, 1e31]},
    )
    ((_, outcome),) = outcomes([Job(Deterministic(), protocol, split(), seed=1)])
    assert outcome.status == "diverged"
    assert "no configuration" in outcome.message


def test_the_validation_pass_may_have_the_noise() -> None:
    """Its loss is then the training loss on the held-out rows: with weight noise of level 0 the two are the same."""
    from bench.methods.mcni_fixed import MCNIFixed

    def losses(alpha: float, validate: Any, path: Any) -> Any:
        training = Training(epochs=4, batch=16, patience=2, validate=validate)
        protocol = Protocol(training=training, network=NETWORK, draws=3)
        ((_, outcome),) = outcomes([Job(MCNIFixed(alpha=alpha), protocol, split(), seed=1)], limits=Limits(path=path))
        return outcome.training["validation_loss"]

    assert losses(0.0, "noisy", "stack") == losses(0.0, "clean", "stack")
    assert losses(0.5, "noisy", "stack") != losses(0.5, "clean", "stack")
    assert losses(0.5, "noisy", "plain") == pytest.approx(losses(0.5, "noisy", "stack"), rel=1e-4)


SUITE = tiny_suite("[grid]", "learning_rate = [0.001, 0.01]", draws=3, search="grid", folds=2, epochs=4)


@pytest.fixture
def searched(tmp_path: Path) -> str:
    path = tmp_path / "searched.toml"
    path.write_text(SUITE, "utf-8")
    return str(path)


def spaces(path: str, *changes: str) -> dict[str, tuple[int, dict[str, Any]]]:
    found = {}
    for task in plan(load_suite(path, changes), Registry()):
        assert isinstance(task, Task)
        space = read_spec(task.cells[0].spec).space
        found[task.method] = (len(configurations(task.protocol.search, task.protocol.grid, space, 0)), space)
    return found


def test_what_is_given_a_value_is_not_searched(searched: str) -> None:
    rates = list(MCDropout.search_space["rate"])
    assert spaces(searched) == {"deterministic": (2, {}), "mc-dropout": (2 * len(rates), {"rate": rates})}
    assert spaces(searched, "methods.mc-dropout.rate=0.1")["mc-dropout"] == (2, {})
    assert spaces(searched, "training.learning_rate=0.01")["deterministic"] == (1, {})
    assert spaces(searched, "search=none")["mc-dropout"] == (0, {})
    assert spaces(searched, "search=random:3")["mc-dropout"][0] == 3


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("search=gird", "search"),
        ("folds=0", "folds"),
        ("grid.learning_rate=[]", "at least one value"),
        ("grid.learning_rate=[0.0]", "trains nothing"),
        ("grid.momentum=[0.9]", "grid"),
    ],
)
def test_a_search_that_makes_no_sense_is_told(searched: str, change: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        load_suite(searched, [change])


def test_searches_are_stored_and_taken_up_again(searched: str, store: Store) -> None:
    assert run(load_suite(searched), Registry(), store).well
    rows = store.cells("searched")
    for row in rows:
        record = json.loads(row["training"])["search"]
        kept = Selection.from_json(store.searches([row["key"]])[row["key"]])
        assert kept.record() == record
        assert record["configurations"] == (2 if row["method"] == "deterministic" else 12)


SHORT = Protocol(training=Training(epochs=6, batch=16, patience=3), network=NETWORK, draws=7)
REGISTRY = Registry()
POST_HOC = ["laplace", "pep", "temperature-scaling", "test-time-augmentation", "weight-noise"]


def two_tasks(task: Any) -> Split:
    random = np.random.default_rng(4)
    x = random.normal(size=(70, 3))
    y = x.sum(1) if task == "regression" else (x.sum(1) > 0).astype(np.int64)
    return Split(task, x[:50], y[:50], x[50:], y[50:], classes=0 if task == "regression" else 2)


def test_methods_after_the_fit_train_as_the_deterministic_one_does() -> None:
    plain, _ = training_form(REGISTRY.make("method", "deterministic", {}))
    kinds = {name: training_form(method)[0] for name, method in NETWORK_METHODS.items()}
    alike = {name for name, kind in kinds.items() if kind == plain}
    assert alike == {"deterministic", "deep-ensemble", *POST_HOC}
    assert kinds["mean-variance"] != kinds["mean-variance-ensemble"]  # hooks of their own: known by their class
    assert kinds["mcni-fixed"] != training_form(REGISTRY.make("method", "mcni-fixed", {"alpha": 0.3}))[0]


def test_a_method_that_changes_a_part_of_anothers_hook_trains_by_itself() -> None:
    from bench.methods.mc_dropout import MCDropout

    @dataclass(frozen=True)
    class Mine(MCDropout):
        def mask(self, shape: Sequence[int], tape: Tape) -> Tensor:
            return 3 * super().mask(shape, tape)

    assert training_form(Mine())[0] != training_form(MCDropout())[0]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_shared_training_gives_the_results_of_one_apart(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = two_tasks(task)
    names = ["deterministic", "deep-ensemble", *POST_HOC]
    methods = {name: REGISTRY.make("method", name, {}) for name in names}
    methods = {name: method for name, method in methods.items() if not method.skip(data.problem)}
    counted = count_members(monkeypatch)
    together = dict(outcomes([Job(method, SHORT, data, seed=2) for method in methods.values()]))
    assert counted == [0, 5]  # no search; the ensemble's five networks, the first of which is everybody's
    for number, (name, method) in enumerate(methods.items()):
        ((_, apart),) = outcomes([Job(method, SHORT, data, seed=2)])
        assert apart.status == "ok", (name, apart.message)
        assert apart.metrics == together[number].metrics, name
        np.testing.assert_array_equal(apart.arrays["mean"], together[number].arrays["mean"])
