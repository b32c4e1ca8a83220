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
