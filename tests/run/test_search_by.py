"""Searches that are judged by draws, and the fit on all rows that follows a search."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from scipy.special import logsumexp
from scipy.stats import norm
from torch import Tensor

from bench.api import Net, Split
from bench.api.tape import stream
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mc_dropout_prior import MCDropoutPrior
from bench.metrics import fit_noise_variance
from bench.networks.mlp import MLPNetwork
from bench.plan.cells import Refused, plan
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.run.job import Job
from bench.run.jobs import run_jobs
from bench.spec.cell import Outcome
from bench.spec.plugin import PluginSpec
from bench.spec.protocol import Protocol, Training
from bench.training.drawing import Drawing, draw
from bench.training.fit import fit
from bench.training.folds import folds
from bench.training.member import Member, Rows, Team
from bench.training.network_factory import network_factory
from bench.training.rows import held_out, prepare
from bench.training.search import Selection
from tests.fixtures.suites import tiny_suite

SEED, ROWS = 7, 50
TRAINING = Training(epochs=8, batch=16, patience=2, learning_rate=0.01)
PROTOCOL = Protocol(
    training=TRAINING, network=PluginSpec("mlp", options={"hidden": [6]}), draws=20, search="grid", folds=2
)
RATES = [0.05, 0.6]


@pytest.fixture(scope="module")
def split() -> Split:
    random = np.random.default_rng(4)
    x = random.normal(size=(ROWS + 10, 3))
    y = 5 + 3 * np.sin(x).sum(1) + 0.1 * random.normal(size=ROWS + 10)
    return Split("regression", x[:ROWS], y[:ROWS], x[ROWS:], y[ROWS:])


def run_one(job: Job) -> tuple[Selection | None, Outcome]:
    events = [event for _, event in run_jobs([job])]
    (outcome,) = (event for event in events if isinstance(event, Outcome))
    assert outcome.status == "ok", outcome.message
    return next((event for event in events if isinstance(event, Selection)), None), outcome


def member_on(rows: Rows, split: Split, method: Any, seed: int, training: Training = TRAINING) -> Any:
    network = network_factory(MLPNetwork((6,)), split.problem)
    return Member(method, split.problem, network, repr(PROTOCOL.network), training, rows, seed)


def gaussian_scores(observed: Any, draws: Any) -> dict[str, float]:
    """Return log score and CRPS of a Gaussian with the moments of the draws and the best noise, by scipy."""
    mean, variance = draws.mean(0), draws.var(0, ddof=1)
    noises = np.geomspace(1e-4, 100.0, 4001)
    totals = variance[:, None] + noises
    log_scores = -norm.logpdf(observed[:, None], mean[:, None], np.sqrt(totals)).mean(0)
    best = noises[log_scores.argmin()]
    assert fit_noise_variance(observed, draws) == pytest.approx(best, rel=0.01)
    z, scale = (observed - mean) / np.sqrt(variance + best), np.sqrt(variance + best)
    crps = scale * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    return {"nll": float(log_scores.min()), "crps": float(crps.mean())}


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["nll", "crps"])
def test_a_search_by_a_score_is_what_a_loop_over_rates_and_folds_finds(criterion: Any, split: Split) -> None:
    protocol = replace(PROTOCOL, search_by=criterion)
    selection, outcome = run_one(Job(MCDropout(), protocol, split, SEED, space={"rate": RATES}))
    assert selection is not None
    for c, rate in enumerate(RATES):
        for number, fold in enumerate(folds(ROWS, 2, SEED)):
            data, seed = prepare(split, protocol, SEED, "cpu", fold), stream(SEED, "fold", number)
            one = member_on(data.rows, split, MCDropout(rate), seed)
            ((_, fitted),) = fit([one])
            x = data.rows.x[data.rows.validation]
            drawing = Drawing(one.method, [fitted], "regression", x, stream(seed, "held out"), 20)
            means = draw(drawing)[..., 0].astype(np.float64) * data.target_std + data.target_mean
            by_hand = gaussian_scores(split.train_y[data.rows.validation.numpy()], means)[criterion]
            assert selection.losses[c][number] == pytest.approx(by_hand, rel=1e-3)
            assert selection.best_epochs[c][number] == fitted.best_epoch <= fitted.epochs
    assert outcome.training["search"][f"validation_{criterion}"] == min(selection.means)
    again = Selection.from_json(selection.to_json())
    assert (again.losses, again.best_epochs, again.criterion) == (selection.losses, selection.best_epochs, criterion)


def test_a_search_by_crps_judges_a_method_without_spread_by_its_noise(split: Split) -> None:
    protocol = replace(PROTOCOL, search_by="crps", grid={"learning_rate": [0.01, 1e-5]})
    selection, _ = run_one(Job(Deterministic(), protocol, split, SEED))
    assert selection is not None
    data, seed = prepare(split, protocol, SEED, "cpu", folds(ROWS, 2, SEED)[0]), stream(SEED, "fold", 0)
    ((_, fitted),) = fit([member_on(data.rows, split, Deterministic(), seed)])
    x, observed = data.rows.x[data.rows.validation], split.train_y[data.rows.validation.numpy()]
    drawing = Drawing(Deterministic(), [fitted], "regression", x, seed, 1)
    errors = observed - (draw(drawing)[0, :, 0].astype(float) * data.target_std + data.target_mean)
    scale = np.sqrt((errors**2).mean())  # the noise that fits best
    z = errors / scale
    crps = scale * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert selection.losses[0][0] == pytest.approx(crps.mean(), rel=1e-4)


@pytest.mark.slow
def test_a_search_by_the_mixture_log_score_is_that_of_the_stated_noise_on_one_hold_out(split: Split) -> None:
    """Gal and Ghahramani's search: rate and noise by the log likelihood of the mixture, then a fit on all rows."""
    protocol = replace(PROTOCOL, search_by="nll_mixture", folds=1, validation=0.2, refit=True)
    noises = [0.05, 0.3, 2.0]
    selection, outcome = run_one(Job(MCDropoutPrior(), protocol, split, SEED, space={"noise": noises}))
    assert selection is not None
    train, held, _ = held_out(ROWS, protocol, SEED)
    data, seed = prepare(split, protocol, SEED, "cpu", (train, held)), stream(SEED, "fold", 0)
    observed = split.train_y[held.numpy()]
    for c, noise in enumerate(noises):
        one = member_on(data.rows, split, MCDropoutPrior(noise=noise), seed)
        ((_, fitted),) = fit([one])
        drawn = draw(
            Drawing(one.method, [fitted], "regression", data.rows.x[held], stream(seed, "held out"), 20)
        ).astype(float)
        means = drawn[..., 0] * data.target_std + data.target_mean
        rows = logsumexp(norm.logpdf(observed, means, noise * data.target_std), axis=0) - np.log(20)
        assert selection.losses[c][0] == pytest.approx(-rows.mean(), rel=1e-4)
    assert selection.best is not None
    assert outcome.training["search"]["chosen"] == {"noise": noises[selection.best]}
    assert "nll_mixture" in outcome.metrics  # of the noise that was stated: no row is left to fit another on


