"""Draws from MLPs of one and two hidden layers at many rows, against ordinary loops and the matrix products alone.

    python -m pytest tests/benchmarks/test_mlp_draw_speed.py -s -o addopts=--import-mode=importlib

T = 100 draws on one thread, milliseconds of processor time, medians of rounds that take turns. The loops are
what one writes without a harness, on layers of torch: `nn.Dropout` left on, or noise added to `weight.data`, T times.

No way to draw can take less time than its matrix products and its random numbers. Products are timed layer by layer
with nothing else, into memory that is there, in every form that gives the values of a draw (one draw at a time, two at
a time, into transposed memory, the first layer of two draws as one product); the fastest form of each layer counts. A
draw of MC dropout has one mask for all rows, so its first layer is computed once. A large product and a large block of
normals show the peaks of arithmetic and of the random generator.
"""

import copy
from collections.abc import Callable
from itertools import pairwise

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
AT_ONCE = 2  # draws of a product; with more of them the results of wide layers leave the cache
PEAK, NORMALS = 1024, 10**6  # size of the square product and of the block of normals that show the peaks
SECONDS = 15.0  # of processor time per case
CASES = [((50,), 8, 2000), ((50, 50), 8, 500), ((50, 50), 8, 2000), ((100, 100), 13, 2000), ((256, 256), 13, 2000)]

Way = Callable[[], object]


def ordinary_network(inputs: int, hidden: tuple[int, ...], *after_hidden: nn.Module) -> nn.Sequential:
    sizes = (inputs, *hidden)
    parts = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU(), *after_hidden)]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], 1))


def layers(network: nn.Module) -> list[nn.Linear]:
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]


def loop_with_weight_noise(network: nn.Module, x: Tensor, *, spreads_once: bool = False) -> Tensor:
    noisy = copy.deepcopy(network)
    kept = [layer.weight.data for layer in layers(noisy)]
    spreads = [weight.std(correction=0) for weight in kept]
    outputs = []
    for _ in range(DRAWS):
        for layer, weight, spread in zip(layers(noisy), kept, spreads, strict=True):
            sigma = spread if spreads_once else weight.std(correction=0)
            layer.weight.data = weight + ALPHA * sigma * torch.randn_like(weight)
        outputs.append(noisy(x))
    return torch.stack(outputs)


def loop_with_dropout(network: nn.Module, x: Tensor) -> Tensor:
    network.train()
    return torch.stack([network(x) for _ in range(DRAWS)])


def make_noisy_weights(network: nn.Module) -> None:
    weights = [layer.weight.data for layer in layers(network)]
    for _ in range(DRAWS):
        for weight in weights:
            weight + ALPHA * weight.std(correction=0) * torch.randn_like(weight)


def activate(outputs: list[Tensor]) -> None:
    for _ in range(DRAWS):
        for output in outputs:
            output.relu()  # not kept: memory that is new every time takes longer than the loop's, which it frees


