"""Validates all networks of a stack: one pass, or the mean of many draws."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bench.api.tape import TapeLength, block_calls
from bench.training.feed import Feed, Slots
from bench.training.member import ROWS_AT_ONCE, Member
from bench.training.stacked_calls import StackedCalls
from bench.training.transfers import to_device
from bench.training.validation import draws_to_average, loss_of_mean, validation_draw, validation_loss, validation_tape

Network = dict[str, dict[str, Tensor]]  # the tensors of the networks of all slots, by part

# Epochs of a turn are validated several at once, but not more than have activations in the processor's cache: eight
# epochs of 32 networks and 138 rows took six times as long together as one by one.
ROWS_OF_NETWORKS = 2**12
PASSES_OF_A_STEP = 3  # forward, and twice as much backward


class Validator:
    """The validation losses of the slots of a stack."""

    def __init__(self, model: Member, feed: Feed, large: bool) -> None:
        self._model, self._feed, self._large = model, feed, large
        self._rows = len(model.rows.validation)
        self._tapes: dict[int, TapeLength] = {}

    @property
    def reads_numbers(self) -> bool:
        """Whether a validation reads random numbers."""
        return self._tape(self._rows).total > 0

    def waiting_pays(self, epochs: int) -> bool:
        """Whether a validation of all slots costs more than this many epochs: the mean of many draws at many rows.

        It is of all slots, however few are due, so those that are due at different times pay it again and again.
        """
        draws = draws_to_average(self._model, self._tape(self._rows))
        return draws * self._rows > epochs * PASSES_OF_A_STEP * len(self._model.rows.train)

    def losses(self, call: StackedCalls, slots: Slots, networks: Sequence[Network]) -> Tensor:
        """Return the losses of all slots after each epoch of a turn, `[epochs, slots]`, on the device.

        Slots that are not due draw no numbers.
        """
        fits = max(1, ROWS_OF_NETWORKS // max(1, self._rows * len(slots)))
        # All calls are of one graph, whose shapes are fixed.
        at_once = max(n for n in range(1, len(networks) + 1) if n <= fits and len(networks) % n == 0)
        groups = [networks[begin : begin + at_once] for begin in range(0, len(networks), at_once)]
        return torch.cat([self._losses(call, slots, group) for group in groups])

    def _losses(self, call: StackedCalls, slots: Slots, networks: Sequence[Network]) -> Tensor:
        due = [slot is not None and slot.evaluates(slot.epoch + 1) for slot in slots]
        times = len(networks)
        columns = {part: _one_after_another([each[part] for each in networks]) for part in networks[0]}
        trained = to_device(torch.tensor([float(s.rows) if s else 1.0 for s in slots]), self._feed.device).repeat(times)
        total = torch.zeros(times * len(slots), device=self._feed.device)
        everyone, all_due = list(slots) * times, due * times
        for rows in self._feed.validation(slots, ROWS_AT_ONCE if self._large else None, times):
            count = rows[0].shape[1]
            tape = self._tape(count)
            if draws := draws_to_average(self._model, tape):
                mean = self._sum_of_draws(call, everyone, all_due, columns, rows[0], draws) / draws
                loss = call("validate mean", loss_of_mean, rows, trained, mean)
            else:
                normals, uniforms = self._feed.numbers(everyone, 1, tape, due=all_due)
                loss = call("validate", validation_loss, columns, rows, trained, (normals[0], uniforms[0]))
            total += loss * (count / self._rows)
        return total.view(times, -1)

    def _sum_of_draws(
        self, call: StackedCalls, slots: Slots, due: Sequence[bool], columns: Network, x: Tensor, draws: int
    ) -> Tensor:
        """Return the sum of this many draws of every slot, `[slots, rows, outputs]`."""
        tape = self._tape(x.shape[1])
        at_once = block_calls(tape, draws)
        total: Tensor | None = None
        for begin in range(0, draws, at_once):
            numbers = self._feed.numbers(slots, min(at_once, draws - begin), tape, at_once, due=due)
            for pair in zip(*(law.unbind() for law in numbers), strict=True):
                drawn = call("validate draw", validation_draw, columns, x, pair)
                total = drawn if total is None else total + drawn
        assert total is not None
        return total

    def _tape(self, rows: int) -> TapeLength:
        if rows not in self._tapes:
            self._tapes[rows] = validation_tape(self._model, rows)
        return self._tapes[rows]


def _one_after_another(epochs: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.cat([each[name] for each in epochs]) if len(epochs) > 1 else t for name, t in epochs[0].items()}
