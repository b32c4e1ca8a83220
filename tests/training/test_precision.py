from typing import Any

import pytest
import torch

from bench.api import Network
from bench.methods.mc_dropout import MCDropout
from bench.networks.mlp import MLPNetwork
from bench.networks.resnet8 import ResNet8Network
from bench.training import precision
from bench.training.limits import Limits
from tests.fixtures.training import FitInOrder, MakeMember

RESNET = ResNet8Network()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "network"),
    [("stack", MLPNetwork((20,))), ("plain", MLPNetwork((20,))), ("plain", RESNET)],
    ids=["mlp, stack", "mlp, plain", "resnet8, plain"],
)
def test_a_training_in_bfloat16_keeps_weights_in_float32_and_ends_near_that_in_float32(
    path: Any, network: Network, member: MakeMember, fit_in_order: FitInOrder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "computes_bfloat16", lambda device: True)  # no warning, whatever runs this
    settings = {"network": network, "epochs": 3, "optimizer": "sgd", "learning_rate": 0.001}
    fine, coarse = (
        fit_in_order([member(MCDropout(), precision=name, **settings)], Limits(path=path))[0]
        for name in ("float32", "bfloat16")
    )
    assert all(tensor.dtype == fine.params[name].dtype for name, tensor in coarse.params.items())
    gaps = {name: float((tensor - fine.params[name]).abs().max()) for name, tensor in coarse.params.items()}
    assert max(gaps.values()) > 0, "nothing was computed in another precision"
    moved = max(abs(a - b) for (a, _), (b, _) in zip(fine.history, coarse.history, strict=True))
    assert moved < 0.02 * fine.history[0][0]  # 8 bits of mantissa


@pytest.mark.slow
def test_hardware_that_only_emulates_is_told(member: MakeMember, fit_in_order: FitInOrder, monkeypatch: Any) -> None:
    monkeypatch.setattr(precision, "computes_bfloat16", lambda device: False)
    with pytest.warns(UserWarning, match="emulates"):
        fit_in_order([member(MCDropout(), precision="bfloat16", epochs=1)])


def test_what_the_processor_says_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    for able in ({"amx_bf16": True}, {"avx512_bf16": True}, {"amx_bf16": False}):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda able=able: able)
        assert precision.computes_bfloat16(torch.device("cpu")) == any(able.values())
        assert precision.computes_bfloat16(torch.device("xpu"))  # whatever the processor beside it has
