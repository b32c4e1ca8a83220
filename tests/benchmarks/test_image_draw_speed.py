"""Draws per second from a ResNet8, by the engine, by a naive loop and by peers, in one run.

    pip install 'uqbench[bench,peers]'      # peers: torch-uncertainty and baal, told as missing where they are not
    pytest -s tests/benchmarks/test_image_draw_speed.py

All on one thread, in seconds of processor time, so that a busy machine disturbs no comparison. A draw is one forward
pass of all rows. The naive loop is the network as it is usually written (convolution, batch norm, activation, dropout
as modules, images in planes), called T times. It and the peers run in a process of their own, as in an ordinary script:
the engine has its process keep freed memory, which would help them too; the same loop is also timed beside the engine.
Rounds of both processes take turns. Peers are timed in their loop mode for every T, and in their default mode (the
batch repeated T times in memory) for T = 10 only. UQBENCH_ROWS=100 UQBENCH_DRAWS=1,10 asks for less.
"""

import copy
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from bench.api import Array, Method, Problem
from bench.machine.torchvision_compat import import_torchvision
from bench.methods.deterministic import Deterministic
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.networks.resnet8 import ResNet8Network
from bench.spec.protocol import Training
from bench.training.drawing import Drawing, draw
from bench.training.fit import fit
from bench.training.limits import threads
from bench.training.member import Fitted, Member, Rows
from bench.training.network_factory import network_factory

ROWS, RATE, ALPHA = int(os.environ.get("UQBENCH_ROWS", "500")), 0.3, 0.02  # the paper's batch
DRAWS = tuple(int(draws) for draws in os.environ.get("UQBENCH_DRAWS", "1,10,50,100").split(","))


class NaiveBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
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
    problem, network = Problem("classification", (3, 32, 32), 10), ResNet8Network()
    training = Training(optimizer="sgd", epochs=1, batch=50)
    member = Member(Deterministic(), problem, network_factory(network, problem), "", training, rows, 0)
    ((_, fitted),) = fit([member])
    naive = NaiveResNet8(RATE).eval()
    tensors = [*fitted.params.items(), *fitted.buffers.items()]
    with torch.no_grad():
        for (_, ours), theirs in zip(tensors, [*naive.parameters(), *naive.buffers()], strict=True):
            theirs.copy_(ours)
        fitted.module.eval()
        torch.testing.assert_close(naive(images[:20]), fitted(images[:20]), atol=1e-4, rtol=1e-4)
    return fitted, naive


def seconds(call: Callable[[], object]) -> float:
    """The processor time of one call."""
    began = time.process_time()
    call()
    return time.process_time() - began


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


LOOPS: dict[str, Callable[[NaiveResNet8, Tensor, int], Callable[[], object]]] = {
    "naive loop, dropout": naive_dropout,
    "naive loop, weight noise": naive_noise,
    "torch-uncertainty, loop": partial(torch_uncertainty, repeated=False),
    "torch-uncertainty, repeated batch": partial(torch_uncertainty, repeated=True),
    "baal, loop": partial(baal, repeated=False),
    "baal, repeated batch": partial(baal, repeated=True),
}


def loop_of(name: str, naive: NaiveResNet8, images: Tensor, draws: int) -> Callable[[], object]:
    """A loop, warmed up. Peers change the modules they are given."""
    call = LOOPS[name](copy.deepcopy(naive), images, draws)
    LOOPS[name](copy.deepcopy(naive), images[:2], 1)()
    return call


def ordinary_script(connection: Connection, weights: list[Array], images: Array) -> None:
    """What a process of its own does: time the loop it is asked for, until it is asked for none."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of the peers
    import_torchvision()
    naive, x = NaiveResNet8(RATE).eval(), torch.from_numpy(images)
    with torch.no_grad():
        for tensor, values in zip([*naive.parameters(), *naive.buffers()], weights, strict=True):
            tensor.copy_(torch.from_numpy(values))
        while asked := connection.recv():
            try:
                name, draws = asked
                connection.send(seconds(loop_of(name, naive, x, draws)))
            except ImportError as error:
                connection.send(str(error))


@contextmanager
def process(naive: NaiveResNet8, images: Tensor) -> Iterator[Callable[[str, int], float]]:
    """Give what times a loop in a process of its own."""
    ours, theirs = get_context("spawn").Pipe()
    weights = [tensor.detach().numpy() for tensor in (*naive.parameters(), *naive.buffers())]
    child = get_context("spawn").Process(target=ordinary_script, args=(theirs, weights, images.numpy()), daemon=True)
    child.start()

    def timed(name: str, draws: int) -> float:
        ours.send((name, draws))
        answer = ours.recv()
        if isinstance(answer, str):
            raise ImportError(answer)
        return float(answer)

    yield timed
    ours.send(None)
    child.join()


def test_draws_per_second(capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    images = torch.randn(ROWS, 3, 32, 32)
    fitted, naive = trained(images)
    methods = {
        "engine, mc-dropout, one mask a draw": (MCDropout(RATE), "naive loop, dropout"),
        "engine, mc-dropout, a mask a row": (MCDropout(RATE, per_row=True), "naive loop, dropout"),
        "engine, mcni-fixed": (MCNIFixed(alpha=ALPHA), "naive loop, weight noise"),
    }

    def tell(name: str, values: Mapping[int, float]) -> None:
        shown = (f"{values[draws]:10.2f}" if draws in values else f"{'-':>10}" for draws in DRAWS)
        with capsys.disabled():
            print(f"{name:54}{''.join(shown)}", flush=True)

    with capsys.disabled():
        print(f"\n\nResNet8, {ROWS} images, one thread: draws per second of processor time\n")
        print(f"{'':54}" + "".join(f"{f'T = {draws}':>10}" for draws in DRAWS))
    with threads(1), torch.no_grad(), process(naive, images) as elsewhere:
        rates: dict[str, dict[int, float]] = {}

        def measure(calls: Mapping[str, Callable[[int], float]], counts: Sequence[int]) -> None:
            """Let the sides take turns; the best round of each counts."""
            for draws in counts:
                rounds = [{name: call(draws) for name, call in calls.items()} for _ in range(3 if draws <= 10 else 1)]
                for name in calls:
                    rates.setdefault(name, {})[draws] = draws / min(each[name] for each in rounds)
            for name in calls:
                tell(name, rates[name])

        for base in ("naive loop, dropout", "naive loop, weight noise"):
            own = {name: method for name, (method, of) in methods.items() if of == base}
            calls: dict[str, Callable[[int], float]] = {base: partial(elsewhere, base)}
            for name, method in own.items():
                calls[name] = lambda draws, method=method: seconds(engine(method, fitted, images, draws))  # type: ignore[misc]
            calls[f"  the same loop beside the engine ({base.split()[-1]})"] = lambda draws, base=base: seconds(  # type: ignore[misc]
                loop_of(base, naive, images, draws)
            )
            measure(calls, DRAWS)
            for name in own:
                tell(f"{name}: times the loop", {t: rates[name][t] / rates[base][t] for t in DRAWS})
        for name in [name for name in LOOPS if "naive" not in name]:
            try:
                measure({name: partial(elsewhere, name)}, DRAWS if name.endswith("loop") else (10,))
            except ImportError as error:
                with capsys.disabled():
                    print(f"{name}: not installed ({error})")
