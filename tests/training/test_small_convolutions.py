"""Convolutions with the batch last, against torch's in double precision, and the compiled steps that use them."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx
from torch.fx.experimental.proxy_tensor import make_fx

from bench.api import Problem
from bench.machine import kernels
from bench.machine.compiled_cache import VARIABLE
from bench.methods.mcni_learned import MCNILearned
from bench.networks.resnet8 import ResNet8Network
from bench.spec.protocol import Training
from bench.training import compiled_graphs, small_convolutions
from bench.training.compiled_graphs import compiler_found
from bench.training.fit import fit
from bench.training.limits import Limits, threads
from bench.training.member import Fitted, Member, Rows
from bench.training.network_factory import network_factory
from bench.training.small_convolutions import all_small
from bench.training.tracing import trace

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of torch's own modules
    pytest.mark.skipif(not compiler_found(), reason="no C++ compiler: kernels cannot be compiled here"),
]

# inputs, outputs, height, width, images, size of the kernel, stride, padding
SHAPES = [
    (3, 4, 8, 8, 128, 3, 1, 1),
    (4, 8, 8, 6, 80, 3, 2, 1),
    (5, 3, 7, 9, 37, 3, 2, 1),
    (4, 7, 6, 6, 16, 1, 2, 0),
    (2, 16, 5, 9, 50, 1, 1, 0),
    (3, 5, 5, 9, 20, 3, 1, 0),
    (2, 4, 9, 5, 33, 3, 2, 2),
    (1, 2, 2, 3, 47, 3, 3, 5),
]


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def own_results(x: Tensor, weight: Tensor, gradient: Tensor, stride: int, padding: int) -> list[Tensor]:
    """Return the output and both gradients, images first, all of them computed by our kernels."""
    size = weight.shape[2]
    last_x, last_gradient = (t.permute(1, 2, 3, 0).contiguous() for t in (x, gradient))
    ops = torch.ops.uqbench
    return [
        ops.convolution(last_x, weight, stride, padding).permute(3, 0, 1, 2),
        ops.convolution_of_gradient(last_gradient, weight, *x.shape[2:], stride, padding).permute(3, 0, 1, 2),
        ops.convolution_by_weight(last_x, last_gradient, size, stride, padding),
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_outputs_and_gradients_are_those_kernels_before_on_any_number_of_threads(shape: tuple[int, ...]) -> None:
    inputs, outputs, height, width, images, size, stride, padding = shape
    x, weight = normals(images, inputs, height, width).double(), normals(outputs, inputs, size, size, seed=1).double()
    x.requires_grad_()
    weight.requires_grad_()
    y = F.conv2d(x, weight, stride=stride, padding=padding)
    gradient = normals(*y.shape, seed=2)
    y.backward(gradient.double())
    assert x.grad is not None
    assert weight.grad is not None
    results = []
    for count in (1, 2, 3):
        with threads(count):
            results.append(own_results(x.detach().float(), weight.detach().float(), gradient, stride, padding))
    for own, reference in zip(results[0], (y.detach(), x.grad, weight.grad), strict=True):
        torch.testing.assert_close(own.double(), reference, rtol=1e-5, atol=1e-5 * float(reference.abs().max()))
    for one, other in itertools.product(results, repeat=2):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def graph_of(width: int, dilation: int = 1) -> fx.GraphModule:
    weight = normals(width, 3, 3, 3)
    graph: fx.GraphModule = make_fx(lambda x: F.conv2d(x, weight, padding=1, dilation=dilation))(normals(32, 3, 8, 8))
    return graph


def test_only_graphs_whose_convolutions_all_have_few_channels_are_taken() -> None:
    assert all_small(graph_of(4))
    assert not all_small(graph_of(17))
    assert not all_small(graph_of(4, dilation=2))
    assert not all_small(make_fx(lambda x: 2 * x)(normals(4)))
    both = make_fx(lambda x: F.conv2d(F.conv2d(x, normals(4, 3, 3, 3)), normals(32, 4, 3, 3)))
    assert not all_small(both(normals(32, 3, 8, 8)))
    grouped = make_fx(lambda x: F.conv2d(x, normals(4, 2, 3, 3), groups=2))
    assert not all_small(grouped(normals(32, 4, 8, 8)))


def trained(limits: Limits) -> Fitted:
    x = normals(100, 3, 8, 8)
    rows = Rows("classification", x, torch.arange(100) % 3, torch.arange(100), torch.arange(0))
    problem = Problem("classification", (3, 8, 8), 3)
    network = ResNet8Network(width=2, shortcut="padding", noise_at="last-branch")
    training = Training(epochs=2, batch=40, partial_batch=True, optimizer="sgd", learning_rate=0.01, momentum=0.9)
    member = Member(MCNILearned(), problem, network_factory(network, problem), repr(network), training, rows, 0)
    [(_, fitted)] = fit([member], limits)
    return fitted


@pytest.mark.slow
def test_a_compiled_training_is_the_eager_one_to_rounding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(compiled_graphs, "_loaded", {})
    calls = []
    kernels_before = small_convolutions.kernels

    def counted_kernels() -> object:
        calls.append(1)
        return kernels_before()

    monkeypatch.setattr(small_convolutions, "kernels", counted_kernels)
    with threads(1):
        eager = trained(Limits(path="plain", compiling=False))
        assert not calls
        compiled = trained(Limits(path="plain", compiling=True))
        assert calls
        monkeypatch.setattr(compiled_graphs, "_loaded", {})
        monkeypatch.setattr(compiled_graphs, "_compile", lambda *_: pytest.fail("compiled again"))
        again = trained(Limits(path="plain", compiling=True))
    for name, value in eager.params.items():
        torch.testing.assert_close(compiled.params[name], value, rtol=1e-3, atol=1e-5)
        assert torch.equal(again.params[name], compiled.params[name])
    for name, value in eager.buffers.items():
        torch.testing.assert_close(compiled.buffers[name], value, rtol=1e-3, atol=1e-5)


def gradients(x: Tensor, weight: Tensor, bias: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return the gradients of two convolutions, one with a bias: eager, and from a compiled graph."""

    def step(weight: Tensor, bias: Tensor) -> list[Tensor]:
        with torch.enable_grad():
            weight, bias = weight.detach().requires_grad_(), bias.detach().requires_grad_()
            second = F.conv2d(F.relu(F.conv2d(x, weight, bias, padding=1)), weight.transpose(0, 1), stride=2)
            return list(torch.autograd.grad(second.square().mean(), [weight, bias]))

    graph, _ = trace(step, (weight, bias))
    return step(weight, bias), list(compiled_graphs.compiled(graph, [weight, bias])([weight, bias]))


