"""Drawing functions from q: T predictions at every row, vectorised over draws and over the networks of a cell.

Draw t is the same function whatever T is, however the rows are cut, and whatever else is drawn: its random numbers
come from a generator of its own. Drawing changes no state.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from bench.api import Array, Method, Net, Task
from bench.api.tape import BlankTape, Tape, TapeLength, generator, no_other_randomness, numbers
from bench.training.allocator import keep_freed_memory
from bench.training.draw_cache import reused_parts
from bench.training.flops import work
from bench.training.limits import Limits, is_large, threads
from bench.training.member import ROWS_AT_ONCE, Fitted, Tensors, bound, channels_last, float_tensors

# Written in one call of a stack. Larger tensors leave the cache, and from 32 MiB on a tensor is new memory from the
# system every time: 100 draws of an MLP at 2,000 rows took 225 ms at once and 60 ms in calls of this size.
BYTES_AT_ONCE = 2**25
ROWS_IN_CACHE = 100  # of a large network on a CPU: the activations of more have to come from memory


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
    versions = _versions(job)
    with torch.no_grad(), no_other_randomness("draw"):
        parts = [part.cpu().numpy() for part in Functions(job, limits).at(job.x)]
    if versions != _versions(job):
        raise RuntimeError("draw changed the network's tensors in place; return new ones")
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Cuts:
    """How drawing is cut: what is computed in one call."""

    large: bool  # a network by itself, on all threads; otherwise many draws in one call, on one
    by_row: bool  # the noise differs from row to row
    rows: int
    draws: int
    networks: int


class Functions:
    """The functions of a drawing, examined once, to be evaluated at any rows. Call it without gradients."""

    def __init__(self, job: Drawing, limits: Limits = Limits()) -> None:
        keep_freed_memory()
        self.job = job = replace(job, method=bound(job.method, float_tensors(job.method, job.x.device)))
        net = job.networks[0].net
        net.module.eval()
        self._tape, row_tape = BlankTape(job.x.device), BlankTape(job.x.device)
        few, outputs = job.x[:2], []
        written, flops = work(lambda: job.method.draw(net, few, self._tape))
        written_once, _ = work(lambda: outputs.append(job.method.draw(net, few[:1], row_tape)))
        _check_outputs(job, outputs[0])
        # Noise that differs from row to row must not repeat in every chunk of rows; a function's own noise must.
        by_row = self._tape.length != row_tape.length and len(few) > 1
        large = is_large(flops / len(few), limits)

        networks = len(job.networks)
        self.count = job.draws if self._tape.length.total else networks
        self.each = each = -(-self.count // networks)  # draws from each network, rounded up
        a_row = max(1, written - written_once)
        beside = max(0, written_once - a_row)  # what a draw writes whatever the rows: its noisy weights
        room = min(limits.bytes, BYTES_AT_ONCE)
        # The noise of rows is cut where the rows are cut, so there the limits may not decide.
        several = ROWS_IN_CACHE if job.x.device.type == "cpu" and not by_row else ROWS_AT_ONCE
        rows = min(len(job.x), several if large or by_row else max(1, room // a_row))
        fit = max(1, room // (rows * a_row + beside))  # draws whose tensors fit into memory
        draws = 1 if large else min(each, fit)
        self.cuts = Cuts(large, by_row, rows, draws, 1 if large else max(1, fit // draws))

    @property
    def threads(self) -> int:
        """How many threads it computes with."""
        return torch.get_num_threads() if self.cuts.large else 1

    def tape_length(self, x: Tensor) -> TapeLength:
        """Return how many random numbers one draw at these rows reads."""
        if not self.cuts.by_row:
            return self._tape.length
        tape = BlankTape(x.device)
        self.job.method.draw(self.job.networks[0].net, x, tape)
        return tape.length

    def numbers(self, t: int, length: TapeLength, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the random numbers of draw t at the first rows, for a loop that makes one draw at a time."""
        salt = (0,) if self.cuts.by_row else ()
        normals, uniforms = numbers(generator(self.job.seed, "draw", t, *salt), 1, length)
        return normals[0].to(device), uniforms[0].to(device)

    def at(self, x: Tensor) -> Iterator[Tensor]:
        """Yield the values `[T, rows, outputs]` of one chunk of rows after another."""
        job, cuts, each = self.job, self.cuts, self.each
        # What one draw of a network leaves for the next is kept; of an ensemble nothing is drawn twice.
        modules = (fitted.module for fitted in job.networks if cuts.large and each > 1)
        with threads(self.threads), reused_parts(modules):
            for begin in range(0, len(x), cuts.rows):
                part = x[begin : begin + cuts.rows]
                part = channels_last(part) if cuts.large else part
                length = self.tape_length(part)
                salt = (begin,) if cuts.by_row else ()
                grid = []
                for n in range(0, len(job.networks), cuts.networks):
                    some = job.networks[n : n + cuts.networks]
                    turns = [range(d, min(d + cuts.draws, each)) for d in range(0, each, cuts.draws)]
                    grid.append(torch.cat([_values(job, some, n, part, turn, length, salt) for turn in turns], dim=1))
                # [networks, each, ...] -> draw t is number t // networks of network t mod networks
                yield torch.cat(grid).transpose(0, 1).flatten(0, 1)[: self.count]


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
    job: Drawing,
    networks: Sequence[Fitted],
    offset: int,
    x: Tensor,
    turns: range,
    length: TapeLength,
    salt: tuple[int, ...],
) -> Tensor:
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