@pytest.mark.slow
def test_the_criterion_decides(split: Split) -> None:
    chosen = {}
    criteria: Any = ("loss", "nll", "nll_mixture", "crps")
    for criterion in criteria:
        job = Job(MCDropout(), replace(PROTOCOL, search_by=criterion), split, SEED, space={"rate": RATES})
        selection, _ = run_one(job)
        assert selection is not None
        chosen[criterion] = selection.losses
    assert len({repr(losses) for losses in chosen.values()}) == 4


@dataclass(frozen=True)
class Shown(Deterministic):
    """Shows its weights, and keeps another spread than it trains with."""

    level: float = 0.0

    def inspect(self, net: Net) -> dict[str, Tensor]:
        return dict(net.params)


@pytest.mark.slow
@pytest.mark.parametrize("grid", [{}, {"learning_rate": [0.01, 1e-5]}], ids=["one configuration", "two"])
@pytest.mark.parametrize("patience", [0, 2])
def test_a_refit_is_a_training_on_all_rows_for_the_epochs_of_the_folds(grid: Any, patience: int, split: Split) -> None:
    training = replace(TRAINING, patience=patience)
    protocol = replace(PROTOCOL, training=training, grid=grid, refit=True)
    selection, outcome = run_one(Job(Shown(), protocol, split, SEED))
    epochs = 8
    if patience:
        assert selection is not None
        epochs = round(sum(selection.best_epochs[0]) / 2)
        assert selection.best == 0
    assert outcome.training["epochs"] == [epochs]
    data = prepare(
        split, replace(protocol, refit=False, validation=0.0, training=replace(training, patience=0)), 0, "cpu"
    )
    assert data.rows.train.tolist() == list(range(ROWS))
    ((_, fitted),) = fit([member_on(data.rows, split, Shown(), SEED, replace(training, epochs=epochs, patience=0))])
    for name, value in fitted.params.items():
        np.testing.assert_array_equal(outcome.arrays[f"inspect/{name}"], value)
    assert "nll" not in outcome.metrics  # no row is left to fit noise on
    _, calibrated = run_one(Job(Shown(), replace(protocol, calibration=0.2), split, SEED))
    assert "nll" in calibrated.metrics


