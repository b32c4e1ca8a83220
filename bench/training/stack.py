"""The engine: many networks trained together, as if each were alone.

Members that can share a graph form a group. A group owns a fixed number of *slots*; each slot trains one member, and
when a member stops (last epoch, early stopping, divergence) the next one waiting takes its slot. So shapes stay the
same for the compiler, memory is bounded by the slots, and a study may have thousands of members. When nobody waits and
few slots are busy, the stack is compacted.

Two ways to carry out a step share everything else: *stacked* (`vmap` over the slots, traced, compiled where it pays)
for small networks, whose cost is overhead, and *plain* (one slot, no `vmap`) for large ones, whose cost is arithmetic.
"""

import math
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.utils import _pytree as pytree

from bench.api.optim import epoch_rates, make_optimizer
from bench.api.tape import TapeLength, block_calls, generator, write_numbers
from bench.training import checkpoints
from bench.training.flops import Cost, measure
from bench.training.limits import Limits, is_large, threads
from bench.training.member import (
    ROWS_AT_ONCE,
    Fitted,
    Member,
    Rows,
    advance,
    remembered,
    remembers,
    start,
    validation_loss,
    validation_tape,
)
from bench.training.precision import warn_of_emulation
from bench.training.tracing import compiled, compiler_found, trace

SECONDS_BETWEEN_WORDS = 1.0  # about how far it is


@dataclass(frozen=True)
class Progress:
    """How far a stack is."""

    training: int  # networks in training
    waiting: int
    ended: int
    epoch: int  # of the one that has trained longest


def fit(members: Sequence[Member], limits: Limits = Limits()) -> Iterator[tuple[int, Fitted]]:
    """Train all members; yield each one's number and result as it ends, in the order in which they end."""
    for item in fit_and_tell(members, limits):
        if not isinstance(item, Progress):
            yield item


def fit_and_tell(members: Sequence[Member], limits: Limits = Limits()) -> Iterator[tuple[int, Fitted] | Progress]:
    """Train all members as `fit` does, and tell about once a second how far it is."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, member in enumerate(members):
        groups.setdefault(member.stack_key(), []).append(number)
    ended = 0
    for group in groups.values():
        # Slow learners train longest: they come first, so that none of them is left alone at the end.
        group.sort(key=lambda number: members[number].training.learning_rate)
        cost = measure(members[group[0]])
        large = is_large(cost.flops_per_row, limits)
        # Steps of a stack are too small to share between threads: two took twice as long as one.
        with threads(torch.get_num_threads() if large else 1), torch.no_grad():
            for item in _Stack([members[n] for n in group], cost, large, limits).run():
                if isinstance(item, Progress):
                    waiting = len(members) - ended - item.training
                    yield replace(item, waiting=waiting, ended=ended)
                else:
                    ended += 1
                    yield group[item[0]], item[1]


class _Slot:
    """The host's side of one member in training."""

    def __init__(self, number: int, member: Member, offset: int, module: nn.Module) -> None:
        self.number, self.member, self.module = number, member, module
        self.epoch = 0
        self.shuffles = generator(member.seed, "shuffle")
        self.noise = generator(member.seed, "noise")
        self.train = member.rows.train + offset
        self.validation = member.rows.validation + offset
        self.best = math.inf
        self.since_best = 0
        self.history: list[tuple[float, float]] = []
        self.rows = len(self.train)
        self.used = member.steps_per_epoch * member.batch_rows
        self.whole = member.batch_rows == self.rows

    def kept(self) -> dict[str, Tensor]:
        """Return what the next epoch depends on beside the network's tensors."""
        return {
            "history": torch.tensor(self.history, dtype=torch.float64).view(-1, 2),
            "best": torch.tensor([self.best, self.since_best], dtype=torch.float64),
            "shuffles": self.shuffles.get_state(),
            "noise": self.noise.get_state(),
        }

    def take_up(self, kept: dict[str, Tensor]) -> None:
        """Go on where `kept` was written."""
        self.history = [(loss, validation) for loss, validation in kept["history"].tolist()]
        self.epoch = len(self.history)
        self.best, since_best = kept["best"].tolist()
        self.since_best = int(since_best)
        self.shuffles.set_state(kept["shuffles"])
        self.noise.set_state(kept["noise"])

    def order(self) -> Tensor:
        """Return the rows of the next epoch's batches, one batch after the other."""
        return self.train if self.whole else self.train[torch.randperm(self.rows, generator=self.shuffles)[: self.used]]


