"""The two sizes of a compiled stack give the same bits, for every built-in method that trains in a stack."""

import os
from dataclasses import replace

import pytest
import torch

from bench.api import Method, Problem, Task
from bench.networks.mlp import MLPNetwork
from bench.plugins.registry import Registry
from bench.spec.protocol import Training
from bench.training.compiled_graphs import compiler_found
from bench.training.fit import fit
from bench.training.forms import COMPILED_SLOTS, WIDE_SLOTS, Form
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, Rows
from bench.training.network_factory import network_factory

METHODS = Registry().plugins("method")
FEATURES, TRAINED, HELD, MEMBERS = 13, 300, 30, 9


def members(method: Method, task: Task, slots: int) -> list[Member]:
    """Return members of differing learning rates; the last step of an epoch is of few rows."""
    source = torch.Generator().manual_seed(0)
    x = torch.randn(TRAINED + HELD, FEATURES, generator=source)
    y = torch.sin(x.sum(1)) if task == "regression" else (x.sum(1) > 0).long() + (x[:, 0] > 1).long()
    held = torch.arange(TRAINED, TRAINED + HELD)
    problem, network = Problem(task, (FEATURES,), 1 if task == "regression" else 3), MLPNetwork((50, 50))
    rows = Rows(problem.task, x, y, torch.arange(TRAINED), held)
    settings = Training(epochs=4, patience=3, batch=32, weight_decay=1e-5, partial_batch=True)
    rates = [replace(settings, learning_rate=1e-4 * (1 + n)) for n in range(MEMBERS)]
    new_network = network_factory(network, problem)
    form = Form(compiled=True, slots=slots)
    return [Member(method, problem, new_network, repr(network), t, rows, n, form) for n, t in enumerate(rates)]


def trained(method: Method, task: Task, slots: int) -> dict[int, Fitted]:
    return dict(fit(members(method, task, slots), Limits(compiling=True)))


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("UQBENCH_THOROUGH"), reason="every method compiles for seconds: make thorough")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own modules
@pytest.mark.skipif(not compiler_found(), reason="no C++ compiler: compiled graphs cannot be tried here")
@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("name", METHODS)
def test_a_network_is_the_same_in_a_narrow_and_in_a_wide_stack(name: str, task: Task) -> None:
    method = Registry().make("method", name, {})
    if not isinstance(method, Method):
        pytest.skip("it does not train in a stack")
    narrow, wide = (trained(method, task, slots) for slots in (COMPILED_SLOTS, WIDE_SLOTS))
    for number, one in narrow.items():
        for part in ("params", "buffers", "memory"):
            for key, tensor in getattr(one, part).items():
                assert torch.equal(tensor, getattr(wide[number], part)[key]), (part, key)
