"""A network is the module that methods train: an architecture with its options, for problems of some shapes."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from bench.api.dataset import Problem

if TYPE_CHECKING:
    from torch import Tensor, nn

Hidden = Callable[["Tensor"], "Tensor"]


def unchanged(activation: "Tensor") -> "Tensor":
    """Return the activation itself: the `hidden` of a network without noise."""
    return activation


class Network:
    """A name in `uqbench list networks`. Subclass it as a frozen dataclass whose fields are its options.

    Methods put noise on hidden activations through one argument of the module: `forward(x, hidden=unchanged)` passes
    every hidden activation through `hidden` before the next layer. In a module without that argument the `nn.Dropout`
    layers are these places, and do nothing else.
    """

    version: ClassVar[str] = "1"  # part of a cell's key: raise it when the numbers change
    later: ClassVar[frozenset[str]] = frozenset()  # options that came later: no part of a key at their defaults
    stackable: ClassVar[bool] = True  # False: trains and draws alone, for modules that `torch.func.vmap` cannot take
    expected_failures: ClassVar[Mapping[str, str]] = {}  # checks of 'uqbench verify' it fails, and why that is right

    def skip(self, problem: Problem) -> str | None:
        """Return why this network cannot do the problem, or None."""
        return None

    def build(self, problem: Problem, outputs: int) -> "nn.Module":
        """Return a freshly initialised module: rows `[n, *problem.inputs]` in, `[n, outputs]` out.

        The harness seeds torch's global generator before, so the usual initialisers of torch are right.
        """
        raise NotImplementedError
