"""Runs a function of one network on all slots of a stack, traced and compiled where that is faster."""

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.utils import _pytree as pytree

from bench.errors import UserError
from bench.training.compiled_graphs import compiled
from bench.training.member import Member
from bench.training.tracing import Call, FlatCall, flat_call, trace

GRAPHS_REMEMBERED = 64

_remembered: dict[Hashable, FlatCall] | None = None


@contextmanager
def graphs_remembered() -> Iterator[None]:
    """Inside the block, a stack takes the graph of an earlier one if it would trace the same.

    The block should be as short as that: whoever works in a notebook may change a function between two runs.
    """
    global _remembered  # noqa: PLW0603  # stacks are made at many places inside the block
    if _remembered is not None:  # of an outer block
        yield
        return
    _remembered = {}
    try:
        yield
    finally:
        _remembered = None


class StackedCalls:
    """The functions of one stack, each traced at its first call, and those named in `compiling` compiled."""

    def __init__(self, model: Member, module: nn.Module, *, large: bool, compiling: Iterable[str]) -> None:
        self.model, self.module, self.large, self.compiling = model, module, large, set(compiling)
        self._calls: dict[str, FlatCall] = {}

    def __call__(self, name: str, function: Call, *columns: Any) -> Any:
        """Call `function(model, module, ...)` for every slot; columns have one entry per slot in front."""
        return self.prepared(name, function, columns)(*columns)

    def prepared(self, name: str, function: Call, columns: tuple[Any, ...]) -> FlatCall:
        """Return the function of all slots, for columns of these shapes."""
        if name not in self._calls:
            self._calls[name] = self._prepare(name, partial(function, self.model, self.module), columns)
        return self._calls[name]

    def clear(self) -> None:
        """Forget all traces: the number of slots has changed."""
        self._calls.clear()

    def _prepare(self, name: str, one: partial[Any], columns: tuple[Any, ...]) -> FlatCall:
        if self.large and name not in self.compiling:
            return flat_call(_only_slot(one), columns)
        known = {} if _remembered is None else _remembered
        key = (name, one.func, name in self.compiling, *self._meaning(columns))
        if key in known:
            known[key] = call = known.pop(key)  # the last used is the last one
            return call
        graph, call = trace(_only_slot(one) if self.large else vmap(one), columns)
        if name in self.compiling:
            try:
                call = FlatCall(compiled(graph, pytree.tree_leaves(columns)), call.given, call.returned)
            except Exception as error:  # of any type: the compiler does not work
                warnings.warn(f"compiling failed, training continues without: {error!r:.200}", stacklevel=2)
                self.compiling.clear()
                return call
        known[key] = call
        if len(known) > GRAPHS_REMEMBERED:
            del known[next(iter(known))]
        return call

    def _meaning(self, columns: tuple[Any, ...]) -> tuple[Hashable, ...]:
        """Return all that a graph depends on; two stacks with the same would trace the same."""
        leaves, structure = pytree.tree_flatten(columns)
        shapes = tuple((leaf.shape, leaf.stride(), leaf.dtype, leaf.device) for leaf in leaves)
        threads = torch.get_num_threads() > 1
        return (self.model.graph_key(), _attributes(self.module), str(structure), shapes, self.large, threads)


def _attributes(module: nn.Module) -> Hashable:
    """Return what may become a constant of a graph: whatever the parts of a network hold besides their tensors."""
    tensors = {"_parameters", "_buffers", "_modules", "training"}
    return tuple(
        (type(part), tuple((name, repr(value)) for name, value in vars(part).items() if name not in tensors))
        for part in module.modules()
    )


def _only_slot(one: Call) -> Callable[..., Any]:
    """Return a network's function for a stack of one slot, without `vmap`."""

    def call(*columns: Any) -> Any:
        result = one(*pytree.tree_map(lambda t: t[0], columns))
        return pytree.tree_map(lambda t: t.unsqueeze(0), result)

    return call


def require_same_tensors(hook: str, before: dict[str, Tensor], after: dict[str, Tensor]) -> None:
    """Raise if a hook adds, drops or reshapes tensors, which would be lost or reach another member."""
    shapes = [{name: (tuple(t.shape[1:]), t.dtype) for name, t in tensors.items()} for tensors in (before, after)]
    for name in sorted(shapes[0].keys() | shapes[1].keys()):
        old, new = shapes[0].get(name), shapes[1].get(name)
        if old != new:
            text = ["missing" if s is None else f"{s[1]} of shape {list(s[0])}" for s in (old, new)]
            raise UserError(f"{hook}: it must return the tensors it was given: {name} was {text[0]} and is {text[1]}")