@pytest.mark.parametrize("own", [True, False], ids=["own kernels", "torch's"])
def test_a_compiled_graph_has_the_gradients_of_the_eager_one(
    own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(compiled_graphs, "_loaded", {})
    if not own:
        monkeypatch.setattr(small_convolutions, "kernels", lambda: None)
    eager, compiled = gradients(normals(20, 3, 6, 5), normals(4, 3, 3, 3, seed=1), normals(4, seed=2))
    torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-6)
    (kept,) = (tmp_path / "graphs").glob("*.py")
    assert ("torch.ops.uqbench" in kept.read_text("utf-8")) is own


def test_a_damaged_library_is_compiled_again(tmp_path: Path) -> None:
    """In processes of their own: a library that was loaded once is found by its name."""
    program = "from bench.training.small_convolutions import own_kernels_name; assert own_kernels_name()"
    environment = {**os.environ, VARIABLE: str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    (path,) = (tmp_path / "kernels").glob("*.so")
    whole = path.stat().st_size
    path.write_bytes(path.read_bytes()[:100])
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert path.stat().st_size == whole


def test_without_a_compiler_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernels, "cpp_compiler", lambda: None)
    monkeypatch.setattr(kernels, "compiled_folder", lambda: tmp_path)
    small_convolutions.kernels.cache_clear()
    try:
        assert small_convolutions.own_kernels_name() == ""
    finally:
        small_convolutions.kernels.cache_clear()
