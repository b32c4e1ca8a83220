"""A searched option must change what a search sees: the validation loss after a training."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.api import Method, Problem
from bench.networks.mlp import MLPNetwork
from bench.spec.protocol import Training
from bench.training.fit import fit
from bench.training.member import Member, Rows
from bench.training.network_factory import network_factory
from bench.training.validation import held_out_loss
from tests.fixtures.training import NETWORK_METHODS

SEARCHED = [(name, option) for name, method in NETWORK_METHODS.items() for option in method.search_space]


def losses(methods: Sequence[Method]) -> list[float]:
    """The losses of a training by each, from the same seed."""
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    problem, network, y = Problem("regression", (3,), 1), MLPNetwork((8,)), torch.sin(x.sum(1))
    if methods[0].skip(problem):
        problem, y = Problem("classification", (3,), 2), (y > 0).long()
    rows = Rows(problem.task, x, y, torch.arange(40), torch.arange(40, 60))
    training = Training(epochs=4, batch=10, learning_rate=0.01)
    new = network_factory(network, problem)
    members = [Member(method, problem, new, repr(network), training, rows, seed=1) for method in methods]
    fitted = dict(fit(members))
    return [held_out_loss(member, fitted[number]) for number, member in enumerate(members)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "option"), SEARCHED)
def test_a_searched_option_changes_the_validation_loss(name: str, option: str) -> None:
    values = NETWORK_METHODS[name].search_space[option]
    method: Any = NETWORK_METHODS[name]
    made: list[Any] = [replace(method, **{option: value}) for value in (values[0], values[-1])]
    first, last = losses(made)
    assert first != last
