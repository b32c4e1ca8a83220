"""Small problems and members for the tests of the engine."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from bench.api import Method, Problem
from bench.networks.factory import network_factory
from bench.spec.protocol import Architecture, Training
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, Rows, finished
from bench.training.stack import fit

MakeMember = Callable[..., Member]


def sine_rows(count: int = 120, held: int = 20, features: int = 8) -> Rows:
    source = torch.Generator().manual_seed(11)
    x = torch.randn(count, features, generator=source)
    y = torch.sin(x.sum(1)) + 0.1 * torch.randn(count, generator=source)
    return Rows("regression", x, y, torch.arange(count - held), torch.arange(count - held, count))


def image_rows(count: int = 48, classes: int = 4) -> Rows:
    source = torch.Generator().manual_seed(12)
    y = torch.randint(0, classes, (count,), generator=source)
    x = torch.randn(count, 3, 8, 8, generator=source) + y[:, None, None, None] / 2
    return Rows("classification", x, y, torch.arange(count - 8), torch.arange(count - 8, count))


@pytest.fixture
def member() -> MakeMember:
    """Return what makes a member on shared rows: `member(method, seed, rows=..., network=..., **training)`."""
    shared = {"regression": sine_rows(), "classification": image_rows()}

    def make(
        method: Method, seed: int = 0, rows: Rows | None = None, network: Architecture | None = None, **training: Any
    ) -> Member:
        network = network or Architecture(hidden=[20])
        rows = rows or shared["regression" if network.kind == "mlp" else "classification"]
        outputs = 1 if rows.task == "regression" else int(rows.y.max()) + 1
        problem = Problem(rows.task, tuple(rows.x.shape[1:]), outputs)
        settings = Training(**{"epochs": 5, "batch": 16, "learning_rate": 0.01, **training})
        return Member(method, problem, network_factory(network, problem), repr(network), settings, rows, seed)

    return make


def fit_all(members: list[Member], limits: Limits = Limits()) -> list[Fitted]:
    done = dict(fit(members, limits))
    return [finished(one, done[number]) for number, one in enumerate(members)]


@pytest.fixture
def fit_in_order() -> Callable[..., list[Fitted]]:
    """Return what fits members and gives their results in the members' order."""
    return fit_all