def product_forms(inputs: int, outputs: int, rows: int, *, same_input: bool) -> dict[str, Way]:
    """Return ways to multiply the inputs of a layer by the weights of all draws."""
    d, weights = AT_ONCE, torch.randn(AT_ONCE, outputs, inputs)
    x = torch.randn(rows, inputs).expand(d, -1, -1) if same_input else torch.randn(d, rows, inputs)
    columns, result = weights.transpose(1, 2), torch.empty(d, rows, outputs)
    transposed = torch.empty(d, outputs, rows).transpose(1, 2)
    forms: dict[str, Way] = {
        "one by one": lambda: [torch.mm(x[k], columns[k], out=result[k]) for k in range(d)],
        "together": lambda: torch.bmm(x, columns, out=result),
        "into transposed memory": lambda: torch.bmm(x, columns, out=transposed),
    }
    if same_input:
        wide = torch.empty(d * outputs, rows)
        forms["as one product"] = lambda: torch.mm(weights.view(-1, inputs), x[0].t(), out=wide)
    return {name: lambda form=form: [form() for _ in range(DRAWS // d)] for name, form in forms.items()}  # type: ignore[misc]


def drawn(method: Method, network: nn.Module, x: Tensor, draws: int = DRAWS) -> Way:
    fitted = Fitted(network, {name: p.detach() for name, p in network.named_parameters()}, {})
    return lambda: draw(Drawing(method, [fitted], "regression", x, 0, draws))


@pytest.mark.parametrize(("hidden", "inputs", "rows"), CASES)
def test_draws_of_mlps(hidden: tuple[int, ...], inputs: int, rows: int) -> None:
    torch.manual_seed(0)
    network, x, sizes = MLP(inputs, hidden, 1), torch.randn(rows, inputs), (inputs, *hidden, 1)
    plain, dropout = ordinary_network(inputs, hidden), ordinary_network(inputs, hidden, nn.Dropout(RATE))
    square, result, normals = torch.randn(PEAK, PEAK), torch.empty(PEAK, PEAK), torch.empty(NORMALS)
    results = [torch.randn(rows, units) for units in hidden]
    weights = sum(layer.weight.numel() for layer in layers(network))
    products = {
        f"product {k} {name}": way
        for k, (a, b) in enumerate(pairwise(sizes))
        for name, way in product_forms(a, b, rows, same_input=k == 0).items()
    }
    noise, mask = MCNIFixed(alpha=ALPHA), MCDropout(rate=RATE)
    with threads(1), torch.no_grad():
        times = in_turns(
            {
                "gemm": lambda: torch.mm(square, square, out=result),
                "normals": normals.normal_,
                **products,
                "noise loop": lambda: loop_with_weight_noise(plain, x),
                "noise loop, spreads once": lambda: loop_with_weight_noise(plain, x, spreads_once=True),
                "weights of the loop": lambda: make_noisy_weights(plain),
                "activations": lambda: activate(results),
                "noise": drawn(noise, network, x),
                "noise, twice the draws": drawn(noise, network, x, 2 * DRAWS),
                "mask loop": lambda: loop_with_dropout(dropout, x),
                "mask": drawn(mask, network, x),
                "mask, twice the draws": drawn(mask, network, x, 2 * DRAWS),
            },
            "noise loop",
            SECONDS,
        )
    middle = {name: float(np.median(values)) for name, values in times.items()}
    peak = 2 * PEAK**3 / 1e9 / middle["gemm"]  # 10^9 operations per millisecond
    random = middle["normals"] * DRAWS * weights / NORMALS  # the least that the random numbers of MCNI take
    least = [min(middle[name] for name in products if name.startswith(f"product {k} ")) for k in range(len(sizes) - 1)]
    at_peak = [2 * DRAWS * rows * a * b / 1e9 / peak for a, b in pairwise(sizes)]
    by_layer = ", ".join(f"{ms:.1f} ({ideal / ms:.0%})" for ms, ideal in zip(least, at_peak, strict=True))
    loop, made, passes = middle["noise loop"], middle["weights of the loop"], middle["activations"]
    # An ordinary loop's products are those of one draw at a time.
    multiplied = sum(middle[f"product {k} one by one"] for k in range(len(least)))
    print(
        f"\n{'-'.join(map(str, sizes))}, {rows} rows, {len(times['mask'])} rounds; peaks: "
        f"{peak * 1000:.0f} gigaflops, {1e6 * middle['normals'] / NORMALS:.1f} ns per normal number\n"
        f"  fastest products by layer, ms (of the peak): {by_layer}; normal numbers {random:.1f} ms\n"
        f"  loop of MCNI {loop:.1f} ms: products {multiplied:.1f}, noisy weights {made:.1f}, activations {passes:.1f}, "
        f"rest {loop - multiplied - made - passes:.1f}"
    )
    for title, way, needed in (("MCNI", "noise", sum(least) + random), ("MC dropout", "mask", sum(least[1:]))):
        loop, each = middle[f"{way} loop"], middle[f"{way}, twice the draws"] - middle[way]
        print(
            f"  {title} {middle[way]:.1f} ms, {faster(times, way, f'{way} loop')[1]} its loop, at most "
            f"{loop / needed:.2f}x: fastest products and normals are {needed / middle[way]:.0%} of its time;\n"
            f"    done once {middle[way] - each:.1f} ms; {DRAWS} further draws {each:.1f} ms, {loop / each:.2f}x"
        )
    once = faster(times, "noise", "noise loop, spreads once")[1]
    print(f"  MCNI is {once} a loop that computes the standard deviations of weights once")
    assert faster(times, "mask", "mask loop")[0] >= 2
