from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from bench.training.recording import record

Function = Callable[[Tensor], Tensor]
SOURCE = torch.Generator().manual_seed(3)
W, B, X = (torch.randn(*shape, generator=SOURCE) for shape in ((5, 4), (5,), (6, 4)))
TARGET = torch.zeros(6, 5)


def in_place(noise: Tensor) -> Tensor:
    hidden = torch.zeros(6, 5)  # the same every time, and then written to
    before = hidden * noise[0]
    hidden[:, 1:] += noise[:5, None].sum() + (X @ W.t())[:, 1:]
    return hidden.relu_() + before


def of_several_results(noise: Tensor) -> Tensor:
    variance, mean = torch.var_mean(noise.view(4, 5), dim=1)
    values, places = noise.sort()
    return torch.cat([variance, mean, values, places.float()])


def views(noise: Tensor) -> Tensor:
    table = (noise * 2).view(4, 5)
    row = table[1]
    table.t().mul_(3)  # the row that was taken before changes, too
    return row.expand(2, 5) + table.chunk(2)[0]


def vectorised(noise: Tensor) -> Tensor:
    weights = noise.view(2, 10)
    return vmap(lambda w: torch.matmul(X, (W[:, :2] + w.view(5, 2)).repeat(1, 2).t()).add_(B).relu_())(weights)


def of_a_constant(noise: Tensor) -> Tensor:
    return torch.linspace(0, 1, 20).softmax(0).cumsum(0) * noise


@pytest.mark.parametrize("function", [in_place, of_several_results, views, vectorised, of_a_constant])
def test_a_repetition_is_the_call_at_other_values_to_the_last_bit(function: Function) -> None:
    noise = torch.randn(20, generator=SOURCE)
    with torch.no_grad():
        expected = function(noise.clone())
        output, repeat = record(lambda: function(noise), [noise])
        assert torch.equal(output, expected)
        assert repeat is not None
        for _ in range(3):
            noise.normal_(generator=SOURCE)
            expected = function(noise.clone())
            repeat()
            assert torch.equal(output, expected)


@pytest.mark.parametrize("columns", [8, 128, 400])  # libraries cut products of many columns into blocks
@pytest.mark.parametrize("folded", [False, True])
def test_a_product_with_a_sum_keeps_its_bits(columns: int, folded: bool) -> None:
    weights, bias = torch.randn(3, 50, columns, generator=SOURCE), torch.randn(50, generator=SOURCE)
    x = torch.randn(3, 200, columns, generator=SOURCE)

    def function() -> Tensor:
        product = (x.flatten(0, 1) @ weights[0].t()).view(3, 200, 50) if folded else x @ weights.transpose(1, 2)
        return product.add_(bias).relu_()

    with torch.no_grad():
        output, repeat = record(function, [x])
        assert repeat is not None
        x.normal_(generator=SOURCE)
        expected = function()
        repeat()
    assert torch.equal(output, expected)


def test_the_values_of_the_first_call_do_not_decide_whether_a_sum_fits_into_its_product() -> None:
    weights, x = torch.randn(3, 50, 400, generator=SOURCE), torch.randn(3, 200, 400, generator=SOURCE)
    bias = torch.zeros(3, 1, 50)  # added in either way it gives the same bits
    with torch.no_grad():
        output, repeat = record(lambda: (x @ weights.transpose(1, 2)).add_(bias), [x, bias])
        assert repeat is not None
        bias.normal_(generator=SOURCE)
        repeat()
    assert torch.equal(output, x @ weights.transpose(1, 2) + bias)


def test_what_writes_into_a_tensor_that_was_there_before_is_not_repeated() -> None:
    noise = torch.randn(6, 5, generator=SOURCE)
    output, repeat = record(lambda: TARGET.add_(noise) * 2, [noise])
    assert torch.equal(output, 2 * noise)
    assert repeat is None


def test_what_depends_on_the_values_is_not_repeated() -> None:
    noise = torch.randn(20, generator=SOURCE)
    assert record(lambda: noise[noise > 0] * 2, [noise])[1] is None
    assert record(lambda: noise * float(noise[0]), [noise])[1] is None
    assert record(lambda: noise * float(B[0]), [noise])[1] is not None


def test_products_that_few_draws_round_in_another_way_are_not_repeated() -> None:
    few, many = torch.randn(5, 20, generator=SOURCE), torch.randn(40, 20, generator=SOURCE)
    matrix, constant = torch.randn(20, 20, generator=SOURCE), torch.randn(5, 20, generator=SOURCE)
    assert record(lambda: few @ matrix, [few])[1] is None
    assert record(lambda: torch.addmm(few[:, 0], matrix, few.t()), [few])[1] is None
    assert record(lambda: many @ matrix, [many])[1] is not None
    assert record(lambda: many @ constant.t(), [many])[1] is not None


def test_what_does_not_change_is_computed_once() -> None:
    noise, weights = torch.randn(6, 5, generator=SOURCE), W.clone()
    output, repeat = record(lambda: X @ weights.t() + noise, [noise])
    expected = output.clone()
    weights.zero_()  # nobody may do so; here it shows what is read again
    assert repeat is not None
    repeat()
    assert torch.equal(output, expected)
