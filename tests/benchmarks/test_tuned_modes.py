"""Does measuring find on this machine what docs/latency.md says about it?

Draws of an MLP are fastest together, those of a ResNet8 at many rows one by one and at single rows together. At T = 100
the fixed mode of an MLP is 6 (MC dropout) and 4 (MCNI) times as fast as its loop.
"""

import time
from functools import partial
from statistics import median
from typing import Any

import pytest
import torch

from bench.api import Method, Problem
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.networks.mlp import MLPNetwork
from bench.networks.resnet8 import ResNet8Network
from bench.probes.latency.clock import HostClock
from bench.probes.latency.modes import MODES
from bench.probes.latency.tuning import tuned
from bench.spec.protocol import Training
from bench.training.drawing import Drawing
from bench.training.limits import Limits, threads
from bench.training.member import Fitted, Member, Rows, start
from bench.training.network_factory import network_factory
from tests.benchmarks.paired_times import faster, in_turns

# Other processes on the machine do not count.
CLOCK = HostClock(time.process_time_ns)


def job(method: Method, problem: Problem, network: Any, rows: int, draws: int) -> Drawing:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(rows, *problem.inputs, generator=source)
    y = torch.zeros(rows, dtype=torch.long if problem.task == "classification" else torch.float32)
    data = Rows(problem.task, x, y, torch.arange(rows), torch.arange(0))
    first = start(Member(method, problem, network_factory(network, problem), "", Training(), data, 0))
    fitted = Fitted(first.module, first.params, first.buffers, first.memory)
    return Drawing(method, [fitted], problem.task, x, 7, draws)


def tabular(method: Method, draws: int) -> Drawing:
    return job(method, Problem("regression", (8,), 1), MLPNetwork((50,)), 500, draws)


def image(method: Method, rows: int) -> Drawing:
    return job(method, Problem("classification", (3, 32, 32), 10), ResNet8Network(), rows, 10)


@pytest.mark.parametrize("method", [MCDropout(), MCNIFixed()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("draws", [10, 50, 100])
def test_draws_of_an_mlp_are_made_together(method: Method, draws: int) -> None:
    with torch.no_grad(), threads(1):
        _, choice = tuned(tabular(method, draws), Limits(), 10.0, CLOCK)
    print(choice)
    assert choice.chosen.endswith(f"{draws} draws per call")


@pytest.mark.parametrize("method", [MCDropout(), MCNIFixed()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(("rows", "expected"), [(100, "one by one"), (1, "10 draws per call")])
def test_draws_of_a_resnet_are_made_one_by_one_but_at_single_rows(method: Method, rows: int, expected: str) -> None:
    with torch.no_grad(), threads(1):
        _, choice = tuned(image(method, rows), Limits(), 30.0, CLOCK)
    print(choice)
    assert choice.chosen.endswith(expected)


@pytest.mark.parametrize(("method", "least"), [(MCDropout(), 6.0), (MCNIFixed(), 4.0)], ids=["dropout", "noise"])
def test_a_hundred_draws_of_an_mlp_against_the_loop(method: Method, least: float) -> None:
    drawing = tabular(method, 100)
    ways = {name: partial(MODES[name](drawing, Limits()).evaluate, drawing.x) for name in ("engine", "naive")}
    with torch.no_grad():
        times = in_turns(ways, "naive")
    value, text = faster(times, "engine", "naive")
    engine, naive = (float(median(times[name])) for name in ways)
    print(f"engine {engine:.1f} ms, loop {naive:.1f} ms, {text} in {len(times['naive'])} rounds")
    assert value >= least
