"""Trains many networks together, each with the result of training it alone.

Members that can share a graph form a group. A group has a fixed number of *slots*; each slot trains one member, and
when a member stops (last epoch, early stopping, divergence) the next one takes its slot. So shapes stay the same for
the compiler, memory is bounded by the slots, and a study may have thousands of members. When no member waits and few
slots are busy, the stack is compacted. A compiled step has so little overhead that its stack is small, always of the
same size and never compacted: one graph serves a search, its final fit and every tail.

Small networks, whose cost is overhead, run *stacked* (`vmap` over the slots, traced, compiled where it pays); large
ones, whose cost is arithmetic, run *plain* (one slot, no `vmap`).
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from bench.api.tape import BLOCK, TapeLength, block_calls
from bench.training import checkpoints
from bench.training.compiled_graphs import compiler_found
from bench.training.feed import Feed
from bench.training.flops import Cost, measure
from bench.training.forms import TRACED, Form
from bench.training.guards import place_of
from bench.training.limits import Limits, is_large, threads
from bench.training.member import (
    ROWS_AT_ONCE,
    Fitted,
    Member,
    advance,
    remember,
    remembers,
    start,
    validation_loss,
    validation_tape,
)
from bench.training.precision import warn_of_emulation
from bench.training.slot import Slot
from bench.training.stacked_calls import StackedCalls, require_same_tensors
from bench.training.usage import add_steps

SECONDS_BETWEEN_REPORTS = 1.0
NETWORK = ("params", "buffers", "memory")  # the tensors of a trained network
CARRIED = ("params", "buffers", "state")  # what one step hands on to the next
KEPT = ("memory", "values")  # what stays the same during an epoch
# A longer epoch has so many validation rows that compiling their pass pays, too.
STEPS_OF_A_LONG_EPOCH = 100


@dataclass(frozen=True)
class Progress:
    """The progress of a stack."""

    training: int  # networks in training
    waiting: int
    ended: int
    epoch: int  # of the member that has trained longest


def fit(members: Sequence[Member], limits: Limits = Limits()) -> Iterator[tuple[int, Fitted]]:
    """Train all members; yield the number and result of each as soon as it ends."""
    for item in fit_with_progress(members, limits):
        if not isinstance(item, Progress):
            yield item


def fit_with_progress(members: Sequence[Member], limits: Limits = Limits()) -> Iterator[tuple[int, Fitted] | Progress]:
    """Train all members as `fit` does, and yield the progress about once a second."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, member in enumerate(members):
        groups.setdefault(member.stack_key(), []).append(number)
    ended = 0
    for group in groups.values():
        # Slow learners train longest: they come first, so that none of them remains alone at the end.
        group.sort(key=lambda number: members[number].training.learning_rate)
        cost = measure(members[group[0]])
        large = is_large(cost.flops_per_row, limits, cost.alone)
        # Steps of a stack are too small to share between threads: two took twice as long as one.
        with threads(torch.get_num_threads() if large else 1), torch.no_grad():
            for item in _Stack([members[n] for n in group], cost, large, limits).run():
                if isinstance(item, Progress):
                    waiting = len(members) - ended - item.training
                    yield replace(item, waiting=waiting, ended=ended)
                else:
                    ended += 1
                    yield group[item[0]], item[1]


def train_again(member: Member, calls: type[StackedCalls]) -> None:
    """Train one network alone and without `vmap`, every call through another class than `StackedCalls`."""
    cost, limits = measure(member), Limits(path="plain", compiling=False)
    with threads(torch.get_num_threads() if is_large(cost.flops_per_row, Limits()) else 1), torch.no_grad():
        deque(_Stack([member], cost, True, limits, calls).run(), maxlen=0)


