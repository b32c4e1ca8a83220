"""The small promises of the contracts."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bench.api import Batch, Dataset, Method, Net, Report, Split, as_float32, float_options, options
from bench.api.tape import BlankTape
from bench.methods.mcni_learned import MCNILearned


def net(module: nn.Module) -> Net:
    return Net(module, {k: p.detach() for k, p in module.named_parameters()}, dict(module.named_buffers()))


def test_data_loss_is_torchs() -> None:
    outputs, classes = torch.randn(6, 3), torch.tensor([0, 1, 2, 2, 1, 0])
    rows = torch.tensor(6.0)
    assert torch.allclose(
        Batch("classification", outputs, classes, rows).loss(outputs), F.cross_entropy(outputs, classes)
    )
    targets = torch.randn(6)
    assert torch.allclose(
        Batch("regression", outputs, targets, rows).loss(outputs[:, :1]), F.mse_loss(outputs[:, 0], targets)
    )


@pytest.mark.slow
def test_a_net_is_a_pure_function_of_its_tensors() -> None:
    module = nn.Linear(2, 1)
    one = net(module)
    changed = one.with_params({"weight": torch.zeros(1, 2)})
    x = torch.ones(3, 2)
    torch.testing.assert_close(changed(x), one.params["bias"].expand(3, 1))
    torch.testing.assert_close(one(x), module(x).detach())
    with pytest.raises(KeyError, match="no parameter weigth; it has weight, bias"):
        one.with_params({"weigth": torch.zeros(1, 2)})


def test_weights_are_matrices_and_kernels_only_and_a_methods_own_tensors_never_reach_the_module() -> None:
    module = nn.Sequential(nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2), nn.Flatten(), nn.Linear(2, 1))
    plain = net(module)
    one = Net(module, {**plain.params, "alpha:0.weight": torch.ones(2, 1, 3)}, plain.buffers)
    assert set(one.weights) == {"0.weight", "3.weight"}
    module.eval()
    assert one(torch.zeros(4, 1, 3)).shape == (4, 1)


def test_the_default_hooks_are_those_of_an_ordinary_network() -> None:
    module, method, tape = nn.Linear(2, 1), Method(), BlankTape()
    one = net(module)
    batch = Batch("regression", torch.ones(3, 2), torch.zeros(3), torch.tensor(3.0))
    assert torch.equal(method.draw(one, batch.x, tape), one(batch.x))
    assert torch.equal(method.loss(one, batch, tape), method.validate(one, batch))
    assert method.init(one, tape) == method.memory(one, tape) == method.finish(one, batch, None, tape) == {}
    assert method.remember(one, torch.tensor(0.5), tape) == {}
    assert tape.length.total == 0


def test_options_are_the_fields_and_floats_may_vary_in_a_stack() -> None:
    method = MCNILearned(alpha=0.2, granularity="layer")
    assert options(method).items() >= {"alpha": 0.2, "granularity": "layer", "penalty": 0.0}.items()
    assert float_options(method) == {"alpha": 0.2, "penalty": 0.0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.alpha = 1.0  # type: ignore[misc]  # that is the point


def test_a_split_tells_its_problem() -> None:
    x = np.zeros((4, 1, 8, 8))
    problem = Split("classification", x, np.zeros(4), x, np.zeros(4), classes=10).problem
    assert (problem.task, problem.inputs, problem.outputs) == ("classification", (1, 8, 8), 10)
    assert Split("regression", x, np.zeros(4), x, np.zeros(4)).problem.outputs == 1


def test_what_a_plug_in_must_write_says_so() -> None:
    with pytest.raises(NotImplementedError):
        Dataset().load(0)
    with pytest.raises(NotImplementedError):
        Report().section(None)  # type: ignore[arg-type]  # never looked at
    assert Dataset().skip() is None


def test_arrays_become_tensors_that_share_nothing() -> None:
    array = np.ones(3)
    tensor = as_float32(array)
    array[0] = 5
    assert tensor.dtype == torch.float32
    assert tensor.tolist() == [1, 1, 1]
