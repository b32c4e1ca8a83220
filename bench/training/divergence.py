"""Finds the first value of a training that is not finite, by training the network again and looking at every step."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from bench.api import Batch, Method, Net, Tape, options
from bench.training.fit import train_again
from bench.training.flops import measure
from bench.training.limits import Limits, is_large
from bench.training.member import Fitted, Member, Parts, Tensors, advance
from bench.training.stacked_calls import StackedCalls
from bench.training.tracing import Call, FlatCall

Look = Callable[[str, Tensor], None]  # at a named value

# A training that went on for longer is not repeated to see where it ended: a few seconds.
STEPS, STEPS_OF_A_LARGE_NETWORK = 5_000, 20


class _FoundError(Exception):
    """The first value that is not finite."""


def first_not_finite(member: Member, fitted: Fitted) -> str:
    """Return the first value that was not finite, and where: 'epoch 3, step 2: the gradient of layers.0.weight'.

    Empty if the training is too long to be repeated, or comes to another end without `vmap`.
    """
    large = is_large(measure(member).flops_per_row, Limits())
    if fitted.epochs * member.steps_per_epoch > (STEPS_OF_A_LARGE_NETWORK if large else STEPS):
        return ""
    try:
        train_again(member, _WatchedCalls)
    except _FoundError as found:
        return str(found)
    return ""


def name_not_finite(net: Net) -> str:
    """Return the first tensor of a network that holds NaN or infinity, or '' if all are finite."""
    for part in ("params", "buffers", "memory"):
        for name, tensor in getattr(net, part).items():
            if not _finite(tensor):
                return f"{part}[{name!r}]"
    return ""


class _WatchedCalls(StackedCalls):
    """The calls of a stack of one network; raises at the first result that is not finite."""

    steps = 0

    def prepared(self, name: str, function: Call, columns: tuple[Any, ...]) -> FlatCall:
        call = super().prepared(name, function, columns)

        def run(leaves: list[Tensor]) -> Sequence[Tensor]:
            results = call.run(leaves)
            stepping = name.startswith("advance")  # also "advance last", of a partial batch
            self.steps += stepping
            if all(_finite(tensor) for tensor in results):
                return results
            epoch, step = divmod(self.steps - 1, self.model.steps_per_epoch)
            place = f"epoch {epoch + 1}, step {step + 1}"
            if stepping:
                arguments = pytree.tree_unflatten([leaf[0] for leaf in leaves], call.given)
                raise _FoundError(f"{place}: {_in_step(self.model, self.module, *arguments)}")
            what = "the validation loss" if name.startswith("validate") else "the result of remember"
            raise _FoundError(f"after {place}: {what}")

        return replace(call, run=run)


def _in_step(member: Member, module: nn.Module, tensors: Parts, *rest: Any) -> str:
    """Return the first value of one step that is not finite: outputs of a layer, the loss, a gradient or an update."""
    seen: list[str] = []

    def look(what: str, value: Tensor) -> None:
        if not _finite(value):
            seen.append(what)

    with _watched_layers(module, look):
        spied = _spy(member.method, look)
        changed, *_ = advance(replace(member, method=spied), module, tensors, *rest, alone=True)
    for name, tensor in changed.items():
        look(f"{name} after update", tensor)
    return seen[0] if seen else "the state of the optimiser"


def _spy(method: Method, look: Look) -> Method:
    """Return the method with a `loss` and an `update` that show their values."""
    kind: Any = type(method)
    losses: list[float] = []

    class Spy(kind):  # type: ignore[misc]  # a class that is known only now
        def loss(self, net: Net, batch: Batch, tape: Tape) -> Tensor:
            value: Tensor = super().loss(net, batch, tape)
            look("the loss, though all layers had finite outputs", value)
            losses.append(float(value.detach()))
            return value

        def update(self, net: Net, gradient: Tensors, *rest: Any) -> Any:
            for name, tensor in gradient.items():
                look(f"the gradient of {name}, though the loss was {losses[-1]:.3g}", tensor)
            return super().update(net, gradient, *rest)

    spy: Method = object.__new__(Spy)
    for name, value in options(method).items():
        object.__setattr__(spy, name, value)
    return spy


@contextmanager
def _watched_layers(module: nn.Module, look: Look) -> Iterator[None]:
    """Look at the outputs of every layer inside the block."""

    def watch(name: str, layer: nn.Module) -> Any:
        def see(_: nn.Module, inputs: Any, outputs: Any) -> None:
            if isinstance(outputs, Tensor):
                look(f"the outputs of layer {name!r} ({type(layer).__name__})", outputs)

        return layer.register_forward_hook(see)

    hooks = [watch(name, layer) for name, layer in module.named_modules() if not list(layer.children())]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _finite(value: Any) -> bool:
    return not isinstance(value, Tensor) or not value.is_floating_point() or bool(value.isfinite().all())
