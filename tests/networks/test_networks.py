from typing import Any

import pytest
import torch
from torch import nn

from bench.api import Problem
from bench.errors import UserError
from bench.machine.torchvision_compat import import_torchvision
from bench.networks._residual import NormalisedConvolution, PaddedShortcut
from bench.networks.conv import ConvNetwork
from bench.networks.mlp import MLP, MLPNetwork
from bench.networks.residual_mlp import ResidualMLPNetwork
from bench.networks.resnet8 import ResNet8, ResNet8Network
from bench.networks.resnet18 import ResNet18Network
from bench.networks.transformer import Attention, TransformerNetwork
from bench.plugins.building import build
from bench.training.network_factory import network_factory


def torchvision_models() -> Any:
    """Return torchvision's models, or skip the test where it is not installed."""
    try:
        return import_torchvision().models
    except UserError as error:
        pytest.skip(str(error))


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
    assert network_factory(MLPNetwork((6,)), images)(10)(torch.zeros(2, 1, 8, 8)).shape == (2, 10)
    assert isinstance(network_factory(ResNet8Network(), images)(10), ResNet8)
    with pytest.raises(UserError, match="needs images"):
        network_factory(ResNet8Network(), Problem("regression", (8,), 1))


def test_the_small_convolutional_network_halves_the_image_with_every_layer() -> None:
    seen: list[tuple[int, ...]] = []

    def look(h: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(h.shape))
        return h

    images = Problem("classification", (2, 8, 10), 3)
    module = network_factory(ConvNetwork((4, 6)), images)(3)
    assert module(torch.zeros(5, 2, 8, 10), hidden=look).shape == (5, 3)
    assert seen == [(5, 4, 4, 5), (5, 6, 2, 2)]
    assert sum(p.numel() for p in module.parameters()) == (2 * 9 + 1) * 4 + (4 * 9 + 1) * 6 + (6 * 2 * 2 + 1) * 3


def test_a_convolutional_network_that_halves_too_often_is_refused() -> None:
    images = Problem("classification", (1, 8, 8), 3)
    with pytest.raises(UserError, match="halves 8 x 8 images too often"):
        network_factory(ConvNetwork((4,) * 4), images)


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


def test_the_usual_resnet8_is_initialised_layer_by_layer() -> None:
    """Options of its own left its usual form as it was: names, order and numbers of the parameters."""
    torch.manual_seed(5)
    module = ResNet8(3, 10)
    torch.manual_seed(5)
    convolutions = {"stem": nn.Conv2d(3, 16, 3, bias=False)}
    for block, (before, after) in enumerate([(16, 16), (16, 32), (32, 64)]):
        convolutions[f"stages.{block}.first"] = nn.Conv2d(before, after, 3, bias=False)
        convolutions[f"stages.{block}.second"] = nn.Conv2d(after, after, 3, bias=False)
        if before != after:
            convolutions[f"stages.{block}.shortcut"] = nn.Conv2d(before, after, 1, bias=False)
    head = nn.Linear(64, 10)
    parts = ("conv.weight", "norm.weight", "norm.bias")
    names = [f"{layer}.{part}" for layer in convolutions for part in parts]
    assert [name for name, _ in module.named_parameters()] == [*names, "head.weight", "head.bias"]
    for layer, convolution in convolutions.items():
        assert torch.equal(module.get_parameter(f"{layer}.conv.weight"), convolution.weight), layer
    assert torch.equal(module.head.weight, head.weight)
    assert torch.equal(module.head.bias, head.bias)


def test_a_shortcut_of_padding_has_no_parameters_and_keeps_every_second_pixel() -> None:
    padded, projected = ResNet8(3, 10, shortcut="padding"), ResNet8(3, 10)
    count = [sum(p.numel() for p in module.parameters()) for module in (padded, projected)]
    assert count[1] - count[0] == 16 * 32 + 32 * 64 + 2 * (32 + 64)
    assert padded(torch.randn(2, 3, 9, 9)).shape == (2, 10)
    x = torch.randn(2, 4, 5, 5)
    short = PaddedShortcut(4, 6, 2)(x)
    assert torch.equal(short[:, :4], x[:, :, ::2, ::2])
    assert not short[:, 4:].any()


