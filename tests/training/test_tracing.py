import pytest
import torch
from torch.func import vmap

from bench.training.tracing import trace


def test_a_traced_call_gives_the_same_numbers_and_keeps_equal_arguments_apart() -> None:
    same = torch.full((3,), 2.0)

    def call(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * 10 + b

    _, traced = trace(call, (same, same))
    assert traced(torch.ones(3), torch.full((3,), 5.0)).tolist() == [15.0] * 3


def test_tall_products_are_laid_wide_without_changing_their_value() -> None:
    source = torch.Generator().manual_seed(0)
    x, y = torch.randn(4, 32, 50, generator=source), torch.randn(4, 32, 8, generator=source)

    def gradient(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.T @ b  # 50 x 8: taller than wide

    call = vmap(gradient)
    torch.testing.assert_close(trace(call, (x, y))[1](x, y), call(x, y), atol=1e-5, rtol=1e-5)
    wide, _ = trace(call, (x, y))
    shapes = {tuple(node.meta["val"].shape) for node in wide.graph.nodes if "bmm" in str(node.target)}
    assert shapes


@pytest.mark.parametrize("sizes", [(31, 13, 7), (32, 13, 50), (17, 33, 5)], ids=str)
def test_a_product_does_not_depend_on_where_in_the_stack_it_stands(sizes: tuple[int, int, int]) -> None:
    """`import bench` asks MKL for it, before torch is loaded."""
    rows, inner, columns = sizes
    source = torch.Generator().manual_seed(0)
    left, right = torch.randn(rows, inner, generator=source), torch.randn(inner, columns, generator=source)
    products = torch.bmm(left.expand(120, -1, -1).contiguous(), right.expand(120, -1, -1).contiguous())
    assert all(torch.equal(product, products[0]) for product in products)


def test_operations_that_return_their_argument_are_dropped() -> None:
    def call(weight: torch.Tensor, bias: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.nn.functional.linear(x, weight, bias)).reshape(5, 3)

    source = torch.Generator().manual_seed(0)
    arguments = [torch.randn(4, *shape, generator=source) for shape in ((3, 2), (3,), (5, 2))]
    graph, traced = trace(vmap(call), tuple(arguments))
    assert torch.equal(traced(*arguments), vmap(call)(*arguments))
    names = [str(node.target) for node in graph.graph.nodes]
    assert not [name for name in names if "expand" in name or "mul" in name]


def test_a_product_with_one_is_new_memory_where_something_is_changed_in_place() -> None:
    def call(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        copy = torch.ops.aten.mul.Scalar(x, 1)
        copy.add_(1)
        return x, copy

    first, second = trace(call, (torch.zeros(3),))[1](torch.zeros(3))
    assert (first.tolist(), second.tolist()) == ([0.0] * 3, [1.0] * 3)
