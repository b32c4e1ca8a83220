"""Evidential classification: its loss against simulation and torch's Dirichlet, and its closed form against samples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Dirichlet as TorchDirichlet
from torch.distributions import kl_divergence

from bench.api import Array, Batch, Dirichlet, Forecast, Net, Probabilities, Problem
from bench.api.tape import BlankTape
from bench.methods.evidential_classification import (
    EPOCHS,
    EvidentialClassification,
    dirichlet,
    expected_squares,
    wrong_evidence,
)
from bench.metrics import score
from bench.networks.mlp import MLP

SOURCE = torch.Generator().manual_seed(12)
CONCENTRATION = 1 + 4 * torch.rand(6, 3, generator=SOURCE, dtype=torch.double)
Y = torch.tensor([0, 1, 2, 2, 1, 0])


def test_the_squares_are_those_of_simulated_probabilities() -> None:
    random = np.random.default_rng(0)
    p = np.stack([random.dirichlet(row, 200_000) for row in CONCENTRATION.numpy()], 1)
    simulated = np.square(np.eye(3)[Y] - p).sum(-1).mean()
    assert float(expected_squares(CONCENTRATION, Y)) == pytest.approx(simulated, rel=5e-3)


def test_the_divergence_is_that_of_the_wrong_classes() -> None:
    without = CONCENTRATION.clone()
    without[torch.arange(6), Y] = 1
    expected = kl_divergence(TorchDirichlet(without), TorchDirichlet(torch.ones_like(without))).mean()
    torch.testing.assert_close(wrong_evidence(CONCENTRATION, Y), expected)


def test_the_weight_of_the_divergence_grows_over_the_first_epochs() -> None:
    module = MLP(2, [5], 3)
    params = dict(module.named_parameters())
    x = torch.randn(6, 2, generator=SOURCE)
    batch = Batch("classification", x, Y, torch.tensor(6.0))
    method = EvidentialClassification(penalty=0.4, annealing=8.0)
    concentration = dirichlet(Net(module, params, {})(x))
    for epochs, share in ((0, 0.0), (2, 0.25), (8, 1.0), (50, 1.0)):
        net = Net(module, params, {}, {EPOCHS: torch.tensor(float(epochs))})
        added = method.loss(net, batch, BlankTape()) - expected_squares(concentration, Y)
        torch.testing.assert_close(added, 0.4 * share * wrong_evidence(concentration, Y), atol=1e-6, rtol=1e-4)


def test_epochs_are_counted_and_far_from_the_rows_there_is_less_evidence_for_any_class(
    train: Callable[..., Any], draws_of: Callable[..., Array]
) -> None:
    y = torch.arange(150) % 3
    centres = torch.tensor([[0.0, 2.0], [-1.8, -1.0], [1.8, -1.0]])
    x = centres[y] + 0.3 * torch.randn(150, 2, generator=SOURCE)
    method = EvidentialClassification()
    (net,) = train(method, x, y, epochs=30, batch=30, learning_rate=0.02)
    assert float(net.memory[EPOCHS]) == 30
    stated = method.predict(draws_of(method, [net], torch.cat([centres, torch.zeros(1, 2)]), 1, True), "classification")
    assert isinstance(stated, Dirichlet)
    assert stated.probabilities[0, :3].argmax(-1).tolist() == [0, 1, 2]
    assert stated.strength[0, 3] < 0.7 * stated.strength[0, :3].min()  # between the classes, where no rows are


def test_closed_form_and_samples_agree_on_every_score() -> None:
    """T probabilities drawn from the Dirichlet are T functions; their mean and disagreement tend to its own."""
    names = ("nll_categorical", "brier", "predictive_entropy", "mutual_information")
    closed = Dirichlet(CONCENTRATION.numpy()[None])
    exact = score(Forecast.of(closed, Y.numpy()), names)
    assert exact.keys() == set(names)
    random = np.random.default_rng(1)
    repeats = []
    for _ in range(12):
        drawn = np.stack([random.dirichlet(row, 5000) for row in CONCENTRATION.numpy()], 1)
        repeats.append(score(Forecast.of(Probabilities(drawn), Y.numpy()), names))
    for name, value in exact.items():
        sampled = np.array([values[name] for values in repeats])
        error = sampled.std(ddof=1) / np.sqrt(len(sampled))
        assert abs(sampled.mean() - value) <= 4 * error, f"{name}: {value} and {sampled.mean()} +- {error}"
        assert error < 0.01, name


def test_numbers_and_impossible_options_are_refused() -> None:
    assert "classes" in str(EvidentialClassification().skip(Problem("regression", (3,), 1)))
    with pytest.raises(ValueError, match="penalty and annealing must be at least 0"):
        EvidentialClassification(penalty=-1.0)