class _Stack:
    """A group of members in training."""

    def __init__(self, members: Sequence[Member], cost: Cost, large: bool, limits: Limits) -> None:
        self.members, self.cost, self.large = members, cost, large
        self.model = members[0]
        self.device = self.model.rows.x.device
        warn_of_emulation(self.model.training.precision, self.device)
        # A large network reads its own rows; a stack needs one table for all.
        self.table, self.offsets = _joined([m.rows for m in (members[:1] if large else members)])
        self.waiting = deque(range(len(members)))
        self.steps = self.model.steps_per_epoch
        stopping = self.model.training.patience > 0 and self.model.method.early_stopping
        self.watched = stopping and len(self.model.rows.validation) > 0
        # Alike for all members of a group: whether a training is long is part of their key.
        self.compiling = self.model.is_long and compiler_found() if limits.compiling is None else limits.compiling
        # A stack of one would go through other kernels than a larger one and differ in the last bit.
        fits = max(2, min(limits.slots, limits.bytes // max(1, cost.step_bytes)))
        self.slots: list[_Slot | None] = [None] * (1 if large else max(2, min(fits, len(members))))
        self.folder = Path(limits.checkpoints) if large and limits.checkpoints else None
        self.told = time.monotonic()
        self.calls: dict[str, Callable[..., Any]] = {}
        self.checked: set[str] = set()
        self.validation_tapes: dict[int, TapeLength] = {}
        self.drawn: dict[tuple[int, int, TapeLength], tuple[Tensor, ...]] = {}

    def run(self) -> Iterator[tuple[int, Fitted] | Progress]:
        """Train everybody."""
        first = start(self.members[0])
        self.module = first.module
        self.columns: dict[str, Any] = {
            part: {name: torch.stack([t] * len(self.slots)) for name, t in getattr(first, part).items()}
            for part in ("params", "buffers", "memory", "state", "values")
        }
        self.best = self._kept()
        while self.waiting or any(self.slots):
            yield from self._admit()
            if not any(self.slots):
                continue
            losses = self._train_epoch()
            yield from self._close_epoch(losses)
            self._compact()
            if time.monotonic() - self.told >= SECONDS_BETWEEN_WORDS:
                self.told = time.monotonic()
                busy = [slot.epoch for slot in self.slots if slot is not None]
                yield Progress(len(busy), len(self.waiting), 0, max(busy, default=0))

    def _admit(self) -> Iterator[tuple[int, Fitted]]:
        free = [place for place, slot in enumerate(self.slots) if slot is None]
        if free and self.waiting:
            # Hooks may return one tensor under two names, or one number for all slots: give every slot its own memory.
            self.columns = pytree.tree_map(lambda t: t.clone(memory_format=torch.contiguous_format), self.columns)
        for place in free:
            while self.waiting and self.slots[place] is None:
                number = self.waiting.popleft()
                member = self.members[number]
                first = start(member)
                for part, tensors in self.columns.items():
                    for name, tensor in getattr(first, part).items():
                        tensors[name][place] = tensor
                if self.large:
                    self.table = (member.rows.x, member.rows.y)
                offset = 0 if self.large else self.offsets[id(member.rows)]
                self.slots[place] = slot = _Slot(number, member, offset, first.module)
                if self._taken_up(slot) and (end := self._end(slot)):
                    self.slots[place] = None
                    yield number, self._result(place, slot, end)

    def _train_epoch(self) -> list[float]:
        order = self._per_slot(lambda slot: slot.order(), self.steps * self.model.batch_rows)
        # Steps in front: then the rows of a step lie together.
        chosen = order.unflatten(1, (self.steps, self.model.batch_rows)).transpose(0, 1).contiguous()
        clocks = self._clocks()
        total = torch.zeros(len(self.slots), device=self.device)
        ahead = block_calls(self.cost.step, self.steps)
        for begin in range(0, self.steps, ahead):
            calls = min(ahead, self.steps - begin)
            normals, uniforms = self._numbers(calls, self.cost.step, ahead)
            for i in range(calls):
                columns, numbers = self.columns, (normals[i], uniforms[i])
                step = partial(advance, alone=self.large)
                arguments = (columns, chosen[begin + i], clocks[begin + i], numbers)
                params, buffers, state, loss = self._call("advance", step, *arguments)
                if "advance" not in self.checked:
                    _require_same("update", columns["params"], params)
                    _require_same("update (state)", columns["state"], state)
                    self.checked.add("advance")
                columns.update(params=params, buffers=buffers, state=state)
                total += loss
        if remembers(self.model.method):
            normals, uniforms = self._numbers(1, self.cost.epoch)
            done = [(s.epoch + 1) / s.member.training.epochs if s else 0.0 for s in self.slots]
            progress = torch.tensor(done, device=self.device)
            memory = self._call("remember", remembered, self.columns, progress, (normals[0], uniforms[0]))
            if "remember" not in self.checked:
                _require_same("remember", self.columns["memory"], memory)
                self.checked.add("remember")
            self.columns["memory"] = memory
        losses: list[float] = (total / self.steps).tolist()
        return losses

    def _close_epoch(self, losses: list[float]) -> Iterator[tuple[int, Fitted]]:
        watched = self._validation_losses() if self.watched else [None] * len(self.slots)
        better: list[int] = []
        for place, (slot, validation) in enumerate(zip(self.slots, watched, strict=True)):
            if slot is None:
                continue
            slot.epoch += 1
            slot.since_best += 1
            slot.history.append((losses[place], math.nan if validation is None else validation))
            if validation is not None and validation < slot.best:
                slot.best, slot.since_best = validation, 0
                better.append(place)
        if better:
            places = torch.tensor(better, device=self.device)
            for part, tensors in self.best.items():
                for name, tensor in tensors.items():
                    tensor.index_copy_(0, places, self.columns[part][name].index_select(0, places))
        for place, slot in enumerate(self.slots):
            if slot is None:
                continue
            self._keep(slot)
            if end := self._end(slot):
                self.slots[place] = None
                yield slot.number, self._result(place, slot, end)

    def _end(self, slot: _Slot) -> Literal["", "ok", "diverged"]:
        """Return how a member's training has ended, if it has."""
        loss, validation = slot.history[-1]
        if not math.isfinite(loss) or (self.watched and not math.isfinite(validation)):
            return "diverged"
        tired = self.watched and slot.since_best >= slot.member.training.patience
        return "ok" if tired or slot.epoch >= slot.member.training.epochs else ""

    def _result(self, place: int, slot: _Slot, status: Literal["ok", "diverged"]) -> Fitted:
        restored = self.watched and status == "ok"
        source = self.best if restored else self.columns
        kept = {
            part: {name: t[place].clone() for name, t in source[part].items()}
            for part in ("params", "buffers", "memory")
        }
        return Fitted(
            slot.module,
            **kept,
            status=status,
            epochs=slot.epoch,
            train_loss=slot.history[-1][0],
            validation_loss=slot.best if restored else None,
            history=slot.history,
        )

    def _parts(self) -> dict[str, dict[str, Tensor]]:
        """Return all tensors of the one network of a large stack."""
        now = {part: self.columns[part] for part in ("params", "buffers", "memory", "state")}
        best = {f"best {part}": tensors for part, tensors in self.best.items()}
        return {part: {name: t[0] for name, t in tensors.items()} for part, tensors in (now | best).items()}

    def _keep(self, slot: _Slot) -> None:
        """Write the checkpoint of a large network."""
        if self.folder is not None and slot.member.checkpoint:
            parts = self._parts() | {"member": slot.kept()}
            form = checkpoints.form(self.device, self.compiling)
            if not checkpoints.save(self.folder / slot.member.checkpoint, parts, form):
                self.folder = None

    def _taken_up(self, slot: _Slot) -> bool:
        """Go on from a large network's checkpoint, if there is one."""
        if self.folder is None or not slot.member.checkpoint:
            return False
        form = checkpoints.form(self.device, self.compiling)
        parts = checkpoints.load(self.folder / slot.member.checkpoint, form, self._parts())
        if parts is None:
            return False
        slot.take_up(parts.pop("member"))
        for part, tensors in parts.items():
            target = self.best if part.startswith("best ") else self.columns
            into = target[part.removeprefix("best ")]
            for name, tensor in tensors.items():
                into[name][0] = tensor
        return True

    def _validation_losses(self) -> list[float | None]:
        chosen = self._per_slot(lambda slot: slot.validation, len(self.model.rows.validation))
        sizes = torch.tensor([float(s.rows) if s else 1.0 for s in self.slots], device=self.device)
        total = torch.zeros(len(self.slots), device=self.device)
        for part in chosen.split(ROWS_AT_ONCE if self.large else chosen.shape[1], dim=1):
            if part.shape[1] not in self.validation_tapes:
                self.validation_tapes[part.shape[1]] = validation_tape(self.model, part.shape[1])
            normals, uniforms = self._numbers(1, self.validation_tapes[part.shape[1]])
            numbers = (normals[0], uniforms[0])
            mean = self._call("validate", validation_loss, self.columns, part, sizes, numbers)
            total += mean * (part.shape[1] / chosen.shape[1])
        losses: list[float | None] = total.tolist()
        return losses

    def _compact(self) -> None:
        busy = [place for place, slot in enumerate(self.slots) if slot is not None]
        if self.waiting or not busy or len(self.slots) <= 2 or len(busy) > len(self.slots) // 4:
            return
        if self.compiling:  # another size is another graph: compiling it takes longer than idle slots cost
            return
        # Keep at least two: see the note on a stack of one.
        places = (busy + [p for p in range(len(self.slots)) if p not in busy])[: max(2, len(busy))]
        self.slots = [self.slots[p] for p in places]
        self.columns = pytree.tree_map(lambda t: t[places].contiguous(), self.columns)
        self.best = pytree.tree_map(lambda t: t[places].contiguous(), self.best)
        self.calls.clear()

    def _call(self, name: str, function: Callable[..., Any], *columns: Any) -> Any:
        """Carry out a function of one member for every slot; columns have the slots in front."""
        if name not in self.calls:
            self.calls[name] = self._made_quick(name, partial(function, self.model, self.module), columns)
        return self.calls[name](self.table, *columns)

    def _made_quick(self, name: str, one: Callable[..., Any], columns: tuple[Any, ...]) -> Callable[..., Any]:
        """Return a member's function for all slots: traced where overhead is the cost, compiled where it pays."""
        if self.large:

            def quick(table: tuple[Tensor, Tensor], *columns: Any) -> Any:
                result = one(table, *pytree.tree_map(lambda t: t[0], columns))
                return pytree.tree_map(lambda t: t.unsqueeze(0), result)

            # A large network's validation is a small part of its training, and compiling takes a minute.
            if not self.compiling or name != "advance":
                return quick
        else:
            quick = vmap(one, in_dims=(None, *([0] * len(columns))))
        graph = trace(quick, (self.table, *columns))
        if self.compiling:
            try:
                return compiled(graph, (self.table, *columns))
            except Exception as error:  # a compiler that is there but does not work: every kind of error is its own
                warnings.warn(f"compiling failed, training goes on without: {error!r:.200}", stacklevel=2)
                self.compiling = False
        return graph

    def _per_slot(self, of: Callable[[_Slot], Tensor], count: int) -> Tensor:
        """Gather so many row numbers from each slot."""
        blank = torch.zeros(count, dtype=torch.long)
        return torch.stack([blank if slot is None else of(slot) for slot in self.slots]).to(self.device)

    def _numbers(self, calls: int, length: TapeLength, room: int = 1) -> tuple[Tensor, Tensor]:
        """Return the next numbers of every slot, `[calls, slots, n]`; there is room for so many calls."""
        # The same memory every time: megabytes that are new each time cost more than the numbers themselves.
        place_of = (len(self.slots), room, length)
        if place_of not in self.drawn:
            shapes = ((len(self.slots), room, n) for n in (length.normals, length.uniforms))
            self.drawn[place_of] = tuple(torch.zeros(shape) for shape in shapes)
        normals, uniforms = self.drawn[place_of]
        if length.total:
            for place, slot in enumerate(self.slots):
                if slot is not None:
                    write_numbers(slot.noise, normals[place, :calls], uniforms[place, :calls])
        return normals.transpose(0, 1).to(self.device), uniforms.transpose(0, 1).to(self.device)

    def _clocks(self) -> Tensor:
        """Return what `Step` holds and the number of training rows, for each step and slot: `[steps, slots, 6]`."""
        clocks = np.ones((self.steps, len(self.slots), 6))
        betas = make_optimizer(self.model.training.optimizer, self.model.training.momentum).betas
        for place, slot in enumerate(self.slots):
            if slot is None:
                clocks[:, place, 0:2] = 0.0
                continue
            training = slot.member.training
            factors = epoch_rates(training.schedule, betas, slot.epoch, self.steps, training.epochs)
            clocks[:, place, 0] = training.learning_rate * factors[:, 0]
            clocks[:, place, 1] = training.weight_decay
            clocks[:, place, 2:5] = factors[:, 1:]
            clocks[:, place, 5] = slot.rows
        return torch.from_numpy(clocks.astype(np.float32)).to(self.device)

    def _kept(self) -> dict[str, Any]:
        parts = ("params", "buffers", "memory")
        return {part: pytree.tree_map(torch.clone, self.columns[part]) for part in parts} if self.watched else {}


def _joined(rows: Sequence[Rows]) -> tuple[tuple[Tensor, Tensor], dict[int, int]]:
    """Put the distinct data of all members into one table; return it and where each one's begins."""
    distinct = {id(r): r for r in rows}
    offsets, begin = {}, 0
    for key, data in distinct.items():
        offsets[key] = begin
        begin += len(data.x)
    if len(distinct) == 1:
        return (rows[0].x, rows[0].y), offsets
    return (torch.cat([r.x for r in distinct.values()]), torch.cat([r.y for r in distinct.values()])), offsets


def _require_same(hook: str, before: dict[str, Tensor], after: dict[str, Tensor]) -> None:
    """Refuse a hook that adds, drops or reshapes tensors: what it changed would be lost or reach another member."""
    shapes = [{name: (tuple(t.shape[1:]), t.dtype) for name, t in tensors.items()} for tensors in (before, after)]
    for name in sorted(shapes[0].keys() | shapes[1].keys()):
        old, new = shapes[0].get(name), shapes[1].get(name)
        if old != new:
            told = ["missing" if s is None else f"{s[1]} of shape {list(s[0])}" for s in (old, new)]
            raise ValueError(f"{hook} must return the tensors it was given: {name} was {told[0]} and is {told[1]}")
