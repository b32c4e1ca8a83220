"""Draws functions from q: T predictions at every row, vectorised over draws and over the networks of a cell.

Draw t is the same function for any T, any chunks of rows and any other draws: its random numbers come from its own
generator, on the device that draws. Drawing changes no state.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from bench.api import Array, Method, Net, Task
from bench.api.tape import BlankTape, Tape, TapeLength, generator, no_other_randomness, numbers
from bench.errors import UserError
from bench.training.allocator import keep_freed_memory
from bench.training.draw_cache import cached_layers
from bench.training.flops import count_work
from bench.training.guards import guarded, place_of
from bench.training.limits import Limits, is_large, threads
from bench.training.member import ROWS_AT_ONCE, Fitted, bind_options, channels_last, float_tensors, states_itself
from bench.training.network_factory import runs_alone

# Written in one call of a stack. Larger tensors leave the cache, and from 32 MiB on a tensor is allocated by the system
# every time: 100 draws of an MLP at 2,000 rows took 225 ms in one call and 60 ms in calls of this size.
BYTES_AT_ONCE = 2**25
ROWS_IN_CACHE = 100  # of a large network on a CPU, whose activations fit into the cache

Tensors = tuple[Mapping[str, Tensor], ...]  # params, buffers, memory


@dataclass(frozen=True, eq=False)
class Drawing:
    """A request to draw functions from the trained networks of one cell."""

    method: Method
    networks: Sequence[Fitted]
    task: Task
    x: Tensor
    seed: int
    draws: int


def draw(job: Drawing, limits: Limits = Limits()) -> Array:
    """Return the drawn values `[T, rows, outputs]`, as the method's `predict` takes them.

    T is `job.draws`, or the number of networks if the method's draws read no random numbers.
    """
    versions = _versions(job)
    with torch.no_grad(), no_other_randomness(place_of(job.method, "draw"), job.x.device):
        parts = [part.cpu().numpy() for part in Functions(job, limits).at(job.x)]
    if versions != _versions(job):
        raise UserError(f"{place_of(job.method, 'draw')}: draw changed the network's tensors in place; return new ones")
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Cuts:
    """The sizes of one call: drawing is cut into calls of this many rows, draws and networks."""

    large: bool  # one network per call, on all threads; otherwise many draws per call, on one thread
    by_row: bool  # the noise differs between rows
    rows: int
    draws: int
    networks: int


class Functions:
    """The functions of a drawing, to be evaluated at any rows; use it inside `torch.no_grad()`."""

    def __init__(self, job: Drawing, limits: Limits = Limits()) -> None:
        keep_freed_memory()
        self.job = job = replace(job, method=bind_options(job.method, float_tensors(job.method, job.x.device)))
        net = job.networks[0]
        net.module.eval()
        self._tape, row_tape = BlankTape(job.x.device), BlankTape(job.x.device)
        few, outputs = job.x[:2], []
        with guarded(net, x=job.x):
            written, flops = count_work(lambda: job.method.draw(net, few, self._tape))
            written_once, _ = count_work(lambda: outputs.append(job.method.draw(net, few[:1], row_tape)))
        try:
            _check_outputs(job, outputs[0])
        except ValueError as error:
            raise UserError(f"{place_of(job.method, 'draw')}: {error}") from None
        # Noise that differs between rows must not repeat in every chunk of rows; noise of the function must.
        by_row = self._tape.length != row_tape.length and len(few) > 1
        large = is_large(flops / len(few), limits, runs_alone(net.module))

        networks = len(job.networks)
        self.count = job.draws if self._tape.length.total else networks
        self.each = each = -(-self.count // networks)  # draws from each network, rounded up
        per_row = max(1, written - written_once)
        fixed = max(0, written_once - per_row)  # bytes of a draw that do not depend on the rows: its noisy weights
        room = min(limits.bytes, BYTES_AT_ONCE)
        # Chunks of rows decide the noise of rows, so there they must not depend on the limits.
        several = ROWS_IN_CACHE if job.x.device.type == "cpu" and not by_row else ROWS_AT_ONCE
        rows = min(len(job.x), several if large or by_row else max(1, room // per_row))
        fit = max(1, room // (rows * per_row + fixed))  # draws whose tensors fit into memory
        draws = 1 if large else min(each, fit)
        self.cuts = Cuts(large, by_row, rows, draws, 1 if large else max(1, fit // draws))

    @property
    def threads(self) -> int:
        """The number of threads used."""
        return torch.get_num_threads() if self.cuts.large else 1

    def tape_length(self, x: Tensor) -> TapeLength:
        """Return how many random numbers one draw at these rows reads."""
        if not self.cuts.by_row:
            return self._tape.length
        tape = BlankTape(x.device)
        self.job.method.draw(self.job.networks[0], x, tape)
        return tape.length

    def numbers(self, t: int, length: TapeLength, device: torch.device, chunk: int = 0) -> tuple[Tensor, Tensor]:
        """Return the random numbers of draw t at the chunk of rows that begins with this one."""
        salt = (chunk,) if self.cuts.by_row else ()
        source = generator(self.job.seed, "draw", t, *salt, device=device)
        normals, uniforms = numbers(source, 1, length, device)
        return normals[0], uniforms[0]

    def at(self, x: Tensor) -> Iterator[Tensor]:
        """Yield the values `[T, rows, outputs]` of one chunk of rows after another."""
        job, cuts, each = self.job, self.cuts, self.each
        # Layers are cached from one draw of a network to the next; an ensemble has one draw per network.
        modules = (network.module for network in job.networks if cuts.large and each > 1)
        with threads(self.threads), cached_layers(modules):
            for begin in range(0, len(x), cuts.rows):
                part = x[begin : begin + cuts.rows]
                part = channels_last(part) if cuts.large else part
                length = self.tape_length(part)
                grid = []
                for first in range(0, len(job.networks), cuts.networks):
                    turns = [range(d, min(d + cuts.draws, each)) for d in range(0, each, cuts.draws)]
                    grid.append(torch.cat([self._values(first, part, turn, length, begin) for turn in turns], dim=1))
                # [networks, each, ...] -> draw t is number t // networks of network t mod networks
                yield torch.cat(grid).transpose(0, 1).flatten(0, 1)[: self.count]

    def _values(self, first: int, x: Tensor, turns: range, length: TapeLength, chunk: int) -> Tensor:
        """Return these draws from one group of networks: `[networks, turns, rows, outputs]`."""
        job, networks = self.job, self.job.networks[first : first + self.cuts.networks]
        tapes = [
            [self.numbers(turn * len(job.networks) + k, length, x.device, chunk) for turn in turns]
            for k in range(first, first + len(networks))
        ]
        normals = torch.stack([torch.stack([n for n, _ in row]) for row in tapes])
        uniforms = torch.stack([torch.stack([u for _, u in row]) for row in tapes])
        module = networks[0].module.eval()
        softmax = job.task == "classification" and not states_itself(job.method)

        def one(tensors: Tensors, normals: Tensor, uniforms: Tensor) -> Tensor:
            outputs = job.method.draw(Net(module, *tensors), x, Tape(normals, uniforms))
            return outputs.softmax(-1) if softmax else outputs

        over_turns = vmap(one, in_dims=(None, 0, 0))
        if len(networks) == 1:
            tensors = _tensors(networks[0])
            if len(turns) == 1:
                return one(tensors, normals[0, 0], uniforms[0, 0])[None, None]
            return over_turns(tensors, normals[0], uniforms[0])[None]
        parts = zip(*(_tensors(network) for network in networks), strict=True)
        stacked = tuple({name: torch.stack([part[name] for part in same]) for name in same[0]} for same in parts)
        return vmap(over_turns)(stacked, normals, uniforms)


def _versions(job: Drawing) -> list[int]:
    """Return how often each tensor of the networks was written."""
    return [tensor._version for net in job.networks for part in _tensors(net) for tensor in part.values()]


def _tensors(net: Net) -> Tensors:
    return net.params, net.buffers, net.memory


def _check_outputs(job: Drawing, outputs: Tensor) -> None:
    """Raise if the outputs cannot be logits or means."""
    if outputs.ndim != 2:
        raise ValueError(f"draw must return [rows, outputs], got shape {list(outputs.shape)}")
    if states_itself(job.method):
        return
    if job.task == "regression" and outputs.shape[1] not in (1, 2):
        raise ValueError(
            f"draw must return means, or means and variances, got {outputs.shape[1]} columns; "
            "a method that states something else says in predict what its columns are"
        )
    sums = outputs.sum(1)
    if job.task == "classification" and (outputs >= 0).all() and torch.allclose(sums, torch.ones_like(sums), atol=1e-6):
        raise ValueError("draw must return logits; these rows are probabilities already")
