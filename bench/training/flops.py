"""The cost of training and drawing: bytes and floating-point operations, counted on one call, not timed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from bench.api import Net
from bench.api.optim import Step
from bench.api.tape import BlankTape, TapeLength, no_other_randomness
from bench.errors import UserError
from bench.training.guards import FROM_TAPE, guarded, place_of
from bench.training.member import Member, augment, bind_options, optimizer_of, start
from bench.training.network_factory import runs_alone


@dataclass(frozen=True)
class Cost:
    """The cost of one call of each kind, measured on one member."""

    step: TapeLength
    last_step: TapeLength  # of the smaller last batch of an epoch, where there is one
    epoch: TapeLength
    step_bytes: int  # tensors written in one step and one validation pass: an upper bind_options of their memory
    flops_per_row: float
    alone: bool = False  # the network cannot be part of a stack


class _Work(TorchDispatchMode):
    """Sums the sizes of all tensors that operations return, and their floating-point operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not type it
        self.written, self.flops = 0, 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, Tensor):
                self.written += tensor.numel() * tensor.element_size()
        if (count := flop_registry.get(func.overloadpacket)) is not None:
            self.flops += _flops(count, args, kwargs or {}, result)
        return result


def _flops(count: Callable[..., int], args: Sequence[Any], named: Mapping[str, Any], result: Any) -> int:
    """Return the floating-point operations of a call, by a formula of torch."""
    of_shapes = getattr(count, "__wrapped__", None)
    if of_shapes is None or not isinstance(result, Tensor):
        return count(*args, **named, out_val=result)
    # Torch's wrapper looks for tensors in nested arguments, which takes longer than a draw of a small layer.
    shapes = [_shape(value) for value in args]
    found: int = of_shapes(*shapes, **{name: _shape(value) for name, value in named.items()}, out_shape=result.shape)
    return found


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, Tensor) else value


def count_work(call: Callable[[], object]) -> tuple[int, float]:
    """Call the function; return the bytes it wrote and its floating-point operations."""
    # Torch's own counter, whose formulas are used here, takes several times as long: it knows in which module it is.
    with torch.no_grad(), _Work() as work:
        call()
    return work.written, work.flops


def measure(member: Member) -> Cost:
    """Run one step of one member on blank tapes and count what it reads, writes and computes."""
    rows, first = member.rows, start(member)
    method = bind_options(member.method, first.values)
    batch = rows.batch(rows.train[: member.batch_rows])
    step_tape, last_tape, epoch_tape = (BlankTape(rows.x.device) for _ in range(3))
    optimizer = optimizer_of(member.training)
    one = torch.tensor(1.0, device=rows.x.device)
    first.module.train()
    augment(member, batch.x, step_tape)
    with torch.no_grad(), guarded(first, batch), no_other_randomness("loss, update or remember", rows.x.device):
        once = method.loss(_with_own_buffers(first), batch, BlankTape(rows.x.device))
        written, flops = count_work(lambda: method.loss(first, batch, step_tape))
        again = method.loss(_with_own_buffers(first), batch, BlankTape(rows.x.device))
        method.update(first, first.params, optimizer, first.state, Step(*[one] * 6), step_tape)
        if member.partial_rows:
            smaller = rows.batch(rows.train[: member.partial_rows])
            augment(member, smaller.x, last_tape)
            method.loss(_with_own_buffers(first), smaller, last_tape)
            method.update(first, first.params, optimizer, first.state, Step(*[one] * 6), last_tape)
        first.module.eval()
        method.remember(first, one, epoch_tape)
    if once.shape != ():
        found = f"loss must return one number, got a tensor of shape {tuple(once.shape)}"
        raise UserError(f"{place_of(member.method, 'loss')}: {found}; return its mean over the rows")
    if not torch.equal(once, again) and torch.isfinite(once):
        problem = "loss gave two values for the same network, batch and tape"
        raise UserError(f"{place_of(member.method, 'loss')}: {problem}; keep nothing between calls, and {FROM_TAPE}")
    # Backward writes about twice what forward does; parameters, moments and best weights are kept as well.
    held = sum(p.numel() * p.element_size() for p in first.params.values())
    step_bytes = max(3 * written, written * len(rows.validation) // member.batch_rows) + 8 * held
    lengths = (step_tape.length, last_tape.length, epoch_tape.length)
    return Cost(*lengths, step_bytes, flops / member.batch_rows, runs_alone(first.module))


def _with_own_buffers(net: Net) -> Net:
    return replace(net, buffers={name: b.clone() for name, b in net.buffers.items()})
