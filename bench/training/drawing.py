"""Draws functions from q: T predictions at every row, vectorised over draws and over the networks of a cell.

Draw t is the same function for any T, any chunks of rows and any other draws: its random numbers come from its own
generator, on the device that draws. Drawing changes no state.
"""

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from bench.api import Array, Method, Net, Task
from bench.api.tape import BlankTape, TapeLength, new_generator, no_other_randomness, stream, write_numbers
from bench.counts import plural
from bench.errors import UserError
from bench.training.allocator import keep_freed_memory
from bench.training.draw_cache import cached_layers
from bench.training.draw_calls import Call, Tensors, call_of, tensors_of
from bench.training.flops import count_work
from bench.training.guards import check_draw_shape, guarded, place_of
from bench.training.limits import Limits, is_large, threads
from bench.training.member import ROWS_AT_ONCE, Fitted, bind_options, channels_last, float_tensors, states_itself
from bench.training.network_factory import runs_alone
from bench.training.recording import record
from bench.training.transfers import release_memory, to_host

# Written in one call of a stack. Larger tensors leave the cache, and from 32 MiB on a tensor is allocated by the system
# every time: 100 draws of an MLP at 2,000 rows took 225 ms in one call and 60 ms in calls of this size.
BYTES_AT_ONCE = 2**25
# Written in one of several parts that repeat the same recorded call, and the fewest parts for which one is recorded.
BYTES_IN_CACHE, FEWEST_PARTS = 2**23, 4
FEWEST_DRAWS = 2  # of a part: a product of one draw has other kernels
OUT_OF_MEMORY = "out of memory while drawing"  # a warning begins with it
ROWS_IN_CACHE = 100  # of a large network on a CPU, whose activations fit into the cache

# Evaluates a call for networks of these numbers; the draws of each network are the second axis of the tapes.
Evaluate = Callable[[tuple[int, ...], Call, Tensors, Tensor, Tensor, Tensor], Tensor]


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
        parts = [part.numpy() for part in to_host(Functions(job, limits).at(job.x))]
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
    recorded: bool = False  # the first call of some networks at some rows is recorded, and repeated for the others


def eagerly(
    numbers: tuple[int, ...], call: Call, tensors: Tensors, x: Tensor, normals: Tensor, uniforms: Tensor
) -> Tensor:
    """Evaluate a call as it is."""
    return call(tensors, x, normals, uniforms)


