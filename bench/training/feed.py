"""What the slots of a stack read: rows, random numbers, and the clocks of their steps."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from bench.api.optim import epoch_rates
from bench.api.tape import TapeLength, write_numbers
from bench.training.member import Member, Rows, optimizer_of
from bench.training.slot import Slot
from bench.training.streams import Draws
from bench.training.transfers import to_device

Slots = Sequence[Slot | None]  # None: free

# Rows are gathered for several steps at once, but not for more than stay in the processor's cache.
NUMBERS_GATHERED = 2**18


class Feed:
    """The data of a group of members, in one table, and the memory of their random numbers."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.model = members[0]
        self.device = self.model.rows.x.device
        self._table, self._offsets = _join([member.rows for member in members])
        self._draws = Draws(len({member.seed for member in members}) < len(members), self.device)
        self._stacked: dict[str, tuple[tuple[int | None, ...], Tensor]] = {}
        self._validation: tuple[Tensor, Tensor, Tensor] | None = None  # row numbers, and their inputs and targets
        self._tapes: dict[tuple[int, int, TapeLength], tuple[Tensor, ...]] = {}

    def offset(self, member: Member) -> int:
        """Return where the rows of a member begin in the table."""
        return self._offsets[id(member.rows)]

    def read_only(self, member: Member) -> None:
        """Read the rows of this member alone: a large network does not need a table of all."""
        self._table, self._offsets = _join([member.rows])

    def orders(self, slots: Slots, count: int, epochs: int = 1) -> Tensor:
        """Return the row numbers of the next epochs of each slot, batch after batch: `[epochs, slots, count]`."""
        train = self._of_slots(slots, "train")
        # One step on all rows: their order does not matter.
        if self.model.batch_rows == train.shape[1] or not self.model.training.shuffle:
            return train[:, :count].expand(epochs, -1, -1)
        streams = [slot.shuffles if slot is not None else None for slot in slots]
        size = (len(slots), epochs, train.shape[1])
        if self.device.type == "cpu":
            places = torch.zeros(size, dtype=torch.long)
            self._draws.into(streams, places, draw=_shuffle)
        else:
            # A permutation takes several kernels for each slot; random keys take one, and one sort puts all in order.
            keys = torch.zeros(size, dtype=torch.int32, device=self.device)
            self._draws.into(streams, keys, draw=_write_keys)
            places = keys.argsort(dim=2)
        places = places[:, :, :count].transpose(0, 1)
        return train.expand(epochs, -1, -1).gather(2, places)

    def validation(self, slots: Slots, at_once: int | None, times: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and targets of the validation rows, `[slots, rows]`, this many at once; None: all.

        All can be had several times: `[times * slots, rows]`.
        """
        x, y = self._table
        rows = self._of_slots(slots, "validation")
        if at_once is None:
            if (
                self._validation is None
                or self._validation[0] is not rows
                or len(self._validation[1]) != times * len(rows)
            ):
                chosen = rows.repeat(times, 1)
                self._validation = (rows, x[chosen], y[chosen])
            yield self._validation[1:]
            return
        for part in rows.split(at_once, dim=1):
            yield x[part], y[part]

    def _of_slots(self, slots: Slots, which: Literal["train", "validation"]) -> Tensor:
        """Return row numbers of every slot, the same tensor for as long as no member comes or goes."""
        present = tuple(None if slot is None else slot.number for slot in slots)
        if which not in self._stacked or self._stacked[which][0] != present:
            blank = torch.zeros_like(getattr(self.model.rows, which))
            rows = torch.stack([blank if slot is None else getattr(slot, which) for slot in slots])
            rows = to_device(rows, self.device)
            self._stacked[which] = (present, rows)
        return self._stacked[which][1]

    def rows_of_steps(self, chosen: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and targets of the chosen rows, `[steps, slots, rows]`, step by step."""
        x, y = self._table
        at_once = max(1, NUMBERS_GATHERED // max(1, chosen[0].numel() * x[0].numel()))
        for part in chosen.split(at_once):
            rows = part.flatten()
            parts = (values.index_select(0, rows).unflatten(0, part.shape).unbind() for values in (x, y))
            yield from zip(*parts, strict=True)

    def numbers(
        self,
        slots: Slots,
        calls: int,
        length: TapeLength,
        room: int = 1,
        due: Sequence[bool] | None = None,
        cut: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """Return the next random numbers of every slot (that is due), `[calls, slots, n]`, from memory for `room`.

        They are drawn for this many calls (`cut`) in one go; 0: for all.
        """
        # The memory is reused: allocating megabytes each time costs more than drawing the numbers. Its layout depends
        # on the length of the tape alone, so that one compiled graph serves epochs of any length.
        size = (len(slots), room, length)
        if size not in self._tapes:
            laws = (length.normals, length.uniforms)
            self._tapes[size] = tuple(torch.zeros(len(slots), room, n, device=self.device) for n in laws)
        normals, uniforms = self._tapes[size]
        if length.total:
            drawing = [
                slot.noise if slot is not None and (due is None or due[place]) else None
                for place, slot in enumerate(slots)
            ]
            write = partial(_write_cut, cut or calls)
            self._draws.into(drawing, normals[:, :calls], uniforms[:, :calls], draw=write)
        blank = torch.zeros(calls, len(slots), 0, device=self.device)
        first, second = (law.transpose(0, 1)[:calls] if law.numel() else blank for law in (normals, uniforms))
        return first, second

    def clocks(self, slots: Slots, epochs: int = 1) -> Tensor:
        """Return the fields of `Step`, for each step of the next epochs and each slot: `[epochs, steps, slots, 6]`."""
        steps = self.model.steps_per_epoch
        betas = optimizer_of(self.model.training).betas
        busy = [(place, slot, slot.member.training) for place, slot in enumerate(slots) if slot is not None]
        clocks = np.ones((epochs, steps, len(slots), 6))
        clocks[..., 0:2] = 0.0  # a free slot does not move
        places = [place for place, _, _ in busy]
        # Members that began together have the same ones. Epochs after the last one do not count.
        rates = [
            tuple((t.schedule, betas, min(slot.epoch + k, t.epochs - 1), steps, t.epochs) for k in range(epochs))
            for _, slot, t in busy
        ]
        distinct = {each: np.stack([epoch_rates(*rate) for rate in each]) for each in set(rates)}
        factors = np.stack([distinct[each] for each in rates], axis=2)
        clocks[:, :, places, 0] = np.array([t.learning_rate for _, _, t in busy]) * factors[..., 0]
        clocks[:, :, places, 1] = [t.weight_decay for _, _, t in busy]
        clocks[:, :, places, 2:5] = factors[..., 1:]
        clocks[:, :, places, 5] = [slot.rows for _, slot, _ in busy]
        return to_device(torch.from_numpy(clocks.astype(np.float32)), self.device)


def _write_cut(cut: int, source: torch.Generator, normals: Tensor, uniforms: Tensor) -> None:
    """Fill two tensors with the next numbers of a stream, drawn for `cut` calls in one go."""
    for part in range(0, len(normals), cut):
        write_numbers(source, normals[part : part + cut], uniforms[part : part + cut])


def _shuffle(source: torch.Generator, places: Tensor) -> None:
    for epoch in places:
        torch.randperm(len(epoch), generator=source, out=epoch)


def _write_keys(source: torch.Generator, keys: Tensor) -> None:
    keys.random_(generator=source)


def _join(rows: Sequence[Rows]) -> tuple[tuple[Tensor, Tensor], dict[int, int]]:
    """Concatenate the distinct data of all members into one table; return it with the offset of each."""
    distinct = {id(r): r for r in rows}
    offsets, begin = {}, 0
    for key, data in distinct.items():
        offsets[key] = begin
        begin += len(data.x)
    if len(distinct) == 1:
        return (rows[0].x, rows[0].y), offsets
    return (torch.cat([r.x for r in distinct.values()]), torch.cat([r.y for r in distinct.values()])), offsets
