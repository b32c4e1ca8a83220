"""Residual networks for images, compared with modules of torch's own layers and with torchvision's."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bench.api import Problem
from bench.errors import UserError
from bench.machine.torchvision_compat import import_torchvision
from bench.networks._residual import NormalisedConvolution, PaddedShortcut
from bench.networks.resnet8 import ResNet8Network
from bench.networks.resnet18 import ResNet18Network
from bench.plugins.building import build

CIFAR = Problem("classification", (3, 32, 32), 10)
CODE: dict[str, Any] = {"width": 4, "shortcut": "padding", "initialisation": "he", "noise_at": "last-branch"}


def resnet8(**options: Any) -> nn.Module:
    """Return a ResNet8 for CIFAR-10."""
    return ResNet8Network(**options).build(CIFAR, 10)


def count(module: nn.Module) -> int:
    """Return the number of parameters."""
    return sum(p.numel() for p in module.parameters())


class PlainBlock(nn.Module):
    """A basic block as it is usually written, with a shortcut of subsampling and zeros."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.stride = after // before
        self.conv1 = nn.Conv2d(before, after, 3, self.stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's activation."""
        short = nn.AvgPool2d(1, self.stride)(x)
        short = short if self.stride == 1 else torch.cat([short, torch.zeros_like(short)], 1)
        branch = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        return torch.relu(branch + short)


def plain_resnet8(width: int) -> nn.Sequential:
    """Return the network of torch's layers; tensors are in the order of ours."""
    stem = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    blocks = [PlainBlock(width, width), PlainBlock(width, 2 * width), PlainBlock(2 * width, 4 * width)]
    return nn.Sequential(*stem, *blocks, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(4 * width, 10))


def test_of_width_4_without_parameters_in_shortcuts_it_is_a_plain_module_of_torchs_layers() -> None:
    torch.manual_seed(4)
    ours, plain = resnet8(**CODE), plain_resnet8(4)
    assert count(ours) == count(plain) == 5006
    plain.load_state_dict(dict(zip(plain.state_dict(), ours.state_dict().values(), strict=True)))
    x = torch.randn(6, 3, 32, 32)
    with torch.no_grad():
        for _ in range(2):  # the second time after an update of the statistics
            torch.testing.assert_close(ours(x), plain(x), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(ours.eval()(x), plain.eval()(x), atol=1e-5, rtol=1e-4)


def test_noise_at_the_last_branch_acts_behind_its_second_norm_and_before_the_shortcut() -> None:
    torch.manual_seed(4)
    ours, plain = resnet8(**CODE), plain_resnet8(4)
    plain.load_state_dict(dict(zip(plain.state_dict(), ours.state_dict().values(), strict=True)))
    x, seen, norms, inputs = torch.randn(6, 3, 32, 32), [], [], []
    last = plain[5]
    last.register_forward_hook(lambda module, given, output: inputs.append(given[0]))
    last.get_submodule("norm2").register_forward_hook(lambda module, given, output: norms.append(output))

    def look(h: Tensor) -> Tensor:
        seen.append(h)
        return torch.zeros_like(h)

    with torch.no_grad():
        plain(x)
        without = ours(x, hidden=look)
        (before,), (branch,), (given,) = inputs, norms, seen
        torch.testing.assert_close(given, branch, atol=1e-5, rtol=1e-4)
        # Without the branch the shortcut alone is left: every second pixel of 8 channels, and 8 channels of zeros.
        features = torch.cat([before[:, :, ::2, ::2].relu().mean((2, 3)), torch.zeros(6, 8)], 1)
        torch.testing.assert_close(without, plain[-1](features), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("network", [ResNet8Network, ResNet18Network])
def test_hes_initial_weights_have_his_variances(network: type[ResNet8Network]) -> None:
    torch.manual_seed(4)
    module = network(width=16, initialisation="he").build(CIFAR, 10)
    for part in module.modules():
        if isinstance(part, (nn.Conv2d, nn.Linear)):
            size, weights = part.weight.numel(), part.weight.detach()
            variance = 2 * 10 / size  # of the linear layer: 2 / inputs
            if isinstance(part, nn.Conv2d):
                variance = 2 / (part.kernel_size[0] ** 2 * part.out_channels)
            # The relative standard error of the variance of n normals is sqrt(2 / n).
            assert weights.square().mean() == pytest.approx(variance, rel=5 * (2 / size) ** 0.5)
            assert weights.mean().abs() < 5 * (variance / size) ** 0.5
        if isinstance(part, nn.BatchNorm2d):
            assert (part.weight == 1).all()
        if isinstance(part, (nn.BatchNorm2d, nn.Linear)):
            assert (part.bias == 0).all()


def test_resnet8_has_the_parameters_of_the_paper_of_he_et_al() -> None:
    module = resnet8()
    # stem 3*16*9, blocks (16-16, 16-32, 32-64, two 3x3 each), 1x1 shortcuts, norms (weight and bias), head
    convolutions = 432 + 2 * 2304 + 4608 + 9216 + 18432 + 36864 + 512 + 2048
    norms = 2 * (16 + 2 * 16 + 3 * 32 + 3 * 64)
    assert count(module) == convolutions + norms + 650 == 78042


def test_resnet8_halves_the_image_twice_and_shows_its_three_hidden_activations() -> None:
    seen: list[tuple[int, ...]] = []

    def look(h: torch.Tensor) -> torch.Tensor:
        seen.append(tuple(h.shape))
        return h

    assert resnet8()(torch.zeros(2, 3, 32, 32), hidden=look).shape == (2, 10)
    assert seen == [(2, 16, 32, 32), (2, 32, 16, 16), (2, 64, 8, 8)]


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
    module = resnet8()
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
    assert torch.equal(module.get_parameter("head.weight"), head.weight)
    assert torch.equal(module.get_parameter("head.bias"), head.bias)


def test_a_shortcut_of_padding_has_no_parameters_and_keeps_every_second_pixel() -> None:
    padded, projected = resnet8(shortcut="padding"), resnet8()
    assert count(projected) - count(padded) == 16 * 32 + 32 * 64 + 2 * (32 + 64)
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
    assert count(ResNet18Network().build(CIFAR, 10)) == 11_173_962  # of the usual CIFAR form


def torchvision_models() -> Any:
    """Return torchvision's models, or skip the test where it is not installed."""
    try:
        return import_torchvision().models
    except UserError as error:
        pytest.skip(str(error))


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
