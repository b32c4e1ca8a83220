"""Builds the network that a suite names."""

import math

from bench.api import NewNetwork, Problem
from bench.errors import UserError
from bench.networks.conv import SmallConvolutional
from bench.networks.mlp import MLP
from bench.networks.resnet8 import ResNet8
from bench.spec.protocol import Architecture


def network_factory(network: Architecture, problem: Problem) -> NewNetwork:
    """Return a function that builds a new network for the problem, given the number of outputs."""
    if network.kind != "mlp" and len(problem.inputs) != 3:
        expected = "needs images [channels, height, width]"
        raise UserError(f"network {network.kind!r} {expected}, not rows of {problem.inputs}")
    if network.kind == "resnet8":
        return lambda outputs: ResNet8(problem.inputs[0], outputs)
    if network.kind == "conv":
        _, height, width = problem.inputs
        if not min(height, width) >> len(network.hidden):
            raise UserError(f"network 'conv' halves {height} x {width} images too often: give 'hidden' fewer layers")
        return lambda outputs: SmallConvolutional(problem.inputs, network.hidden, outputs, network.activation)
    size = math.prod(problem.inputs)
    return lambda outputs: MLP(size, network.hidden, outputs, network.activation)
