import pytest
import torch
from torch import nn

from bench.api import Problem
from bench.errors import UserError
from bench.networks._residual import ResidualNetwork
from bench.networks.conv import ConvNetwork
from bench.networks.mlp import MLP, MLPNetwork
from bench.networks.residual_mlp import ResidualMLPNetwork
from bench.networks.resnet8 import ResNet8Network
from bench.networks.transformer import Attention, TransformerNetwork
from bench.plugins.building import build
from bench.training.network_factory import network_factory


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
    assert isinstance(network_factory(ResNet8Network(), images)(10), ResidualNetwork)
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
