"""How much faster the stack trains than one model after another, with both sides in one run.

    make bench

Prints microseconds a member-step (one network, one batch) and ratios. Set-up (tracing, compiling) is told apart: it is
paid once a graph, however long the training is. The loop is an ordinary PyTorch loop over one model; its cost per step
is measured on some hundreds of steps between the rounds of the stack, so that a busy machine disturbs both alike.
"""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bench.api import Method, Problem
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.networks.mlp import MLPNetwork
from bench.spec.protocol import Training
from bench.training.compiled_graphs import compiler_found
from bench.training.fit import fit
from bench.training.limits import Limits, threads
from bench.training.member import Member, Rows
from bench.training.network_factory import network_factory
from bench.training.stack import Stack

TRAIN_ROWS, FEATURES, BATCH = 7372, 8, 32
ROUNDS = 3


def problem_rows() -> Rows:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(TRAIN_ROWS, FEATURES, generator=source)
    y = torch.sin(x.sum(1)) + 0.1 * torch.randn(TRAIN_ROWS, generator=source)
    return Rows("regression", x, y, torch.arange(TRAIN_ROWS), torch.arange(0))


def members(method: Method, count: int, epochs: int, rows: Rows) -> list[Member]:
    problem, network = Problem("regression", (FEATURES,), 1), MLPNetwork((50,))
    return [
        Member(
            method,
            problem,
            network_factory(network, problem),
            repr(network),
            Training(epochs=epochs, batch=BATCH, learning_rate=1e-4 * (1 + n % 20), weight_decay=1e-5),
            rows,
            n,
        )
        for n in range(count)
    ]


def loop_step(rows: Rows, steps: int, fused: bool) -> float:
    """Seconds a step of an ordinary loop over one model, at the thread count that suits it best (one)."""
    module = nn.Sequential(nn.Linear(FEATURES, 50), nn.ReLU(), nn.Linear(50, 1))
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3, weight_decay=1e-5, fused=fused)
    order = torch.randperm(TRAIN_ROWS).split(BATCH)[: TRAIN_ROWS // BATCH]
    with threads(1):
        began = time.perf_counter()
        for step in range(steps):
            chosen = order[step % len(order)]
            optimizer.zero_grad()
            F.mse_loss(module(rows.x[chosen])[:, 0], rows.y[chosen]).backward()
            optimizer.step()
        return (time.perf_counter() - began) / steps


@dataclass
class Timing:
    """Seconds of every epoch a stack trained, and its busy slots then."""

    epochs: list[tuple[float, int]]

    @property
    def per_member_step(self) -> float:
        """Median over the epochs after the first, which traces and compiles."""
        steps = TRAIN_ROWS // BATCH
        return median(seconds / steps / busy for seconds, busy in self.epochs[1:])

    @property
    def set_up(self) -> float:
        """What the first epoch took more than the others."""
        seconds = [s for s, _ in self.epochs]
        return seconds[0] - median(seconds[1:])


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Timing:
    timing = Timing([])
    train = Stack._train_turn

    def clocked(stack: Stack) -> Any:
        began = time.perf_counter()
        result = train(stack)
        seconds = (time.perf_counter() - began) / len(result[0])  # of one epoch of the turn
        timing.epochs.append((seconds, sum(slot is not None for slot in stack.slots)))
        return result

    monkeypatch.setattr(Stack, "_train_turn", clocked)
    return timing


CASES = [
    pytest.param(Deterministic(), 120, True, id="deterministic-120-compiled"),
    pytest.param(Deterministic(), 600, True, id="deterministic-600-compiled"),
    pytest.param(Deterministic(), 120, False, id="deterministic-120-traced"),
    pytest.param(MCNIFixed(), 120, True, id="mcni-fixed-120-compiled"),
    pytest.param(MCDropout(), 120, True, id="mc-dropout-120-compiled"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("method", "count", "compiling"), CASES)
def test_stack_against_loop(benchmark: Any, timed: Timing, method: Method, count: int, compiling: bool) -> None:
    if compiling and not compiler_found():
        pytest.skip("no C++ compiler on this machine")
    rows = problem_rows()
    loop_step(rows, 50, fused=True)  # warm-up
    plain: list[float] = []
    fused: list[float] = []
    costs: list[float] = []
    set_up: list[float] = []

    def one_round() -> None:
        plain.append(loop_step(rows, 300, fused=False))
        fused.append(loop_step(rows, 300, fused=True))
        timed.epochs.clear()
        list(fit(members(method, count, 4, rows), Limits(compiling=compiling)))
        costs.append(timed.per_member_step)
        set_up.append(timed.set_up)
        plain.append(loop_step(rows, 300, fused=False))
        fused.append(loop_step(rows, 300, fused=True))

    benchmark.pedantic(one_round, rounds=ROUNDS, iterations=1)
    stack, loop, loop_fused = median(costs), median(plain), median(fused)
    benchmark.extra_info.update(stack_us=stack * 1e6, loop_us=loop * 1e6, ratio=loop / stack)
    name = type(method).__name__
    print(
        f"\n{name}, {count} members{', compiled' if compiling else ''}: {stack * 1e6:.1f} us a member-step, set-up "
        f"{max(set_up):.1f} s; loop (no noise in it) {loop * 1e6:.0f} us, with fused Adam {loop_fused * 1e6:.0f} us: "
        f"{loop / stack:.0f}x and {loop_fused / stack:.0f}x"
    )


@pytest.mark.filterwarnings("ignore")
def test_cost_of_a_member_step_stays_flat(benchmark: Any, timed: Timing) -> None:
    rows = problem_rows()
    costs: dict[int, list[float]] = {120: [], 2400: []}

    def one_round() -> None:
        for count, found in costs.items():
            timed.epochs.clear()
            list(fit(members(Deterministic(), count, 3, rows), Limits(compiling=compiler_found())))
            found.append(timed.per_member_step)

    benchmark.pedantic(one_round, rounds=2, iterations=1)
    few, many = (median(found) for found in costs.values())
    print(f"\n120 members {few * 1e6:.1f} us, 2400 members {many * 1e6:.1f} us a member-step: growth {many / few:.2f}x")


# `ru_maxrss` of a child starts at its parent's; the kernel's own high-water mark does not.
MEMORY = """
import re, sys
sys.path.insert(0, sys.argv[2])
from test_stack_speed import Deterministic, fit, members, problem_rows
def peak():
    return re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
for _ in fit(members(Deterministic(), 2, 1, problem_rows())):
    pass
before = peak()
for _ in fit(members(Deterministic(), int(sys.argv[1]), 1, problem_rows())):
    pass
print(before, peak())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_peak_memory_is_bounded_by_the_slots(benchmark: Any) -> None:
    def peak(count: int) -> tuple[float, float]:
        command = [sys.executable, "-c", MEMORY, str(count), str(Path(__file__).parent)]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        before, after = (int(part) / 1024 for part in told.stdout.split())
        return before, after

    found = benchmark.pedantic(lambda: {count: peak(count) for count in (120, 600, 2400)}, rounds=1, iterations=1)
    told = ", ".join(f"{count} members {before:.0f} -> {after:.0f} MiB" for count, (before, after) in found.items())
    print(f"\npeak memory of a process with 2 members, then with all: {told}")
