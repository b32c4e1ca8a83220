import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bench.api import Network, Problem
from bench.networks.mlp import MLPNetwork
from bench.networks.resnet8 import ResNet8Network
from bench.training.flops import count_work


@pytest.mark.parametrize("network", [MLPNetwork((50, 20)), ResNet8Network()], ids=str)
def test_operations_are_those_of_torchs_own_counter(network: Network) -> None:
    module = network.build(Problem("classification", (3, 8, 8), 4), 4).eval()
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(x)
    assert count_work(lambda: module(x))[1] == counter.get_total_flops() > 0


def test_bytes_are_those_of_all_results() -> None:
    x = torch.zeros(3, 4)
    assert count_work(lambda: (x + 1).max(dim=1))[0] == 4 * 12 + (4 + 8) * 3
