"""Counts the training steps of stacks, and how many of them were spent on slots without a member."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Usage:
    """Training steps since a count began."""

    member_steps: int = 0  # one network, one batch
    slot_steps: int = 0  # the same, with the slots that trained no member

    @property
    def share(self) -> float:
        """Return the share of slot-steps that trained a member."""
        return self.member_steps / self.slot_steps if self.slot_steps else 1.0


_open: list[Usage] = []


@contextmanager
def counted() -> Iterator[Usage]:
    """Yield the steps that stacks of this process train inside the block."""
    usage = Usage()
    _open.append(usage)
    try:
        yield usage
    finally:
        # By identity: equal counts of two open blocks are not the same.
        _open[:] = [other for other in _open if other is not usage]


def add_steps(steps: int, busy: int, slots: int) -> None:
    """Count steps of a stack, of whose slots some were busy."""
    for usage in _open:
        usage.member_steps += steps * busy
        usage.slot_steps += steps * slots
