"""The function that evaluates many draws of some networks in one call: `vmap` over draws and over networks."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.func import vmap

from bench.api import Method, Net, Task
from bench.api.tape import Tape
from bench.training.member import states_itself

Tensors = tuple[Mapping[str, Tensor], ...]  # params, buffers, memory
Call = Callable[[Tensors, Tensor, Tensor, Tensor], Tensor]  # of tensors, rows, normals and uniforms


def tensors_of(net: Net) -> Tensors:
    """Return all tensors of a network."""
    return net.params, net.buffers, net.memory


def call_of(method: Method, task: Task, networks: Sequence[Net]) -> tuple[Call, Tensors]:
    """Return a call that gives `[networks, draws, rows, outputs]`, and the tensors of the networks, stacked.

    The tapes of a call have the networks as their first axis and the draws of each as their second one.
    """
    module = networks[0].module.eval()
    softmax = task == "classification" and not states_itself(method)

    def one(tensors: Tensors, x: Tensor, normals: Tensor, uniforms: Tensor) -> Tensor:
        outputs = method.draw(Net(module, *tensors), x, Tape(normals, uniforms))
        return outputs.softmax(-1) if softmax else outputs

    def over_turns(tensors: Tensors, x: Tensor, normals: Tensor, uniforms: Tensor) -> Tensor:
        # `vmap` looks at every tensor that it is given, so it is given only those that differ between draws.
        turn: Callable[[Tensor, Tensor], Tensor] = vmap(lambda *tape: one(tensors, x, *tape))
        return turn(normals, uniforms)

    def of_one_network(tensors: Tensors, x: Tensor, normals: Tensor, uniforms: Tensor) -> Tensor:
        if normals.shape[1] == 1:
            return one(tensors, x, normals[0, 0], uniforms[0, 0])[None, None]
        return over_turns(tensors, x, normals[0], uniforms[0])[None]

    if len(networks) == 1:
        return of_one_network, tensors_of(networks[0])
    parts = zip(*(tensors_of(network) for network in networks), strict=True)
    stacked = tuple({name: torch.stack([part[name] for part in same]) for name in same[0]} for same in parts)
    return vmap(over_turns, in_dims=(0, None, 0, 0)), stacked
