"""Training and drawing in one line each, for the tests of the methods."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from bench.api import Array, Method, Problem
from bench.networks.factory import network_factory
from bench.spec.protocol import Architecture, Training
from bench.training.drawing import Drawing, draw
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, Rows, finished
from bench.training.stack import fit

Fit = Callable[..., list[Fitted]]
Draw = Callable[..., Array]


def fitted(
    method: Method,
    x: Tensor,
    y: Tensor,
    *,
    held: int = 0,
    hidden: list[int] | None = None,
    kind: str = "mlp",
    seeds: int = 1,
    **training: Any,
) -> list[Fitted]:
    """Train `seeds` networks on the rows, the last `held` of which validate, and let the method finish them."""
    task = "regression" if y.is_floating_point() else "classification"
    rows = Rows(task, x, y, torch.arange(len(x) - held), torch.arange(len(x) - held, len(x)))  # type: ignore[arg-type]
    outputs = 1 if task == "regression" else int(y.max()) + 1
    problem = Problem(rows.task, tuple(x.shape[1:]), outputs)
    network = Architecture(kind=kind, hidden=[12] if hidden is None else hidden)  # type: ignore[arg-type]
    settings = Training(**{"epochs": 3, "batch": 10, "learning_rate": 0.01, **training})
    new = network_factory(network, problem)
    members = [Member(method, problem, new, repr(network), settings, rows, seed) for seed in range(seeds)]
    # One network alone needs no stack, and no time to record its graph.
    done = dict(fit(members, Limits(path="plain" if seeds == 1 else "stack")))
    return [finished(one, done[number]) for number, one in enumerate(members)]


def drawn(method: Method, networks: list[Fitted], x: Tensor, draws: int, classify: bool = False) -> Array:
    """Return the draws `[T, rows, outputs]` in double precision."""
    job = Drawing(method, networks, "classification" if classify else "regression", x, 0, draws)
    values: Array = draw(job).astype(float)
    return values


@pytest.fixture(scope="session")
def train() -> Fit:
    """Return `fitted`."""
    return fitted


@pytest.fixture(scope="session")
def draws_of() -> Draw:
    """Return `drawn`."""
    return drawn
