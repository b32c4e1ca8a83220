"""Draws per second from a ResNet8, by the engine, by a naive loop and by peers, in one run.

    pip install 'uqbench[bench,peers]'      # peers: torch-uncertainty and baal, told as missing where they are not
    pytest -s tests/benchmarks/test_image_draw_speed.py

All on one thread, in seconds of processor time, so that a busy machine disturbs no comparison. A draw is one forward
pass of all rows. The naive loop is the network as it is usually written (convolution, batch norm, activation, dropout
as modules, images in planes), called T times. Peers are timed in their loop mode for every T, and in their default mode
(the batch repeated T times in memory) for T = 10 only. UQBENCH_ROWS=100 UQBENCH_DRAWS=1,10 asks for less.
"""

import math
import os
import time
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from bench.api import Method, Problem
from bench.draw import Drawing, draw
from bench.member import Fitted, Member, Rows
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.networks import network_factory
from bench.protocol import Architecture, Training
from bench.stack import fit, threads
from bench.torchvision_compat import import_torchvision

ROWS, RATE, ALPHA = int(os.environ.get("UQBENCH_ROWS", "500")), 0.3, 0.02  # the paper's batch
DRAWS = tuple(int(draws) for draws in os.environ.get("UQBENCH_DRAWS", "1,10,50,100").split(","))


class NaiveBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.activation = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        activation: Tensor = self.activation(self.inner(x) + self.shortcut(x))
        return activation


class NaiveResNet8(nn.Module):
    """ResNet8 as it is usually written, its tensors in the order of ours."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        blocks = (NaiveBlock(16, 16, 1), NaiveBlock(16, 32, 2), NaiveBlock(32, 64, 2))
        self.stages = nn.Sequential(*(nn.Sequential(block, nn.Dropout(rate)) for block in blocks))
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.stages(self.stem(x)).mean((2, 3)))
        return outputs


def trained(images: Tensor) -> tuple[Fitted, NaiveResNet8]:
    """One network after one epoch, and the same in its naive form."""
    rows = Rows("classification", images, torch.arange(len(images)) % 10, torch.arange(len(images)), torch.arange(0))
    problem, network = Problem("classification", (3, 32, 32), 10), Architecture(kind="resnet8")
    training = Training(optimizer="sgd", epochs=1, batch=50)
    member = Member(Deterministic(), problem, network_factory(network, problem), "", training, rows, 0)
    ((_, fitted),) = fit([member])
    naive = NaiveResNet8(RATE).eval()
    tensors = [*fitted.params.items(), *fitted.buffers.items()]
    with torch.no_grad():
        for (_, ours), theirs in zip(tensors, [*naive.parameters(), *naive.buffers()], strict=True):
            theirs.copy_(ours)
        fitted.module.eval()
        torch.testing.assert_close(naive(images[:20]), fitted.net(images[:20]), atol=1e-4, rtol=1e-4)
    return fitted, naive


def seconds(call: Callable[[], object], rounds: int) -> float:
    """The least processor time of some rounds."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return min(taken)


def engine(method: Method, fitted: Fitted, images: Tensor, draws: int) -> Callable[[], object]:
    return lambda: draw(Drawing(method, [fitted], "classification", images, 1, draws))


def naive_dropout(naive: NaiveResNet8, images: Tensor, draws: int) -> Callable[[], object]:
    for module in naive.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    return lambda: torch.stack([naive(images).softmax(-1) for _ in range(draws)])


def naive_noise(naive: NaiveResNet8, images: Tensor, draws: int) -> Callable[[], object]:
    naive.eval()
    weights = {name: p for name, p in naive.named_parameters() if p.ndim > 1}

    def once() -> Tensor:
        noisy = {name: w + ALPHA * w.std(correction=0) * torch.randn_like(w) for name, w in weights.items()}
        outputs: Tensor = functional_call(naive, noisy, (images,))
        return outputs.softmax(-1)

    return lambda: torch.stack([once() for _ in range(draws)])


def torch_uncertainty(naive: NaiveResNet8, images: Tensor, draws: int, repeated: bool) -> Callable[[], object]:
    from torch_uncertainty.methods import mc_dropout

    model = mc_dropout(naive, draws, on_batch=repeated).eval()
    return lambda: model(images).softmax(-1)


def baal(naive: NaiveResNet8, images: Tensor, draws: int, repeated: bool) -> Callable[[], object]:
    from baal.bayesian.dropout import patch_module
    from baal.modelwrapper import ModelWrapper, TrainingArgs

    model = patch_module(naive, inplace=False).eval()
    wrapper = ModelWrapper(model, TrainingArgs(replicate_in_memory=repeated, use_cuda=False))
    return lambda: wrapper.predict_on_batch(images, draws).softmax(1)


PEERS = {"torch-uncertainty": torch_uncertainty, "baal": baal}


def test_draws_per_second(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    images = torch.randn(ROWS, 3, 32, 32)
    fitted, naive = trained(images)
    table: dict[str, list[float]] = {}

    def tell(line: str) -> None:
        with capsys.disabled():
            print(line, flush=True)

    def measure(name: str, make: Callable[[int], Callable[[], object]], counts: tuple[int, ...] = DRAWS) -> None:
        rates = []
        for draws in DRAWS:
            if draws not in counts:
                rates.append(float("nan"))
                continue
            call = make(draws)
            rates.append(draws / seconds(call, rounds=3 if draws <= 10 else 1))
        table[name] = rates
        tell(f"{name:34}" + "".join(f"{'-':>10}" if math.isnan(rate) else f"{rate:10.2f}" for rate in rates))

    def ratio(name: str, base: str) -> None:
        ratios = [a / b for a, b in zip(table[name], table[base], strict=True)]
        tell(f"{'  times the naive loop':34}" + "".join(f"{each:10.2f}" for each in ratios))

    tell(f"\n\nResNet8, {ROWS} images, one thread: draws per second of processor time\n")
    tell(f"{'':34}" + "".join(f"{f'T = {draws}':>10}" for draws in DRAWS))
    with threads(1), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peers
        measure("naive loop, dropout", lambda draws: naive_dropout(naive, images, draws))
        for label, method in (("one mask a draw", MCDropout(RATE)), ("a mask a row", MCDropout(RATE, per_row=True))):
            name = f"engine, mc-dropout, {label}"
            measure(name, lambda draws, method=method: engine(method, fitted, images, draws))  # type: ignore[misc]
            ratio(name, "naive loop, dropout")
        for name, peer in PEERS.items():
            try:
                import_torchvision()
                peer(naive, images, 1, False)
            except ImportError as error:
                tell(f"{name}: not installed ({error})")
                continue
            for mode, repeated, counts in (("loop", False, DRAWS), ("repeated batch", True, (10,))):
                measure(
                    f"{name}, {mode}",
                    lambda draws, peer=peer, repeated=repeated: peer(naive, images, draws, repeated),  # type: ignore[misc]
                    counts,
                )
        measure("naive loop, weight noise", lambda draws: naive_noise(naive, images, draws))
        measure("engine, mcni-fixed", lambda draws: engine(MCNIFixed(alpha=ALPHA), fitted, images, draws))
        ratio("engine, mcni-fixed", "naive loop, weight noise")
