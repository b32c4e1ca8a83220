"""Draws from MLPs of one and two hidden layers at many rows, against ordinary loops and the matrix products alone.

    python -m pytest tests/benchmarks/test_mlp_draw_speed.py -s -o addopts=--import-mode=importlib

T = 100 draws on one thread, milliseconds of processor time, the least of several rounds that take turns. The loops are
what one writes without a harness: `nn.Dropout` left on, or noise added to `weight.data`, T times. "Products" are the
matrix products of such a loop with nothing else, written into memory that is there: no way to draw whose weights differ
in every draw (MCNI) can take less. MC dropout has one mask per draw, and computes its first layer once.
"""

import copy
import time
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from bench.api import Method
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.networks.mlp import MLP
from bench.training.drawing import Drawing, draw
from bench.training.limits import threads
from bench.training.member import Fitted

DRAWS, ROUNDS, ALPHA, RATE = 100, 5, 0.05, 0.1
CASES = [((50,), 8, 2000), ((50, 50), 8, 500), ((50, 50), 8, 2000), ((100, 100), 13, 2000), ((256, 256), 13, 2000)]


def layers(network: nn.Module) -> list[nn.Linear]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def products(network: nn.Module, x: Tensor) -> None:
    weights = [layer.weight.t() for layer in layers(network)]
    outputs = [torch.empty(len(x), weight.shape[1]) for weight in weights]
    for _ in range(DRAWS):
        for given, weight, output in zip([x, *outputs], weights, outputs, strict=False):
            torch.mm(given, weight, out=output)


def loop_with_weight_noise(network: nn.Module, x: Tensor) -> Tensor:
    noisy = copy.deepcopy(network)
    kept = [layer.weight.data for layer in layers(noisy)]
    outputs = []
    for _ in range(DRAWS):
        for layer, weight in zip(layers(noisy), kept, strict=True):
            layer.weight.data = weight + ALPHA * weight.std(correction=0) * torch.randn_like(weight)
        outputs.append(noisy(x))
    return torch.stack(outputs)


def loop_with_dropout(network: nn.Module, x: Tensor) -> Tensor:
    *hidden, last = layers(network)
    parts = [part for layer in hidden for part in (layer, nn.ReLU(), nn.Dropout(RATE))]
    ordinary = nn.Sequential(*parts, last).train()
    return torch.stack([ordinary(x) for _ in range(DRAWS)])


def least(ways: Sequence[Callable[[], object]]) -> list[float]:
    """Return the least milliseconds of each way."""
    best = [float("inf")] * len(ways)
    for _ in range(ROUNDS):
        for place, way in enumerate(ways):
            began = time.process_time()
            way()
            best[place] = min(best[place], (time.process_time() - began) * 1e3)
    return best


def drawn(method: Method, network: nn.Module, x: Tensor) -> Callable[[], object]:
    fitted = Fitted(network, {name: p.detach() for name, p in network.named_parameters()}, {})
    return lambda: draw(Drawing(method, [fitted], "regression", x, 0, DRAWS))


@pytest.mark.parametrize(("hidden", "inputs", "rows"), CASES)
def test_draws_of_mlps(hidden: tuple[int, ...], inputs: int, rows: int) -> None:
    torch.manual_seed(0)
    network, x = MLP(inputs, hidden, 1), torch.randn(rows, inputs)
    with threads(1), torch.no_grad():
        floor, noise_loop, noise, mask_loop, mask = least(
            [
                lambda: products(network, x),
                lambda: loop_with_weight_noise(network, x),
                drawn(MCNIFixed(alpha=ALPHA), network, x),
                lambda: loop_with_dropout(network, x),
                drawn(MCDropout(rate=RATE), network, x),
            ]
        )
    print(
        f"\n{'-'.join(map(str, (inputs, *hidden, 1)))}, {rows} rows: products {floor:.1f} ms; "
        f"MCNI {noise:.1f}, loop {noise_loop:.1f}: {noise_loop / noise:.2f}x, at most {noise_loop / floor:.2f}x; "
        f"MC dropout {mask:.1f}, loop {mask_loop:.1f}: {mask_loop / mask:.2f}x"
    )
    assert mask_loop / mask >= 2
