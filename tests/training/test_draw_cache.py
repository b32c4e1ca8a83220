"""What draws share is computed once, and what they do not share is not."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bench.api import Array, Method
from bench.api.tape import BlankTape, Tape, generator, numbers
from bench.methods.laplace import Laplace
from bench.methods.mc_batch_norm import MCBatchNorm
from bench.methods.mc_dropout import MCDropout
from bench.methods.mcni_fixed import MCNIFixed
from bench.networks._residual import NormalisedConvolution, ResidualNetwork
from bench.networks.resnet8 import ResNet8Network
from bench.training.draw_cache import cached_layers
from bench.training.drawing import Drawing, draw
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, bind_options, float_tensors
from tests.fixtures.training import FitInOrder, MakeMember

DRAWS = 4


class Counted(nn.Module):
    """A linear layer that counts how often it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.weight


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([Counted(), Counted()])

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    @property
    def calls(self) -> list[int]:
        return [part.calls for part in self.parts]  # type: ignore[misc]


def test_a_part_computes_again_exactly_when_its_input_or_its_tensors_are_others() -> None:
    net, x = Two(), torch.ones(2, 3)
    with torch.no_grad(), cached_layers([net]):
        net(x), net(x)
        assert net.calls == [1, 1]
        net(x.clone())
        assert net.calls == [2, 2]
        torch.func.functional_call(net, {"parts.1.weight": torch.zeros(3)}, (x,))
        assert net.calls == [3, 3]  # another input than the last one, and other weights
        changed = torch.func.functional_call(net, {"parts.1.weight": torch.full((3,), 2.0)}, (x,))
        assert net.calls == [3, 4]
        assert float(changed.sum()) == 12.0
        x.add_(1)  # the same object with another content
        assert float(net(x).sum()) == 12.0
    net(x), net(x)
    assert net.calls == [6, 7], "outside the block everything is computed"


def test_an_output_that_was_changed_in_place_is_not_given_again() -> None:
    net, x = Two(), torch.ones(2, 3)
    with torch.no_grad(), cached_layers([net]):
        net(x).zero_()
        assert float(net(x).sum()) == 6.0


def naive(one: Member, fitted: Fitted, x: Tensor) -> Array:
    """Draw by the book: one forward pass a draw, batch norm by itself, planes, nothing kept."""
    method = bind_options(one.method, float_tensors(one.method, x.device))
    fitted.module.eval()
    blank = BlankTape()
    method.draw(fitted, x, blank)
    by_row = isinstance(method, MCDropout) and method.per_row
    drawn = []
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(NormalisedConvolution, "forward", lambda self, x: self.norm(self.conv(x)))
        for number in range(DRAWS):
            source = generator(7, "draw", number, *((0,) if by_row else ()))
            normals, uniforms = numbers(source, 1, blank.length)
            drawn.append(method.draw(fitted, x, Tape(normals[0], uniforms[0])).softmax(-1).numpy())
    return np.stack(drawn)


@pytest.mark.parametrize(
    "method",
    [MCDropout(rate=0.3), MCDropout(rate=0.3, per_row=True), MCNIFixed(alpha=0.1), Laplace(), MCBatchNorm(batch=8)],
    ids=["mc-dropout", "mc-dropout per row", "mcni-fixed", "laplace", "mc-batch-norm"],
)
def test_fast_draws_of_a_resnet_are_those_of_the_naive_loop(
    method: Method, member: MakeMember, fit_in_order: FitInOrder
) -> None:
    one = member(method, network=ResNet8Network(), epochs=2)
    (fitted,) = fit_in_order([one], Limits(path="plain"))
    x = one.rows.x
    drawn = draw(Drawing(method, [fitted], "classification", x, 7, DRAWS), Limits(path="plain"))
    by_hand = naive(one, fitted, x)
    np.testing.assert_allclose(drawn, by_hand, atol=2e-5)
    assert not np.allclose(by_hand[0], by_hand[1], atol=1e-3), "draws that are all alike show nothing"


# Masks after each block: the stem and two convolutions once; two and a shortcut in each of two stages in every draw.
# A mask in the last block: five convolutions once, two in every draw.
@pytest.mark.parametrize(
    ("network", "once", "every_draw"),
    [(ResNet8Network(), 3, 6), (ResNet8Network(width=4, shortcut="padding", noise_at="last-branch"), 5, 2)],
    ids=["blocks", "last-branch"],
)
def test_what_comes_before_the_first_mask_is_computed_once_for_all_masks(
    network: ResNet8Network,
    once: int,
    every_draw: int,
    member: MakeMember,
    fit_in_order: FitInOrder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = member(MCDropout(rate=0.3), network=network, epochs=1)
    (fitted,) = fit_in_order([one], Limits(path="plain"))
    module = fitted.module
    assert isinstance(module, ResidualNetwork)
    calls: list[int] = []
    convolve = torch.nn.functional.conv2d

    def counted(*inputs: Any) -> Any:
        calls.append(len(inputs[0]))
        return convolve(*inputs)

    monkeypatch.setattr("bench.networks._residual.F.conv2d", counted)
    rows = len(one.rows.x)
    draw(Drawing(one.method, [fitted], "classification", one.rows.x, 7, DRAWS), Limits(path="plain"))
    assert calls.count(rows) == once + every_draw * DRAWS
