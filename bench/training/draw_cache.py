"""Caches the layers that a draw does not change.

Draws of one cell differ in few layers: MC dropout's first mask comes after a ResNet's first stage, a last-layer
posterior changes only the last layer. Each child of a module returns its last output again if its input and its tensors
are the same objects as in its last call. This works for any method: where noise enters, the input or the tensors are
new objects, and all later layers are computed.

It requires layers that are functions of one input and their tensors, as modules in evaluation mode are.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from bench.training.network_factory import HiddenPlace


@contextmanager
def cached_layers(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Let the layers of these modules return their last output if nothing has changed."""
    layers = list({id(layer): layer for module in modules for layer in _layers(module)}.values())
    for layer in layers:
        layer.forward = _LastCall(layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward  # uncovers the method of the class


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        if isinstance(child, HiddenPlace):
            continue
        # Lists are never called themselves, and what contains a place of `hidden` depends on more than its input.
        inside = any(isinstance(part, HiddenPlace) for part in child.modules())
        if inside or isinstance(child, (nn.ModuleList, nn.ModuleDict)):
            yield from _layers(child)
        else:
            yield child


class _LastCall:
    """The `forward` of a layer that remembers its last call."""

    def __init__(self, layer: nn.Module) -> None:
        self._layer = layer
        self._compute = layer.forward
        # References, not only ids: the id of a deleted tensor may be given to another.
        self._tensors: list[Tensor] = []
        self._versions: list[int] = []

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if named or len(inputs) != 1 or not isinstance(inputs[0], Tensor):
            return self._compute(*inputs, **named)
        tensors = [inputs[0], *self._layer.parameters(), *self._layer.buffers()]
        known = self._tensors[:-1]
        same = len(known) == len(tensors) and all(a is b for a, b in zip(known, tensors, strict=True))
        if same and [t._version for t in self._tensors] == self._versions:
            return self._tensors[-1]
        output = self._compute(inputs[0])
        if isinstance(output, Tensor):
            self._tensors = [*tensors, output]
            self._versions = [tensor._version for tensor in self._tensors]
        return output
