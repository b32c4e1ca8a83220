"""What a network's training and drawing cost: counted on one call, without a clock."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from bench.api import Net
from bench.api.optim import Step, make_optimizer
from bench.api.tape import BlankTape, TapeLength, no_other_randomness
from bench.training.member import Member, augmented, bound, start


@dataclass(frozen=True)
class Cost:
    """What one call of each kind needs, measured on one member."""

    step: TapeLength
    epoch: TapeLength
    step_bytes: int  # tensors written in one step and one validation pass: an upper bound of their memory
    flops_per_row: float


class _BytesWritten(TorchDispatchMode):
    """Adds up the size of every tensor that an operation makes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not type it
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, Tensor):
                self.total += tensor.numel() * tensor.element_size()
        return result


def work(call: Callable[[], object]) -> tuple[int, float]:
    """Carry out a call; return the bytes it wrote and the floating-point operations it took."""
    with torch.no_grad(), _BytesWritten() as written, FlopCounterMode(display=False) as flops:
        call()
    return written.total, float(flops.get_total_flops())


def measure(member: Member) -> Cost:
    """Run one member once on blank tapes to learn what it reads, writes and computes."""
    rows, first = member.rows, start(member)
    method = bound(member.method, first.values)
    net = Net(first.module, first.params, first.buffers, first.memory)
    batch = rows.batch(rows.train[: member.batch_rows])
    step_tape, epoch_tape = BlankTape(rows.x.device), BlankTape(rows.x.device)
    optimizer = make_optimizer(member.training.optimizer, member.training.momentum)
    one = torch.tensor(1.0, device=rows.x.device)
    first.module.train()
    augmented(member, batch.x, step_tape)
    with torch.no_grad(), no_other_randomness("loss, update or remember"):
        once = method.loss(_copied(net), batch, BlankTape(rows.x.device))
        written, flops = work(lambda: method.loss(net, batch, step_tape))
        again = method.loss(_copied(net), batch, BlankTape(rows.x.device))
        method.update(net, first.params, optimizer, first.state, Step(*[one] * 6), step_tape)
        first.module.eval()
        method.remember(net, one, epoch_tape)
    if once.shape != ():
        raise ValueError(f"loss must return one number, got a tensor of shape {tuple(once.shape)}")
    if not torch.equal(once, again) and torch.isfinite(once):
        raise RuntimeError(
            "loss gave two values for the same network, batch and tape; take random numbers from the tape"
        )
    # Backward writes about twice what forward does; beside it stand parameters, moments and best weights.
    held = sum(p.numel() * p.element_size() for p in first.params.values())
    step_bytes = max(3 * written, written * len(rows.validation) // member.batch_rows) + 8 * held
    return Cost(step_tape.length, epoch_tape.length, step_bytes, flops / member.batch_rows)


def _copied(net: Net) -> Net:
    return Net(net.module, net.params, {name: b.clone() for name, b in net.buffers.items()}, net.memory)