def test_a_search_with_a_network_of_its_own_whose_folds_stop_together(split: Split) -> None:
    """As public code does: wider networks in the search, one epoch fewer in the fit on all rows."""
    training = replace(TRAINING, epochs=20, patience=1, validate="mean:5")
    protocol = replace(
        PROTOCOL,
        training=training,
        grid={"learning_rate": [0.1, 0.001]},
        refit=True,
        refit_less=1,
        stop_together=True,
        search_network={"hidden": [9]},
        scale_by="each-part",
    )
    selection, outcome = run_one(Job(Shown(), protocol, split, SEED))
    assert selection is not None
    for epochs, best, losses in zip(selection.epochs, selection.best_epochs, selection.losses, strict=True):
        assert len(set(epochs)) == len(set(best)) == len(set(losses)) == 1
    number = selection.best or 0
    assert outcome.training["epochs"] == [selection.best_epochs[number][0] - 1]
    assert outcome.metrics["cv_mse"] == min(selection.means)
    assert outcome.arrays["inspect/layers.0.weight"].shape == (6, 3)
    # Trained again by hand: the wider network on the rows of each fold, stopped by the mean.
    members = []
    for k, fold in enumerate(folds(ROWS, 2, SEED)):
        rows = prepare(split, protocol, SEED, "cpu", fold).rows
        new_network = network_factory(MLPNetwork((9,)), split.problem)
        rate = replace(training, learning_rate=selection.tried[number].training["learning_rate"])
        seed = stream(SEED, "fold", k)
        own = Member(Shown(), split.problem, new_network, "9", rate, rows, seed, team=Team("only", 2))
        members.append(own)
    fitted = dict(fit(members))
    assert fitted[0].validation_loss == fitted[1].validation_loss == pytest.approx(outcome.metrics["cv_mse"], rel=1e-5)


def test_the_best_epoch_is_the_one_whose_weights_were_kept(split: Split) -> None:
    rows = prepare(split, PROTOCOL, SEED, "cpu").rows
    ((_, fitted),) = fit([member_on(rows, split, Deterministic(), SEED, replace(TRAINING, learning_rate=0.3))])
    ((_, shorter),) = fit(
        [member_on(rows, split, Deterministic(), SEED, replace(TRAINING, learning_rate=0.3, epochs=fitted.best_epoch))]
    )
    assert fitted.best_epoch < fitted.epochs
    assert all(torch.equal(shorter.params[name], value) for name, value in fitted.params.items())


@pytest.mark.parametrize("criterion", ["crps", "nll_mixture"])
def test_what_does_not_go_together_is_refused(tmp_path: Path, criterion: str) -> None:
    with pytest.raises(ValidationError, match="refit trains for the epochs that a search has found"):
        Protocol(refit=True)
    path = tmp_path / "classes.toml"
    text = tiny_suite("[datasets.digits]\n", search="grid", search_by=criterion)
    path.write_text(text, "utf-8")
    planned = list(plan(load_suite(str(path)).only(["digits"], ["deterministic"]), Registry()))
    (refused,) = (each for each in planned if isinstance(each, Refused))
    assert f'search_by = "{criterion}" is for regression' in refused.reason
    assert json.dumps("nll") in refused.reason
