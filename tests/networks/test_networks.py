import pytest
import torch

from bench.api import Problem
from bench.errors import UserError
from bench.networks.factory import network_factory
from bench.networks.mlp import MLP
from bench.networks.resnet8 import NormalisedConvolution, ResNet8
from bench.spec.protocol import Architecture


def test_resnet8_has_the_parameters_of_the_paper_of_he_et_al() -> None:
    module = ResNet8(3, 10)
    # stem 3*16*9, blocks (16-16, 16-32, 32-64, two 3x3 each), 1x1 shortcuts, norms (weight and bias), head
    convolutions = 432 + 2 * 2304 + 4608 + 9216 + 18432 + 36864 + 512 + 2048
    norms = 2 * (16 + 2 * 16 + 3 * 32 + 3 * 64)
    assert sum(p.numel() for p in module.parameters()) == convolutions + norms + 650 == 78042


def test_resnet8_halves_the_image_twice_and_shows_its_three_hidden_activations() -> None:
    seen: list[tuple[int, ...]] = []

    def look(h: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(h.shape))
        return h

    assert ResNet8(3, 10)(torch.zeros(2, 3, 32, 32), hidden=look).shape == (2, 10)
    assert seen == [(2, 16, 32, 32), (2, 32, 16, 16), (2, 64, 8, 8)]


def test_an_mlp_is_its_matrices() -> None:
    module = MLP(3, [4], 2, "tanh")
    x = torch.randn(5, 3)
    w1, b1, w2, b2 = module.parameters()
    by_hand = torch.tanh(x @ w1.T + b1) @ w2.T + b2
    torch.testing.assert_close(module(x), by_hand)


def test_hidden_is_applied_to_every_hidden_activation_but_not_to_the_outputs() -> None:
    module = MLP(3, [4, 5], 2)
    nothing = module(torch.randn(6, 3), hidden=torch.zeros_like)
    torch.testing.assert_close(nothing, dict(module.named_parameters())["layers.2.bias"].expand(6, 2))


def test_no_hidden_layer_is_a_linear_model() -> None:
    assert sum(p.numel() for p in MLP(7, [], 1).parameters()) == 8


def test_factories_flatten_images_for_an_mlp_and_refuse_tables_for_a_resnet() -> None:
    images = Problem("classification", (1, 8, 8), 10)
    assert network_factory(Architecture(hidden=[6]), images)(10)(torch.zeros(2, 1, 8, 8)).shape == (2, 10)
    assert isinstance(network_factory(Architecture(kind="resnet8"), images)(10), ResNet8)
    with pytest.raises(UserError, match="needs images"):
        network_factory(Architecture(kind="resnet8"), Problem("regression", (8,), 1))


def test_the_small_convolutional_network_halves_the_image_with_every_layer() -> None:
    seen: list[tuple[int, ...]] = []

    def look(h: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(h.shape))
        return h

    images = Problem("classification", (2, 8, 10), 3)
    module = network_factory(Architecture(kind="conv", hidden=[4, 6]), images)(3)
    assert module(torch.zeros(5, 2, 8, 10), hidden=look).shape == (5, 3)
    assert seen == [(5, 4, 4, 5), (5, 6, 2, 2)]
    assert sum(p.numel() for p in module.parameters()) == (2 * 9 + 1) * 4 + (4 * 9 + 1) * 6 + (6 * 2 * 2 + 1) * 3


def test_a_convolutional_network_that_halves_too_often_is_refused() -> None:
    images = Problem("classification", (1, 8, 8), 3)
    with pytest.raises(UserError, match="halves 8 x 8 images too often"):
        network_factory(Architecture(kind="conv", hidden=[4] * 4), images)


@pytest.mark.parametrize("stride", [1, 2])
def test_in_evaluation_batch_norm_is_folded_into_the_convolution(stride: int) -> None:
    torch.manual_seed(3)
    layer = NormalisedConvolution(3, 5, 3, stride)
    with torch.no_grad():
        for tensor in (layer.norm.weight, layer.norm.bias, layer.norm.running_mean, layer.norm.running_var):
            assert tensor is not None
            tensor.uniform_(0.5, 2.0)
    x = torch.randn(4, 3, 8, 8)
    layer.eval()
    torch.testing.assert_close(layer(x), layer.norm(layer.conv(x)), atol=1e-5, rtol=1e-5)
    layer.train()
    before = layer.norm.running_mean.clone()  # type: ignore[union-attr]
    assert torch.equal(
        layer(x),
        torch.nn.functional.batch_norm(layer.conv(x), None, None, layer.norm.weight, layer.norm.bias, training=True),
    )
    assert not torch.equal(before, layer.norm.running_mean)  # type: ignore[arg-type]
