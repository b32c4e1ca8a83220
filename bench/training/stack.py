"""Trains many networks together, each with the result of training it alone.

Members that can share a graph form a group. A group has a fixed number of *slots*; each slot trains one member, and
when a member stops (last epoch, early stopping, divergence) the next one takes its slot. So shapes stay the same for
the compiler, memory is bounded by the slots, and a study may have thousands of members. When no member waits and few
slots are busy, the stack is compacted. A compiled stack has one of two sizes, so that two graphs serve a search, its
final fit and every tail: wide while a queue keeps it full, and narrow otherwise.

Small networks, whose cost is overhead, run *stacked* (`vmap` over the slots, traced, compiled where it pays); large
ones, whose cost is arithmetic, run *plain* (one slot, no `vmap`).
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from bench.api.tape import BLOCK, block_calls
from bench.errors import UserError
from bench.training import checkpoints
from bench.training.compiled_graphs import compiler_found
from bench.training.feed import Feed
from bench.training.flops import Cost
from bench.training.forms import TRACED, Form, compiled_slots
from bench.training.guards import place_of
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, advance, remember, remembers, start
from bench.training.precision import warn_of_emulation
from bench.training.progress import Progress
from bench.training.slot import Slot, judged_by_teams
from bench.training.stacked_calls import StackedCalls, require_same_tensors
from bench.training.tracing import FlatCall
from bench.training.transfers import to_device
from bench.training.usage import add_steps
from bench.training.validator import Network, Validator

Status = Literal["ok", "diverged"]

SECONDS_BETWEEN_REPORTS = 1.0
NETWORK = ("params", "buffers", "memory")  # the tensors of a trained network
CARRIED = ("params", "buffers", "state")  # what one step hands on to the next
KEPT = ("memory", "values")  # what stays the same during an epoch
# A longer epoch has so many validation rows that compiling their pass pays, too.
STEPS_OF_A_LONG_EPOCH = 100
# Short epochs are taken several at once: between epochs there is more to do than in several steps.
EPOCHS_AT_ONCE, STEPS_AT_ONCE = 16, 128


class Stack:
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
        self.team_size = self.model.team.size if self.model.team is not None else 1
        # Slots of a compiled stack for which no member waits.
        self.narrow = 1 if large else max(self.team_size, min(fits, form.slots))
        if self.compiling:
            known = not self.validated and len({member.training.epochs for member in members}) == 1
            count = compiled_slots(form, fits, len(members), cost.step_bytes, lengths_known=known)
        else:
            count = max(2, min(fits, len(members)))
        if large and self.team_size > 1:
            raise UserError(
                "stop_together is for networks that are trained side by side: those of this search are so large that "
                "they are trained one by one; give stop_together = false"
            )
        self.slots: list[Slot | None] = [None] * (1 if large else max(count, self.team_size))
        self.folder = Path(limits.checkpoints) if large and limits.checkpoints else None
        self.reported = time.monotonic()
        self.checked: set[str] = set()
        self.validator = Validator(self.model, self.feed, large)
        self.epochs_at_once = self._epochs_at_once(limits.bytes)
        every = self.model.training.evaluate_every
        # Members begin only every so many epochs, so that all of them are evaluated at the same time.
        self.rhythm = every if self.validated and self.validator.waiting_pays(every) else 1

    def run(self) -> Iterator[tuple[int, Fitted] | Progress]:
        """Train all members; yield results and progress."""
        first = start(self.members[0])
        compiling = ["advance", "advance last"] * self.compiling
        if compiling and not self.large and self.steps >= STEPS_OF_A_LONG_EPOCH:
            compiling.append("validate")
        if compiling and self.model.training.validation_draws:
            compiling.append("validate draw")
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
            yield from self._close_turn(self._train_turn())
            self._compact()
            if time.monotonic() - self.reported >= SECONDS_BETWEEN_REPORTS:
                self.reported = time.monotonic()
                busy = [slot.epoch for slot in self.slots if slot is not None]
                yield Progress(len(busy), len(self.waiting), 0, max(busy, default=0))

    def _admit(self) -> Iterator[tuple[int, Fitted]]:
        free = [place for place, slot in enumerate(self.slots) if slot is None]
        if any(slot.epoch % self.rhythm for slot in self.slots if slot):
            return
        free = free[: len(free) - len(free) % self.team_size]  # teams begin together, and wait in the order of teams
        if free and self.waiting:
            # Hooks may return one tensor under two names, or one number for all slots; slots need their own memory.
            self.columns = pytree.tree_map(self._own_memory, self.columns)
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
                    yield number, self._result(place, slot, end, self.columns)

    def _own_memory(self, tensor: Tensor) -> Tensor:
        """Return a copy in the memory format of the stack: a compiled one has tall matrices by columns.

        Their gradients are products that are computed by columns, too (`tracing`), so that the update of the weights
        runs along whole vectors.
        """
        if self.compiling and not self.large and tensor.ndim == 3 and tensor.shape[1] > tensor.shape[2] > 1:
            return tensor.mT.clone(memory_format=torch.contiguous_format).mT
        return tensor.clone(memory_format=torch.contiguous_format)

    def _epochs_at_once(self, room: int) -> int:
        """Return how many epochs a turn has; one where something happens between two of them that needs the last."""
        reads = self.validated and self.validator.reads_numbers
        in_order = reads or (self.model.partial_rows and self.cost.last_step.total)  # both read the stream of a step
        if self.large or in_order or remembers(self.model.method):
            return 1
        ahead = block_calls(self.cost.step, BLOCK) // self.model.full_batches  # epochs whose numbers are drawn ahead
        fits = room // max(1, len(self.slots) * self.cost.step_bytes)  # all of them are validated together
        return max(1, min(EPOCHS_AT_ONCE, STEPS_AT_ONCE // self.steps, ahead, fits))

    def _train_turn(self) -> tuple[Tensor, list[Network]]:
        """Train some epochs; return the losses of all slots, on the device, and their networks after each."""
        epochs = self.epochs_at_once
        if not self.validated:  # all epochs of a turn are validated by one graph, whose size is fixed
            epochs = min(epochs, *(s.member.training.epochs - s.epoch for s in self.slots if s))
        full, size, rest = self.model.full_batches, self.model.batch_rows, self.model.partial_rows
        order = self.feed.orders(self.slots, full * size + rest, epochs)
        # Steps in front, so that the rows of a step are contiguous.
        chosen = order[..., : full * size].unflatten(2, (full, size)).transpose(1, 2).contiguous()
        clocks = self.feed.clocks(self.slots, epochs)
        ahead, room = block_calls(self.cost.step, full), block_calls(self.cost.step, BLOCK)
        several = self.feed.numbers(self.slots, epochs * full, self.cost.step, room, cut=full) if epochs > 1 else None
        means, networks = [], []
        for epoch in range(epochs):
            total = torch.zeros(len(self.slots), device=self.device)
            for begin in range(0, full, ahead):
                part = slice(begin, min(begin + ahead, full))
                if several is None:
                    numbers = self.feed.numbers(self.slots, part.stop - begin, self.cost.step, room)
                else:
                    first, second = (law[epoch * full : (epoch + 1) * full] for law in several)
                    numbers = (first[part], second[part])
                self._advance("advance", chosen[epoch, part], clocks[epoch, part], numbers, total)
            if rest:
                # A graph of its own, of the smaller shape: no row is padding, also not for batch norm.
                numbers = self.feed.numbers(self.slots, 1, self.cost.last_step)
                last = order[epoch, :, full * size :].contiguous()
                loss = torch.zeros(len(self.slots), device=self.device)
                self._advance("advance last", last[None], clocks[epoch, full:], numbers, loss)
                means.append((total * size + loss * rest) / (full * size + rest))
            else:
                means.append(total / self.steps)
            self._remember()
            networks.append({part: self.columns[part] for part in NETWORK})
        return torch.stack(means), networks

    def _remember(self) -> None:
        """Let the method remember what it wants of an epoch."""
        if not remembers(self.model.method):
            return
        normals, uniforms = self.feed.numbers(self.slots, 1, self.cost.epoch)
        done = [(s.epoch + 1) / s.member.training.epochs if s else 0.0 for s in self.slots]
        progress = to_device(torch.tensor(done), self.device)
        memory = self.call("remember", remember, self.columns, progress, (normals[0], uniforms[0]))
        if "remember" not in self.checked:
            require_same_tensors(place_of(self.model.method, "remember"), self.columns["memory"], memory)
            self.checked.add("remember")
        self.columns["memory"] = memory

    def _advance(
        self, name: str, chosen: Tensor, clocks: Tensor, numbers: tuple[Tensor, Tensor], total: Tensor
    ) -> None:
        """Advance all slots by some steps on the chosen rows, `[steps, slots, rows]`; add their losses to `total`."""
        step = partial(advance, alone=self.large)
        # Flat tensors: taking nested ones apart at every step takes as long as the step of a small stack.
        carried, structure = pytree.tree_flatten([self.columns[part] for part in CARRIED])
        kept = pytree.tree_leaves([self.columns[part] for part in KEPT])
        call: FlatCall | None = None
        for rows, clock, *of_tape in zip(
            self.feed.rows_of_steps(chosen), clocks.unbind(), *(law.unbind() for law in numbers), strict=True
        ):
            if call is None:
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

    def _close_turn(self, turn: tuple[Tensor, list[Network]]) -> Iterator[tuple[int, Fitted]]:
        """Record the epochs of a turn, keep the best networks, and yield the results of members that have ended."""
        means, networks = turn
        busy = [(place, slot) for place, slot in enumerate(self.slots) if slot is not None]
        read = [means]
        if self.validated and self._due(len(networks)):
            trained = [{**each, "values": self.columns["values"]} for each in networks]
            read.append(self.validator.losses(self.call, self.slots, trained))
        # The one place where the host waits for the device.
        losses, *of_validation = torch.stack(read).tolist()
        validation = [judged_by_teams(self.slots, each) for each in of_validation[0]] if of_validation else None
        best: dict[int, list[int]] = {}  # epoch of the turn: the places whose best network it has
        ended: list[tuple[int, Slot, Status, int]] = []
        recorded = 0
        for place, slot in busy:
            better = None
            for epoch in range(len(networks)):
                held = validation[epoch][place] if validation and slot.evaluates(slot.epoch + 1) else None
                recorded += 1
                if slot.record(losses[epoch][place], held):
                    better = epoch
                if status := slot.end(self.validated):  # what it trained after that in this turn does not count
                    ended.append((place, slot, status, epoch))
                    break
            if better is not None:
                best.setdefault(better, []).append(place)
        add_steps(self.steps, recorded, len(networks) * len(self.slots))
        for epoch, chosen in best.items():
            places = to_device(torch.tensor(chosen), self.device)
            for part, tensors in self.best.items():
                for name, tensor in tensors.items():
                    tensor.index_copy_(0, places, networks[epoch][part][name].index_select(0, places))
        for _, slot in busy:
            self._save_checkpoint(slot)
        for place, slot, status, epoch in ended:
            self.slots[place] = None
            yield slot.number, self._result(place, slot, status, networks[epoch])

    def _due(self, epochs: int) -> bool:
        """Return whether any slot is to be validated after one of its next epochs."""
        return any(slot.evaluates(slot.epoch + 1 + k) for slot in self.slots if slot for k in range(epochs))

    def _result(self, place: int, slot: Slot, status: Status, last: Network) -> Fitted:
        """Return the result of a member, whose network after its last epoch is this one."""
        restored = self.validated and status == "ok"
        source = self.best if restored else last
        params, buffers, memory = ({name: t[place].clone() for name, t in source[part].items()} for part in NETWORK)
        loss, best = slot.history[-1][0], slot.best if restored else None
        form = Form(True, self.narrow) if self.call.compiling else TRACED
        return Fitted(slot.module, params, buffers, memory, status, form, slot.epoch, loss, best, slot.history)

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

    def _compact(self) -> None:
        """Give up slots that no member will need."""
        busy = [place for place, slot in enumerate(self.slots) if slot is not None]
        # Traced, at least two: see the comment on a stack of one.
        size = self.narrow if self.compiling else max(2, len(busy))
        few = size if self.compiling else len(self.slots) // 4
        if self.large or self.waiting or not busy or len(busy) > few or len(self.slots) <= size:
            return
        places = (busy + [p for p in range(len(self.slots)) if p not in busy])[:size]
        self.slots = [self.slots[p] for p in places]
        self.columns, self.best = (
            pytree.tree_map(lambda t: self._own_memory(t[places]), tensors) for tensors in (self.columns, self.best)
        )
        self.call.clear()
