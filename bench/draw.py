"""Drawing functions from q: T predictions at every row, vectorised over draws and over the networks of a cell.

Draw t is the same function whatever T is, however the rows are cut, and whatever else is drawn: its random numbers
come from a generator of its own. Drawing changes no state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from bench.api import Array, Method, Net, Task
from bench.member import ROWS_AT_ONCE, Fitted, Tensors, bound, channels_last, float_tensors, work
from bench.reuse import reused_parts
from bench.stack import Limits, is_large, threads
from bench.tape import BlankTape, Tape, TapeLength, generator, no_other_randomness, numbers


@dataclass(frozen=True, eq=False)
class Drawing:
    """Functions to be drawn from the trained networks of one cell."""

    method: Method
    networks: Sequence[Fitted]
    task: Task
    x: Tensor
    seed: int
    draws: int


def draw(job: Drawing, limits: Limits = Limits()) -> Array:
    """Return the drawn values `[T, rows, outputs]`: probabilities, means, or means and variances.

    T is the number asked for; a method whose draws read no random numbers has as many functions as networks.
    """
    job = replace(job, method=bound(job.method, float_tensors(job.method, job.x.device)))
    versions = _versions(job)
    with torch.no_grad(), no_other_randomness("draw"):
        values = _drawn(job, limits)
    if versions != _versions(job):
        raise RuntimeError("draw changed the network's tensors in place; return new ones")
    return values


def _drawn(job: Drawing, limits: Limits) -> Array:
    net = job.networks[0].net
    net.module.eval()
    tape, row_tape = BlankTape(job.x.device), BlankTape(job.x.device)
    few = job.x[:2]
    written, flops = work(lambda: job.method.draw(net, few, tape))
    _check_outputs(job, job.method.draw(net, few[:1], row_tape))
    # Noise that differs from row to row must not repeat in every chunk of rows; a function's own noise must.
    by_row = tape.length != row_tape.length and len(few) > 1
    large = is_large(flops / len(few), limits)

    networks = len(job.networks)
    count = job.draws if tape.length.total else networks
    each = -(-count // networks)  # draws from each network, rounded up
    room = max(1, limits.bytes // max(1, written // len(few)))  # rows of draws that fit into memory
    # The noise of rows is cut where the rows are cut, so there the limits may not decide.
    row_chunk = min(len(job.x), ROWS_AT_ONCE if large or by_row else room)
    draw_chunk = 1 if large else max(1, min(each, room // row_chunk))
    network_chunk = 1 if large else max(1, room // (row_chunk * draw_chunk))
    chunks = []
    with threads(torch.get_num_threads() if large else 1), reused_parts(n.module for n in job.networks if large):
        for begin in range(0, len(job.x), row_chunk):
            x = job.x[begin : begin + row_chunk]
            x = channels_last(x) if large else x
            length = _tape_length(job, x) if by_row else tape.length
            salt = (begin,) if by_row else ()
            grid = []
            for n in range(0, networks, network_chunk):
                some = job.networks[n : n + network_chunk]
                turns = [range(d, min(d + draw_chunk, each)) for d in range(0, each, draw_chunk)]
                grid.append(torch.cat([_values(job, some, n, x, turn, length, salt) for turn in turns], dim=1))
            # [networks, each, ...] -> draw t is number t // networks of network t mod networks
            values = torch.cat(grid).transpose(0, 1).flatten(0, 1)
            chunks.append(values[:count].cpu().numpy())
    return np.concatenate(chunks, axis=1)


def _versions(job: Drawing) -> list[int]:
    """Return how often each tensor of the networks was written to."""
    parts = ("params", "buffers", "memory")
    return [tensor._version for fitted in job.networks for part in parts for tensor in getattr(fitted, part).values()]


def _check_outputs(job: Drawing, outputs: Tensor) -> None:
    """Refuse what is no logits and no means, before it is scored as if it were."""
    if outputs.ndim != 2:
        raise ValueError(f"draw must return [rows, outputs], got shape {list(outputs.shape)}")
    if job.task == "regression" and outputs.shape[1] not in (1, 2):
        raise ValueError(f"draw must return means, or means and variances, got {outputs.shape[1]} columns")
    sums = outputs.sum(1)
    if job.task == "classification" and (outputs >= 0).all() and torch.allclose(sums, torch.ones_like(sums), atol=1e-6):
        raise ValueError("draw must return logits; these rows are probabilities already")


def _values(
    job: Drawing, networks: Sequence[Fitted], offset: int, x: Tensor, turns: range, length: TapeLength,
    salt: tuple[int, ...],
) -> Tensor:  # fmt: skip
    """Return the draws of some turns from some networks: `[networks, turns, rows, outputs]`."""
    count = len(job.networks)
    drawn = [
        [numbers(generator(job.seed, "draw", turn * count + offset + k, *salt), 1, length) for turn in turns]
        for k in range(len(networks))
    ]
    normals = torch.stack([torch.cat([n for n, _ in row]) for row in drawn]).to(x.device)
    uniforms = torch.stack([torch.cat([u for _, u in row]) for row in drawn]).to(x.device)
    module = networks[0].module.eval()

    def one(params: Tensors, buffers: Tensors, memory: Tensors, normals: Tensor, uniforms: Tensor) -> Tensor:
        outputs = job.method.draw(Net(module, params, buffers, memory), x, Tape(normals, uniforms))
        return outputs.softmax(-1) if job.task == "classification" else outputs

    if len(networks) == 1:
        only = networks[0]
        if len(turns) == 1:
            return one(only.params, only.buffers, only.memory, normals[0, 0], uniforms[0, 0])[None, None]
        over_turns = vmap(one, in_dims=(None, None, None, 0, 0))
        return over_turns(only.params, only.buffers, only.memory, normals[0], uniforms[0])[None]
    stacked = [
        {name: torch.stack([getattr(f, part)[name] for f in networks]) for name in getattr(networks[0], part)}
        for part in ("params", "buffers", "memory")
    ]
    over_networks = vmap(vmap(one, in_dims=(None, None, None, 0, 0)))
    return over_networks(stacked[0], stacked[1], stacked[2], normals, uniforms)


def _tape_length(job: Drawing, x: Tensor) -> TapeLength:
    tape = BlankTape(x.device)
    job.method.draw(job.networks[0].net, x, tape)
    return tape.length
