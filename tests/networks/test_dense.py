"""Draws overwrite their activations where nothing else reads them, and get the same bits as plain layers."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from bench.networks._dense import Dense, activated

Call = Callable[..., Tensor]
SOURCE = torch.Generator().manual_seed(0)
NETWORKS, DRAWS, ROWS, INPUTS, UNITS = 3, 5, 70, 8, 20
X, WEIGHT, BIAS = (torch.randn(*shape, generator=SOURCE) for shape in ((ROWS, INPUTS), (UNITS, INPUTS), (UNITS,)))
LAYER = Dense(INPUTS, UNITS)
# Which of x, weight and bias differ between draws.
BATCHED = [(a, b, c) for a in (0, None) for b in (0, None) for c in (0, None) if (a, b, c) != (None,) * 3]


def dense(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return activated(F.relu, functional_call(LAYER, {"weight": weight, "bias": bias}, (x,)))


def plain(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.relu(F.linear(x, weight, bias))


def several(tensor: Tensor, *sizes: int) -> Tensor:
    return tensor + 0.1 * torch.randn(*sizes, *tensor.shape, generator=SOURCE)


@pytest.mark.parametrize("in_dims", BATCHED, ids=str)
def test_draws_have_the_bits_of_plain_layers(in_dims: tuple[Any, ...]) -> None:
    given = [t if axis is None else several(t, DRAWS) for t, axis in zip((X, WEIGHT, BIAS), in_dims, strict=True)]
    kept = [t.clone() for t in given]
    with torch.no_grad():
        drawn, expected = (vmap(call, in_dims)(*given) for call in (dense, plain))
    assert torch.equal(drawn, expected)
    assert all(torch.equal(a, b) for a, b in zip(given, kept, strict=True)), "what was given is not overwritten"


@pytest.mark.parametrize("inner", BATCHED, ids=str)
def test_draws_of_several_networks_have_the_bits_of_plain_layers(inner: tuple[Any, ...]) -> None:
    sizes = [() if axis is None else (DRAWS,) for axis in inner]
    x = several(X, DRAWS) if sizes[0] else X
    weight, bias = several(WEIGHT, NETWORKS, *sizes[1]), several(BIAS, NETWORKS, *sizes[2])
    with torch.no_grad():
        drawn, expected = (vmap(vmap(call, inner), (None, 0, 0))(x, weight, bias) for call in (dense, plain))
    assert torch.equal(drawn, expected)


def counted(call: Call, *given: Tensor) -> int:
    """Return how many tensors of the size of all activations are allocated."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        vmap(call, (None, 0, None))(*given)
    size = DRAWS * ROWS * UNITS * 4
    return sum(event.self_cpu_memory_usage >= size for event in profile.events())


def test_a_layer_of_many_draws_writes_one_tensor() -> None:
    given = (X, several(WEIGHT, DRAWS), BIAS)
    with torch.no_grad():
        assert counted(plain, *given) == 3  # product, sum, activation
        assert counted(dense, *given) == 1


def test_a_plain_pass_keeps_the_output_of_its_layer() -> None:
    with torch.no_grad():
        output = F.linear(X, WEIGHT, BIAS)
        before = output.clone()
        activated(F.relu, output)
    assert torch.equal(output, before)


def test_gradients_and_recorded_graphs_have_no_operation_in_place() -> None:
    weights = several(WEIGHT, DRAWS)
    gradients = [
        torch.func.grad(lambda w, call=call: vmap(call, (None, 0, None))(X, w, BIAS).square().sum())(weights)
        for call in (dense, plain)
    ]
    assert torch.equal(*gradients)
    with torch.no_grad():
        graph = make_fx(vmap(dense, (None, 0, None)))(X, weights, BIAS)
    names = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert not [name for name in names if name.split(".")[1].endswith("_")]
