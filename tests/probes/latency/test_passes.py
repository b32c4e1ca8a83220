"""One timed pass: what lies between the marks, in which order, and that all ways draw the same functions."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.api import Method, Problem
from bench.methods.deep_ensemble import DeepEnsemble
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.networks.mlp import MLPNetwork
from bench.probes.latency.modes import MODES
from bench.probes.latency.passes import Workload, timed_pass
from bench.spec.protocol import Training
from bench.training.drawing import Drawing, draw
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, Rows, start
from bench.training.network_factory import network_factory


class FakeClock:
    """A clock that stands still but for what is said to take time; it keeps a log."""

    def __init__(self) -> None:
        self.now, self.log = 0.0, list[str]()

    def spend(self, milliseconds: float, what: str) -> None:
        self.now += milliseconds
        self.log.append(what)

    def wait(self) -> None:
        self.log.append("wait")

    def mark(self) -> float:
        self.log.append("mark")
        return self.now

    def milliseconds(self, start: float, end: float) -> float:
        self.log.append("read")
        return end - start


def pass_of(clock: FakeClock, rows: int = 5, batch: int = 2) -> Workload:
    def scaled(x: Any) -> Tensor:
        clock.spend(10.0, "scale")
        return torch.from_numpy(x)

    return Workload(np.zeros((rows, 3), dtype=np.float32), scaled, batch, "cpu")


def test_forward_has_the_draws_alone_and_total_has_all() -> None:
    clock = FakeClock()
    sizes = []

    def evaluate(x: Tensor) -> Tensor:
        sizes.append(len(x))
        clock.spend(100.0, "draw")
        return torch.zeros(4, len(x), 1)

    spans = timed_pass(pass_of(clock), evaluate, clock)
    assert sizes == [2, 2, 1]
    assert (spans.forward, spans.transfer, spans.total) == (300.0, 300.0, 330.0)


def test_the_device_is_waited_for_before_the_first_mark_and_before_anything_is_read() -> None:
    clock = FakeClock()

    def evaluate(x: Tensor) -> Tensor:
        clock.spend(1.0, "draw")
        return torch.zeros(4, len(x), 1)

    timed_pass(pass_of(clock, rows=2), evaluate, clock)
    assert clock.log[:9] == ["wait", "mark", "scale", "mark", "mark", "draw", "mark", "mark", "mark"]
    assert clock.log[9] == "wait"
    assert set(clock.log[10:]) == {"read"}


def test_gradients_are_off_and_the_precision_is_the_one_asked_for() -> None:
    seen = []

    def evaluate(x: Tensor) -> Tensor:
        seen.append((torch.is_grad_enabled(), torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype))
        return torch.zeros(1, len(x), 1)

    load = pass_of(FakeClock(), rows=2)
    for dtype in ("float32", "bfloat16"):
        timed_pass(Workload(load.rows, load.scaled, 2, "cpu", dtype), evaluate, FakeClock())
    assert seen == [(False, torch.float32), (False, torch.bfloat16)]


def job(method: Method, count: int, task: Any = "regression") -> Drawing:
    x = torch.randn(30, 8, generator=torch.Generator().manual_seed(0))
    outputs = 1 if task == "regression" else 3
    problem, network = Problem(task, (8,), outputs), MLPNetwork((10,))
    rows = Rows(task, x, torch.zeros(30), torch.arange(30), torch.arange(0))
    networks = []
    for seed in range(count):
        first = start(Member(method, problem, network_factory(network, problem), "", Training(), rows, seed))
        networks.append(Fitted(first.module, first.params, first.buffers, first.memory))
    return Drawing(method, networks, task, x, 7, 6)


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("method", "networks"),
    [(MCDropout(), 1), (MCDropout(per_row=True), 1), (MCNIFixed(), 1), (MCNIFixed(), 2), (DeepEnsemble(), 6)],
    ids=["mask", "masks", "noise", "noisy-ensemble", "ensemble"],
)
def test_every_mode_draws_the_same_functions(
    mode: str, method: Method, networks: int, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its speed is the compiler's, its numbers the graph's.
    monkeypatch.setattr(torch, "compile", lambda graph, **options: graph)
    drawing = job(method, networks, task)
    with torch.no_grad():
        values = MODES[mode](drawing, Limits()).evaluate(drawing.x)
    assert values.shape == (6, 30, 1 if task == "regression" else 3)
    np.testing.assert_allclose(values.numpy(), draw(drawing), atol=1e-5)


def test_the_cuts_of_a_mode_are_told() -> None:
    assert MODES["naive"](job(MCNIFixed(), 1), Limits()).cuts.draws == 1
    assert MODES["engine"](job(MCNIFixed(), 1), Limits()).cuts.draws == 6