class Functions:
    """The functions of a drawing, to be evaluated at any rows; use it inside `torch.no_grad()`."""

    def __init__(self, job: Drawing, limits: Limits = Limits()) -> None:
        keep_freed_memory()
        self.job = job = replace(job, method=bind_options(job.method, float_tensors(job.method, job.x.device)))
        net = job.networks[0]
        net.module.eval()
        self._tape, row_tape = BlankTape(job.x.device), BlankTape(job.x.device)
        few, outputs = job.x[:2], []
        with guarded(net, x=job.x), _changes_seen(net) as changes:
            written, flops = count_work(lambda: job.method.draw(net, few, self._tape))
        written_once, _ = count_work(lambda: outputs.append(job.method.draw(net, few[:1], row_tape)))
        self.folds = not any(changes)  # noise on activations alone: several draws are one larger batch
        _check_outputs(job, outputs[0])
        # Noise that differs between rows must not repeat in every chunk of rows; noise of the function must.
        by_row = self._tape.length != row_tape.length and len(few) > 1
        large = is_large(flops / len(few), limits, runs_alone(net.module))

        networks = len(job.networks)
        self.count = job.draws if self._tape.length.total else networks
        self.each = each = -(-self.count // networks)  # draws from each network, rounded up
        self._per_row = per_row = max(1, written - written_once)
        self._fixed = max(0, written_once - per_row)  # bytes of a draw that do not depend on the rows: noisy weights
        room = min(limits.bytes, BYTES_AT_ONCE)
        # Chunks of rows decide the noise of rows, so there they must not depend on the limits.
        several = ROWS_IN_CACHE if job.x.device.type == "cpu" and not by_row else ROWS_AT_ONCE
        rows = min(len(job.x), several if large or by_row else max(1, room // per_row))
        fit = self._draws_within(room, rows)
        draws = 1 if large else min(each, fit)
        self.cuts = self._unrecorded = Cuts(large, by_row, rows, draws, 1 if large else max(1, fit // draws))
        in_cache = max(FEWEST_DRAWS, self._draws_within(min(room, BYTES_IN_CACHE), rows))
        if job.x.device.type == "cpu" and draws > 1 and each > (FEWEST_PARTS - 1) * in_cache:
            # All parts have the same size, so the last one repeats some draws: the size for which these are fewest.
            sizes = range(max(FEWEST_DRAWS, in_cache // 2), in_cache + 1)
            draws = min(sizes, key=lambda size: (-each % size, -size))
            self.cuts = replace(self.cuts, draws=draws, networks=1, recorded=True)
        self.threads = torch.get_num_threads() if large else 1
        self._evaluate: Evaluate = eagerly

    def one_by_one(self, rows: int | None = None) -> Self:
        """Return the same functions with one draw of one network per call; None: at as many rows as now."""
        return self._cut_anew(replace(self.cuts, rows=rows or self.cuts.rows, draws=1, networks=1, recorded=False))

    def vectorised(self, room: int) -> Self:
        """Return the same functions with as many draws per call, at least two, as write this many bytes."""
        cuts, networks = self.cuts, len(self.job.networks)
        # Chunks of rows decide the noise of rows, so there they are not changed.
        rows = cuts.rows if cuts.by_row else len(self.job.x)
        fit = max(2, self._draws_within(room, rows))
        draws = min(self.each, fit)
        together = min(networks, fit // draws)
        return self._cut_anew(Cuts(False, cuts.by_row, rows, draws, together))

    def evaluated_by(self, evaluate: Evaluate) -> Self:
        """Return the same functions with every call evaluated in another way; no layer is cached between calls."""
        cuts = self._unrecorded if self.cuts.recorded else self.cuts
        other = self._cut_anew(replace(cuts, large=False))
        other._evaluate = evaluate
        return other

    def _cut_anew(self, cuts: Cuts) -> Self:
        other = copy.copy(self)
        other.cuts = cuts
        return other

    def _draws_within(self, room: int, rows: int) -> int:
        """Return how many draws at so many rows write at most this many bytes; at least one."""
        return max(1, room // (rows * self._per_row + self._fixed))

    def tape_length(self, x: Tensor) -> TapeLength:
        """Return how many random numbers one draw at these rows reads."""
        if not self.cuts.by_row:
            return self._tape.length
        tape = BlankTape(x.device)
        self.job.method.draw(self.job.networks[0], x, tape)
        return tape.length

    def numbers(self, t: int, length: TapeLength, device: torch.device, chunk: int = 0) -> tuple[Tensor, Tensor]:
        """Return the random numbers of draw t at the chunk of rows that begins with this one."""
        turn, network = divmod(t, len(self.job.networks))
        normals, uniforms = self._tapes(range(network, network + 1), range(turn, turn + 1), length, device, chunk)
        return normals[0, 0], uniforms[0, 0]

    def at(self, x: Tensor) -> Iterator[Tensor]:
        """Yield the values `[T, rows, outputs]` of one chunk of rows after another."""
        job, cuts, each = self.job, self.cuts, self.each
        # Layers are cached from one draw of a network to the next; an ensemble has one draw per network.
        modules = (network.module for network in job.networks if cuts.large and each > 1)
        with threads(self.threads), cached_layers(modules):
            begin = 0
            while begin < len(x):
                part = x[begin : begin + self.cuts.rows]
                try:
                    values = self._chunk(channels_last(part) if cuts.large else part, begin)
                except torch.OutOfMemoryError:
                    self.cuts = self._halved()
                else:
                    begin += len(part)
                    yield values
                    continue
                release_memory(x.device)  # not before the exception is gone, which holds what was computed

    def _chunk(self, x: Tensor, begin: int) -> Tensor:
        """Return the values `[T, rows, outputs]` of the chunk of rows that begins with this one."""
        count, at_once, length = len(self.job.networks), self.cuts.networks, self.tape_length(x)
        groups = [range(first, min(first + at_once, count)) for first in range(0, count, at_once)]
        grid = [self._group(group, x, length, begin) for group in groups]
        # [networks, each, ...] -> draw t is number t // networks of network t mod networks
        return (grid[0] if len(grid) == 1 else torch.cat(grid)).transpose(0, 1).flatten(0, 1)[: self.count]

    def _halved(self) -> Cuts:
        """Return calls of half the size, for a device that is out of memory; raises where nothing can be halved."""
        cuts = self.cuts
        networks = min(cuts.networks, len(self.job.networks))
        if cuts.draws > 1:
            smaller = replace(cuts, draws=-(-cuts.draws // 2))
        elif networks > 1:
            smaller = replace(cuts, networks=-(-networks // 2))
        elif cuts.rows > 1 and not cuts.by_row:  # chunks of rows decide the noise of rows
            smaller = replace(cuts, rows=-(-cuts.rows // 2))
        else:
            raise UserError(f"out of memory: the device has none for one draw at {plural(cuts.rows, 'row')}")
        warnings.warn(f"{OUT_OF_MEMORY}: it goes on in calls of half the size ({smaller})", stacklevel=2)
        return smaller

    def _group(self, which: range, x: Tensor, length: TapeLength, chunk: int) -> Tensor:
        """Return all draws from one group of networks: `[networks, each, rows, outputs]`."""
        job, cuts, each = self.job, self.cuts, self.each
        call, tensors = call_of(job.method, job.task, [job.networks[k] for k in which])
        if cuts.recorded:
            tapes = self._tapes(which, range(cuts.draws), length, x.device, chunk)
            values, repeat = record(lambda: call(tensors, x, *tapes), tapes, len(x))
            if repeat is not None:
                grid = values.new_empty(values.shape[0], each, *values.shape[2:])
                for first in (min(d, each - cuts.draws) for d in range(0, each, cuts.draws)):
                    turns = range(first, first + cuts.draws)
                    if first:
                        self._write_numbers(which, turns, tapes, chunk)
                        repeat()
                    grid[:, first : turns.stop] = values
                # The draw that used to be alone in the last call keeps the rounding of a single one, as it is stored.
                if each % self._unrecorded.draws == 1:
                    tapes = self._tapes(which, range(each - 1, each), length, x.device, chunk)
                    grid[:, -1:] = call(tensors, x, *tapes)
                return grid
            self.cuts = cuts = self._unrecorded
        parts = []
        for first in range(0, each, cuts.draws):
            tapes = self._tapes(which, range(first, min(first + cuts.draws, each)), length, x.device, chunk)
            parts.append(self._evaluate(tuple(which), call, tensors, x, *tapes))
        return torch.cat(parts, dim=1)

    def _tapes(
        self, which: range, turns: range, length: TapeLength, device: torch.device, chunk: int
    ) -> tuple[Tensor, Tensor]:
        """Return the random numbers of some turns: `[networks, turns, n]` and `[networks, turns, u]`."""
        sizes = (length.normals, length.uniforms)
        normals, uniforms = (torch.empty(len(which), len(turns), size, device=device) for size in sizes)
        self._write_numbers(which, turns, (normals, uniforms), chunk)
        return normals, uniforms

    def _write_numbers(self, which: range, turns: range, tapes: tuple[Tensor, Tensor], chunk: int) -> None:
        """Write the random numbers of every draw from its own stream."""
        salt = (chunk,) if self.cuts.by_row else ()
        source = new_generator(tapes[0].device)
        draws = [turn * len(self.job.networks) + k for k in which for turn in turns]
        laws = [law.flatten(0, 1).unbind() if law.shape[2] else [law] * len(draws) for law in tapes]
        for t, *rows in zip(draws, *laws, strict=True):
            write_numbers(source.manual_seed(stream(self.job.seed, "draw", t, *salt)), *rows)


@contextmanager
def _changes_seen(net: Net) -> Iterator[list[bool]]:
    """Collect for every pass through the module inside the block whether its tensors were not the network's own."""
    own = {**net.params, **net.buffers}
    changes: list[bool] = []

    def see(module: nn.Module, inputs: object) -> None:
        used = (*module.named_parameters(), *module.named_buffers())
        changes.append(any(tensor is not own.get(name) for name, tensor in used))

    handle = net.module.register_forward_pre_hook(see)
    try:
        yield changes
    finally:
        handle.remove()


def _versions(job: Drawing) -> list[int]:
    """Return how often each tensor of the networks was written."""
    return [tensor._version for net in job.networks for part in tensors_of(net) for tensor in part.values()]


def _check_outputs(job: Drawing, outputs: Tensor) -> None:
    """Raise if the outputs cannot be logits or means."""
    own = states_itself(job.method)
    check_draw_shape(job.method, job.task, outputs, own_columns=own)
    if own:
        return
    sums = outputs.sum(1)
    if job.task == "classification" and (outputs >= 0).all() and torch.allclose(sums, torch.ones_like(sums), atol=1e-6):
        place = place_of(job.method, "draw")
        raise UserError(f"{place}: draw must return logits; these rows are probabilities already")
