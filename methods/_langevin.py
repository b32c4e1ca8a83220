"""Langevin dynamics and the samples it leaves behind.

    w <- w - step * g + sqrt(2 step / N) eps,   g = grad U(w) / N

whose stationary distribution is exp(-U(w)) for small steps (Welling and Teh's step size is 2 step / N). With a
preconditioner G, a step becomes step * G. `U / N` is what the methods' loss estimates from one batch.
"""

from dataclasses import replace

import torch
from torch import Tensor

from bench.api import Net, Step, Tape, Tensors, choose
from bench.methods._bayes import own

EPOCHS = "epochs"  # so many were remembered


def langevin(
    net: Net, gradient: Tensors, size: Tensor | float, step: Step, tape: Tape, preconditioner: Tensors | None = None
) -> dict[str, Tensor]:
    """Return all trained tensors after one step of the dynamics."""
    moved = {}
    for name, w in net.params.items():
        scale = size * (1.0 if preconditioner is None else preconditioner.get(name, 1.0))
        noise = torch.as_tensor(2 * scale / step.rows).sqrt()
        moved[name] = w - scale * gradient[name] + noise * tape.normal(w.shape)
    return moved


def first_samples(net: Net, count: int) -> dict[str, Tensor]:
    """Return room for the samples: parameters and floating-point buffers (of batch norm)."""
    room = {name: t.expand(count, *t.shape).clone() for name, t in _sampled(net).items()}
    return room | {EPOCHS: torch.zeros((), device=next(iter(room.values())).device)}


def kept_samples(net: Net, progress: Tensor, cycles: int, each: int, exploration: Tensor | float) -> dict[str, Tensor]:
    """Return the samples with the present one in its place.

    The last share `1 - exploration` of every cycle has `each` places; a later epoch of the same place replaces an
    earlier one. Places to come are filled as well, and by the first epoch all of them, so that none holds an untrained
    network where there are fewer epochs than places.
    """
    position = progress * cycles - 1e-4  # the end of a cycle belongs to it, whatever the rounding
    cycle = position.floor()
    within = ((position - cycle - exploration) / (1 - exploration)).clamp(min=0)
    place = cycle * each + (within * each).floor()
    samples = {EPOCHS: net.memory[EPOCHS] + 1}
    for name, tensor in _sampled(net).items():
        replaced = (torch.arange(cycles * each, device=tensor.device) >= place) | (net.memory[EPOCHS] == 0)
        samples[name] = torch.where(replaced.view(-1, *[1] * tensor.ndim), tensor, net.memory[name])
    return samples


def sampled(net: Net, tape: Tape) -> Net:
    """Return the network of one of the kept samples."""
    count = net.memory[next(iter(own(net)))].shape[0]
    number, memory = tape.integer(count), net.memory
    own_params = {name: choose(memory[name], number) for name in own(net)}
    buffers = {name: choose(memory[name], number) if name in memory else b for name, b in net.buffers.items()}
    return replace(net.with_params(own_params), buffers=buffers)


def _sampled(net: Net) -> dict[str, Tensor]:
    return own(net) | {name: b for name, b in net.buffers.items() if b.is_floating_point()}
