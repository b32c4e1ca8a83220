"""Draws from MLPs of one and two hidden layers at many rows, against ordinary loops and the matrix products alone.

    python -m pytest tests/benchmarks/test_mlp_draw_speed.py -s -o addopts=--import-mode=importlib

T = 100 draws on one thread, milliseconds of processor time, medians of rounds that take turns. The loops are
what one writes without a harness: `nn.Dropout` left on, or noise added to `weight.data`, T times. "Products" are the
matrix products of such a loop with nothing else, written into memory that is there: no way to draw whose weights differ
in every draw (MCNI) can take less. MC dropout has one mask per draw, and computes its first layer once. A large product
and a large block of normals, timed in the same rounds, show the peaks of arithmetic and of the random generator.
"""

import copy
from collections.abc import Callable

import numpy as np
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
from tests.benchmarks.paired_times import faster, in_turns

DRAWS, ALPHA, RATE = 100, 0.05, 0.1
PEAK, NORMALS = 1024, 10**6  # size of the square product and of the block of normals that show the peaks
SECONDS = 10.0  # of processor time per case
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


def drawn(method: Method, network: nn.Module, x: Tensor) -> Callable[[], object]:
    fitted = Fitted(network, {name: p.detach() for name, p in network.named_parameters()}, {})
    return lambda: draw(Drawing(method, [fitted], "regression", x, 0, DRAWS))


@pytest.mark.parametrize(("hidden", "inputs", "rows"), CASES)
def test_draws_of_mlps(hidden: tuple[int, ...], inputs: int, rows: int) -> None:
    torch.manual_seed(0)
    network, x = MLP(inputs, hidden, 1), torch.randn(rows, inputs)
    square, result, normals = torch.randn(PEAK, PEAK), torch.empty(PEAK, PEAK), torch.empty(NORMALS)
    weights = sum(layer.weight.numel() for layer in layers(network))
    with threads(1), torch.no_grad():
        times = in_turns(
            {
                "gemm": lambda: torch.mm(square, square, out=result),
                "normals": normals.normal_,
                "products": lambda: products(network, x),
                "noise loop": lambda: loop_with_weight_noise(network, x),
                "noise": drawn(MCNIFixed(alpha=ALPHA), network, x),
                "mask loop": lambda: loop_with_dropout(network, x),
                "mask": drawn(MCDropout(rate=RATE), network, x),
            },
            "products",
            SECONDS,
        )
    middle = {name: float(np.median(values)) for name, values in times.items()}
    peak = 2 * PEAK**3 / 1e9 / middle["gemm"]  # 10^9 operations per millisecond
    random = middle["normals"] * DRAWS * weights / NORMALS  # the least that the random numbers of MCNI take
    first, *later = (2 * DRAWS * rows * layer.weight.numel() / 1e9 / peak for layer in layers(network))
    noisy, masked = first + sum(later), sum(later)  # ms at the peak; masks leave the first layer as it is
    (_, noise), (mask_ratio, mask) = faster(times, "noise", "noise loop"), faster(times, "mask", "mask loop")
    print(
        f"\n{'-'.join(map(str, (inputs, *hidden, 1)))}, {rows} rows, {len(times['mask'])} rounds; peaks: "
        f"{peak * 1000:.0f} gigaflops, {1e6 * middle['normals'] / NORMALS:.1f} ns per normal number\n"
        f"  products alone {middle['products']:.1f} ms, {noisy / middle['products']:.0%} of the peak\n"
        f"  MCNI {middle['noise']:.1f} ms, {noise} its loop, at most "
        f"{middle['noise loop'] / (middle['products'] + random):.2f}x; products at their peak are "
        f"{noisy / middle['noise']:.0%} of its time, normals at theirs {random / middle['noise']:.0%}\n"
        f"  MC dropout {middle['mask']:.1f} ms, {mask} its loop; products at their peak are "
        f"{masked / middle['mask']:.0%} of its time"
    )
    assert mask_ratio >= 2