class _Stack:
    """A group of members in training."""

    def __init__(
        self,
        members: Sequence[Member],
        cost: Cost,
        large: bool,
        limits: Limits,
        calls: type[StackedCalls] = StackedCalls,
    ) -> None:
        self.members, self.cost, self.large, self.calls = members, cost, large, calls
        self.model = members[0]
        self.device = self.model.rows.x.device
        warn_of_emulation(self.model.training.precision, self.device)
        self.feed = Feed(members[:1] if large else members)
        self.waiting = deque(range(len(members)))
        self.steps = self.model.steps_per_epoch
        stopping = self.model.training.patience > 0 and self.model.method.early_stopping
        self.validated = stopping and len(self.model.rows.validation) > 0
        # The same for all members of a group, since it is part of their key.
        form = self.model.own_form
        self.compiling = form.compiled and compiler_found() if limits.compiling is None else limits.compiling
        # A stack of one would use other kernels than a larger one and differ in the last bit.
        fits = max(2, min(limits.slots, limits.bytes // max(1, cost.step_bytes)))
        # Two compiled graphs of different sizes may differ in the last bit: all have the same, whoever is in them.
        count = min(fits, form.slots) if self.compiling else max(2, min(fits, len(members)))
        self.slots: list[Slot | None] = [None] * (1 if large else count)
        self.folder = Path(limits.checkpoints) if large and limits.checkpoints else None
        self.reported = time.monotonic()
        self.checked: set[str] = set()
        self.validation_tapes: dict[int, TapeLength] = {}

    def run(self) -> Iterator[tuple[int, Fitted] | Progress]:
        """Train all members; yield results and progress."""
        first = start(self.members[0])
        compiling = ["advance", "advance last"] * self.compiling
        if compiling and not self.large and self.steps >= STEPS_OF_A_LONG_EPOCH:
            compiling.append("validate")
        self.call = self.calls(self.model, first.module, large=self.large, compiling=compiling)
        self.columns: dict[str, Any] = {
            part: {name: torch.stack([t] * len(self.slots)) for name, t in getattr(first, part).items()}
            for part in (*CARRIED, *KEPT)
        }
        self.best = {part: pytree.tree_map(torch.clone, self.columns[part]) for part in NETWORK if self.validated}
        while self.waiting or any(self.slots):
            yield from self._admit()
            if not any(self.slots):
                continue
            losses = self._train_epoch()
            yield from self._close_epoch(losses)
            self._compact()
            if time.monotonic() - self.reported >= SECONDS_BETWEEN_REPORTS:
                self.reported = time.monotonic()
                busy = [slot.epoch for slot in self.slots if slot is not None]
                yield Progress(len(busy), len(self.waiting), 0, max(busy, default=0))

    def _admit(self) -> Iterator[tuple[int, Fitted]]:
        free = [place for place, slot in enumerate(self.slots) if slot is None]
        if free and self.waiting:
            # Hooks may return one tensor under two names, or one number for all slots; slots need their own memory.
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
                    self.feed.read_only(member)
                self.slots[place] = slot = Slot(number, member, self.feed.offset(member), first.module)
                if self._resume(slot) and (end := slot.end(self.validated)):
                    self.slots[place] = None
                    yield number, self._result(place, slot, end)

    def _train_epoch(self) -> list[float]:
        add_steps(self.steps, sum(slot is not None for slot in self.slots), len(self.slots))
        full, size, rest = self.model.full_batches, self.model.batch_rows, self.model.partial_rows
        order = self.feed.orders(self.slots, full * size + rest)
        # Steps in front, so that the rows of a step are contiguous.
        chosen = order[:, : full * size].unflatten(1, (full, size)).transpose(0, 1).contiguous()
        clocks = self.feed.clocks(self.slots)
        total = torch.zeros(len(self.slots), device=self.device)
        ahead, room = block_calls(self.cost.step, full), block_calls(self.cost.step, BLOCK)
        for begin in range(0, full, ahead):
            part = slice(begin, min(begin + ahead, full))
            numbers = self.feed.numbers(self.slots, part.stop - begin, self.cost.step, room)
            self._advance("advance", chosen[part], clocks[part], numbers, total)
        if rest:
            # A graph of its own, of the smaller shape: no row is padding, also not for batch norm.
            numbers = self.feed.numbers(self.slots, 1, self.cost.last_step)
            last = order[:, full * size :].contiguous()
            loss = torch.zeros(len(self.slots), device=self.device)
            self._advance("advance last", last[None], clocks[full:], numbers, loss)
            mean = (total * size + loss * rest) / (full * size + rest)
        else:
            mean = total / self.steps
        if remembers(self.model.method):
            normals, uniforms = self.feed.numbers(self.slots, 1, self.cost.epoch)
            done = [(s.epoch + 1) / s.member.training.epochs if s else 0.0 for s in self.slots]
            progress = torch.tensor(done, device=self.device)
            numbers = (normals[0], uniforms[0])
            memory = self.call("remember", remember, self.columns, progress, numbers)
            if "remember" not in self.checked:
                require_same_tensors(place_of(self.model.method, "remember"), self.columns["memory"], memory)
                self.checked.add("remember")
            self.columns["memory"] = memory
        losses: list[float] = mean.tolist()
        return losses

    def _advance(
        self, name: str, chosen: Tensor, clocks: Tensor, numbers: tuple[Tensor, Tensor], total: Tensor
    ) -> None:
        """Advance all slots by some steps on the chosen rows, `[steps, slots, rows]`; add their losses to `total`."""
        step = partial(advance, alone=self.large)
        # Flat tensors: taking nested ones apart at every step takes as long as the step of a small stack.
        carried, structure = pytree.tree_flatten([self.columns[part] for part in CARRIED])
        kept = pytree.tree_leaves([self.columns[part] for part in KEPT])
        for rows, clock, *of_tape in zip(
            self.feed.rows_of_steps(chosen), clocks.unbind(), *(law.unbind() for law in numbers), strict=True
        ):
            call = self.call.prepared(name, step, (self.columns, rows, clock, tuple(of_tape)))
            results = call.run([*carried, *kept, *rows, clock, *of_tape])
            if name not in self.checked:
                self._check_step(*pytree.tree_unflatten(list(results), call.returned))
                self.checked.add(name)
            *carried, loss = results
            total += loss
        self.columns.update(zip(CARRIED, pytree.tree_unflatten(carried, structure), strict=True))

    def _check_step(self, params: dict[str, Tensor], buffers: object, state: dict[str, Tensor], loss: object) -> None:
        place = place_of(self.model.method, "update")
        require_same_tensors(place, self.columns["params"], params)
        require_same_tensors(f"{place}, state", self.columns["state"], state)

    def _close_epoch(self, losses: list[float]) -> Iterator[tuple[int, Fitted]]:
        due = [self.validated and slot is not None and slot.evaluates(slot.epoch + 1) for slot in self.slots]
        validation = self._validation_losses(due) if any(due) else [None] * len(self.slots)
        pairs = list(zip(losses, validation, strict=True))
        better = [place for place, slot in enumerate(self.slots) if slot is not None and slot.record(*pairs[place])]
        if better:
            places = torch.tensor(better, device=self.device)
            for part, tensors in self.best.items():
                for name, tensor in tensors.items():
                    tensor.index_copy_(0, places, self.columns[part][name].index_select(0, places))
        for place, slot in enumerate(self.slots):
            if slot is None:
                continue
            self._save_checkpoint(slot)
            if end := slot.end(self.validated):
                self.slots[place] = None
                yield slot.number, self._result(place, slot, end)

    def _result(self, place: int, slot: Slot, status: Literal["ok", "diverged"]) -> Fitted:
        restored = self.validated and status == "ok"
        source = self.best if restored else self.columns
        params, buffers, memory = ({name: t[place].clone() for name, t in source[part].items()} for part in NETWORK)
        last, best = slot.history[-1][0], slot.best if restored else None
        form = Form(True, len(self.slots)) if self.call.compiling else TRACED
        return Fitted(slot.module, params, buffers, memory, status, form, slot.epoch, last, best, slot.history)

    def _parts(self) -> dict[str, dict[str, Tensor]]:
        """Return all tensors of the one network of a large stack."""
        now = {part: self.columns[part] for part in (*NETWORK, "state")}
        best = {f"best {part}": tensors for part, tensors in self.best.items()}
        return {part: {name: t[0] for name, t in tensors.items()} for part, tensors in (now | best).items()}

    def _save_checkpoint(self, slot: Slot) -> None:
        """Save a large network, if its member has a checkpoint."""
        if self.folder is not None and slot.member.checkpoint:
            parts = self._parts() | {"member": slot.state()}
            form = checkpoints.form(self.device, bool(self.call.compiling))
            if not checkpoints.save(self.folder / slot.member.checkpoint, parts, form):
                self.folder = None

    def _resume(self, slot: Slot) -> bool:
        """Load a large network's checkpoint; return whether there was one."""
        if self.folder is None or not slot.member.checkpoint:
            return False
        form = checkpoints.form(self.device, bool(self.call.compiling))
        parts = checkpoints.load(self.folder / slot.member.checkpoint, form, self._parts())
        if parts is None:
            return False
        slot.resume(parts.pop("member"))
        for part, tensors in parts.items():
            target = self.best if part.startswith("best ") else self.columns
            into = target[part.removeprefix("best ")]
            for name, tensor in tensors.items():
                into[name][0] = tensor
        return True

    def _validation_losses(self, due: Sequence[bool]) -> list[float | None]:
        """Return the validation losses of the slots that are due; None for the others, which draw no numbers."""
        sizes = torch.tensor([float(s.rows) if s else 1.0 for s in self.slots], device=self.device)
        total = torch.zeros(len(self.slots), device=self.device)
        for rows in self.feed.validation(self.slots, ROWS_AT_ONCE if self.large else None):
            count = rows[0].shape[1]
            if count not in self.validation_tapes:
                self.validation_tapes[count] = validation_tape(self.model, count)
            normals, uniforms = self.feed.numbers(self.slots, 1, self.validation_tapes[count], due=due)
            numbers = (normals[0], uniforms[0])
            mean = self.call("validate", validation_loss, self.columns, rows, sizes, numbers)
            total += mean * (count / len(self.model.rows.validation))
        return [loss if wanted else None for loss, wanted in zip(total.tolist(), due, strict=True)]

    def _compact(self) -> None:
        busy = [place for place, slot in enumerate(self.slots) if slot is not None]
        if self.waiting or not busy or len(self.slots) <= 2 or len(busy) > len(self.slots) // 4:
            return
        if self.compiling:  # the size of a compiled stack is fixed
            return
        # At least two: see the comment on a stack of one.
        places = (busy + [p for p in range(len(self.slots)) if p not in busy])[: max(2, len(busy))]
        self.slots = [self.slots[p] for p in places]
        self.columns = pytree.tree_map(lambda t: t[places].contiguous(), self.columns)
        self.best = pytree.tree_map(lambda t: t[places].contiguous(), self.best)
        self.call.clear()
