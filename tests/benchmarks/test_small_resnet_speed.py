"""Training steps of small ResNets: one by one or several in one graph, eager or compiled.

    python -m pytest tests/benchmarks/test_small_resnet_speed.py -s -o addopts=--import-mode=importlib

ResNet8 of width 4 has about 5,000 parameters: its cost is not arithmetic but memory traffic and
overhead, so it is not clear how it is trained best. Compiled steps of few channels use convolutions of our own, which
one of the ways leaves out. Prints the milliseconds of processor time of one step of one
network, batches of 128 images of 32 x 32 pixels, on one thread. All ways are timed in turns; compiling is not counted.
"""

import time
from collections.abc import Sequence
from statistics import median

import pytest
import torch

from bench.api import Problem
from bench.methods.deterministic import Deterministic
from bench.networks.resnet8 import ResNet8Network
from bench.spec.protocol import Training
from bench.training import compiled_graphs, small_convolutions
from bench.training.compiled_graphs import compiler_found
from bench.training.fit import fit
from bench.training.limits import Limits, threads
from bench.training.member import Member, Rows
from bench.training.network_factory import network_factory

STEPS, BATCH, ROUNDS, LONGER = 3, 128, 3, 8  # epochs by which the longer of two trainings is longer
OF_TORCH = "one by one, compiled with torch's convolutions"
WAYS = {
    "one by one, eager": (1, Limits(path="plain", compiling=False)),
    "one by one, compiled": (1, Limits(path="plain", compiling=True)),
    OF_TORCH: (1, Limits(path="plain", compiling=True)),
    "2 in one graph, traced": (2, Limits(path="stack", compiling=False, slots=2)),
    "4 in one graph, traced": (4, Limits(path="stack", compiling=False, slots=4)),
    "4 in one graph, compiled": (4, Limits(path="stack", compiling=True, slots=4)),
}


of_torch: dict[str, object] = {}


def members(width: int, count: int, epochs: int) -> Sequence[Member]:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(STEPS * BATCH, 3, 32, 32, generator=source)
    rows = Rows("classification", x, torch.arange(len(x)) % 10, torch.arange(len(x)), torch.arange(0))
    problem, network = Problem("classification", (3, 32, 32), 10), ResNet8Network(width=width)
    new_network = network_factory(network, problem)
    training = Training(epochs=epochs, batch=BATCH)
    return [Member(Deterministic(), problem, new_network, repr(network), training, rows, s) for s in range(count)]


def seconds(width: int, way: str, epochs: int, monkeypatch: pytest.MonkeyPatch) -> float:
    count, limits = WAYS[way]
    trained = members(width, count, epochs)
    with monkeypatch.context() as patch:
        if way == OF_TORCH:  # compiled under another name
            patch.setattr(small_convolutions, "all_small", lambda _: False)
            patch.setattr(compiled_graphs, "_loaded", of_torch)
            patch.setattr(compiled_graphs, "FORMAT", -1)
        began = time.process_time()
        list(fit(trained, limits))
        return time.process_time() - began


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("width", [4, 16])
def test_ways_to_train_small_resnets(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = [way for way in WAYS if compiler_found() or "compiled" not in way]
    times: dict[str, list[float]] = {way: [] for way in ways}
    with threads(1):
        for way in ways:
            seconds(width, way, 1, monkeypatch)  # traces and compiles
        for _ in range(ROUNDS):
            for way in ways:
                # The difference leaves out set-up, whose time varies by more than that of a few steps.
                short, long = (seconds(width, way, epochs, monkeypatch) for epochs in (1, 1 + LONGER))
                times[way].append((long - short) / (LONGER * STEPS * WAYS[way][0]))
    print(f"\nResNet8 of width {width}, batches of {BATCH}: ms of processor time for a step of one network")
    for way in ways:
        print(f"  {way:47s} {1e3 * median(times[way]):7.1f}")
