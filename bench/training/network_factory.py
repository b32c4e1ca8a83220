"""Builds the network of a suite, with an argument `hidden` whether its module has one or not.

A module whose `forward(x, hidden=...)` has the argument is used as it is. Any other is wrapped: its `nn.Dropout` layers
become the places where `hidden` acts. They drop nothing by themselves, since the method says where the noise is and
random numbers come from its tape.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from bench.api import Hidden, Network, NewNetwork, Problem, unchanged
from bench.errors import UserError

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def network_factory(network: Network, problem: Problem) -> NewNetwork:
    """Return a function that builds a new network for the problem, given the number of outputs."""
    if reason := network.skip(problem):
        raise UserError(f"{type(network).__name__} {reason}")

    def new_network(outputs: int) -> nn.Module:
        module = with_hidden(network.build(problem, outputs))
        if not network.stackable:
            module.runs_alone = True  # type: ignore[assignment]  # torch types every attribute as a tensor or module
        return module

    return new_network


def with_hidden(module: nn.Module) -> nn.Module:
    """Return a module whose forward has the argument `hidden`: itself, or wrapped."""
    return module if "hidden" in inspect.signature(module.forward).parameters else WithHidden(module)


class _Current:
    """The `hidden` of the call that is running."""

    def __init__(self) -> None:
        self.hidden: Hidden = unchanged


class HiddenPlace(nn.Module):
    """Stands where a dropout layer was."""

    def __init__(self, current: _Current) -> None:
        super().__init__()
        self._current = current

    def forward(self, x: Tensor) -> Tensor:
        """Return the activation as the method changes it."""
        return self._current.hidden(x)


class WithHidden(nn.Module):
    """A module whose dropout layers are the places where `hidden` acts."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._current = _Current()
        self.places = _replace_dropout(module, self._current)
        self.module = module

    def forward(self, x: Tensor, hidden: Hidden | None = None) -> Tensor:
        """Return the outputs of the module."""
        if hidden is not None and not self.places:
            name = type(self.module).__name__
            raise UserError(
                f"the network has no place for noise on hidden activations: {name}.forward has no argument 'hidden' "
                "and contains no nn.Dropout layer; add one of them, or use a method that puts noise on weights"
            )
        self._current.hidden = unchanged if hidden is None else hidden
        try:
            with _no_fused_attention(bool(self.places)):
                outputs: Tensor = self.module(x)
        finally:
            self._current.hidden = unchanged
        return outputs


def _replace_dropout(module: nn.Module, current: _Current) -> int:
    """Replace the dropout layers inside of a module; return how many places there are."""
    count = 0
    for parent in list(module.modules()):
        for name, child in list(parent._modules.items()):  # one layer may have two names
            if isinstance(child, DROPOUT):
                setattr(parent, name, HiddenPlace(current))
                count += 1
        if isinstance(parent, nn.MultiheadAttention):
            parent.dropout = 0.0  # of the attention weights: a function inside of it that no method can reach
    return count


@contextmanager
def _no_fused_attention(needed: bool) -> Iterator[None]:
    """Evaluate transformer layers by their parts: the fused kernel of the evaluation mode leaves dropout layers out."""
    mha: Any = torch.backends.mha
    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(before and not needed)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(before)


def runs_alone(module: nn.Module) -> bool:
    """Return whether a network must not be part of a stack: its plug-in says that it cannot be."""
    return any(getattr(part, "runs_alone", False) for part in module.modules())