def test_the_width_of_a_resnet8_is_that_of_its_first_stage() -> None:
    problem = Problem("classification", (3, 8, 8), 5)
    shapes = [tuple(p.shape) for p in ResNet8Network(width=6).build(problem, 5).parameters()]
    assert shapes[0] == (6, 3, 3, 3)
    assert shapes[-2:] == [(5, 24), (5,)]
    with pytest.raises(UserError, match=r"here: width: expected whole numbers above 0, got 0"):
        build(ResNet8Network, {"width": 0}, "here")
    with pytest.raises(UserError, match=r"here: shortcut: .*'projection' or 'padding', got 'none'"):
        build(ResNet8Network, {"shortcut": "none"}, "here")


def test_resnet18_has_the_published_number_of_parameters() -> None:
    module = ResNet18Network().build(Problem("classification", (3, 32, 32), 10), 10)
    assert sum(p.numel() for p in module.parameters()) == 11_173_962  # of the usual CIFAR form


@pytest.mark.slow
def test_resnet18_is_torchvisions_with_another_stem() -> None:
    """Its weights, in the same order, give the same function in training and in evaluation."""
    models = torchvision_models()
    torch.manual_seed(2)
    theirs = models.resnet18(num_classes=10)
    theirs.conv1, theirs.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    ours = ResNet18Network().build(Problem("classification", (3, 16, 16), 10), 10)
    ours.load_state_dict(dict(zip(ours.state_dict(), theirs.state_dict().values(), strict=True)))
    x = torch.randn(3, 3, 16, 16)
    for module in (ours, theirs):
        module.train()
        module(x)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(ours.eval()(x), theirs.eval()(x), atol=1e-4, rtol=1e-4)


def test_a_residual_mlp_adds_to_its_input() -> None:
    module = ResidualMLPNetwork(width=4, blocks=1, activation="tanh").build(Problem("regression", (3,), 1), 2)
    x = torch.randn(5, 3)
    p = dict(module.named_parameters())
    h = x @ p["first.weight"].T + p["first.bias"]
    inner = torch.tanh(h @ p["inner.0.weight"].T + p["inner.0.bias"])
    h = h + inner @ p["outer.0.weight"].T + p["outer.0.bias"]
    torch.testing.assert_close(module(x), torch.tanh(h) @ p["head.weight"].T + p["head.bias"])
    alone = module(x, hidden=torch.zeros_like)  # nothing but the bias of the head is left
    torch.testing.assert_close(alone, p["head.bias"].expand(5, 2))


def test_attention_is_torchs() -> None:
    torch.manual_seed(3)
    ours, theirs = Attention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
    with torch.no_grad():
        for mine, other in zip(ours.parameters(), [*theirs.parameters()], strict=True):
            other.copy_(mine)
    h = torch.randn(3, 5, 8)
    torch.testing.assert_close(ours(h), theirs(h, h, h, need_weights=False)[0], atol=1e-5, rtol=1e-5)


def test_a_transformer_does_not_see_the_order_of_features() -> None:
    """Features are told apart by their own vectors alone: where these move with them, the outputs stay."""
    module = TransformerNetwork().build(Problem("regression", (6,), 1), 2)
    x, order = torch.randn(4, 6), torch.tensor([3, 1, 5, 0, 2, 4])
    before = module(x)
    with torch.no_grad():
        for name in ("scale", "shift"):
            vectors = module.get_parameter(name)
            vectors[:6] = vectors[order].clone()
    torch.testing.assert_close(module(x[:, order]), before, atol=1e-5, rtol=1e-5)
    with pytest.raises(UserError, match="width must be a multiple of heads, got 16 and 3"):
        build(TransformerNetwork, {"heads": 3}, "here")
    assert "at most 256" in str(TransformerNetwork().skip(Problem("classification", (3, 32, 32), 10)))
