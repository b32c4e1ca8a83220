"""The time of the miniature device: it works behind the host, as an accelerator does, in a time that is computed.

    with queue(milliseconds=1.0) as device:
        clock = clock_of("miniature")     # events on the queue
        ...                               # every operation takes a millisecond of the device, and a moment of the host
        device.host                       # what the host's own clock shows

An operation returns to the host at once and is done after all that was queued before it. An event passes when the
device comes to it; reading one earlier raises, as on a GPU. A copy to the host that does not block holds NaN until the
host has waited. So a missing wait shows, without a GPU and the same every time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch import Tensor

from bench.testing.miniature import attached, miniature

LAUNCH = 0.01  # milliseconds in which the host queues an operation
RECORD = 0.001  # milliseconds in which the device passes an event


class DeviceQueue:
    """The work of the device, and two clocks in milliseconds: the host's, and when all that is queued is done."""

    def __init__(self, milliseconds: float) -> None:
        self.milliseconds = milliseconds  # of the device for one operation
        self.host = 0.0
        self.done = 0.0
        self.operations = 0
        self._copies: list[tuple[Tensor, Tensor]] = []

    def operate(self, operation: str) -> None:
        """Queue an operation."""
        self.operations += 1
        self.host += LAUNCH
        self.done = max(self.host, self.done) + self.milliseconds

    def wait(self) -> None:
        """Let the host wait for all that is queued."""
        self.host = max(self.host, self.done)
        for target, numbers in self._copies:
            target.copy_(numbers)
        self._copies.clear()

    def copy_later(self, target: Tensor) -> None:
        """Take back the numbers of a copy until the host has waited for it."""
        self._copies.append((target, target.clone()))
        target.fill_(torch.nan if target.is_floating_point() else 0)

    def nanoseconds(self) -> int:
        """Return the host's clock, as `time.perf_counter_ns` does."""
        return round(self.host * 1e6)


class Event:
    """A place in the queue; it has the part of `torch.Event` that timing needs."""

    def __init__(self, device: DeviceQueue) -> None:
        self._device = device
        self._passed: float | None = None

    def record(self, stream: object = None) -> None:
        """Put it behind all that is queued."""
        self._device.done = self._passed = max(self._device.host, self._device.done) + RECORD

    def query(self) -> bool:
        """Return whether the device has passed it, as far as the host can know."""
        return self._passed is not None and self._passed <= self._device.host

    def synchronize(self) -> None:
        """Let the host wait for it."""
        if self._passed is not None:
            self._device.host = max(self._device.host, self._passed)

    def elapsed_time(self, other: "Event") -> float:
        """Return the milliseconds from this event to another; both must have passed."""
        if not (self.query() and other.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        assert self._passed is not None
        assert other._passed is not None
        return other._passed - self._passed


@contextmanager
def queue(milliseconds: float = 1.0) -> Iterator[DeviceQueue]:
    """Give the miniature device a time inside the block: torch's events and waits are those of its queue."""
    miniature()
    device = DeviceQueue(milliseconds)

    def new_event(*_: object, **__: object) -> Event:
        return Event(device)

    def synchronize(*_: object) -> None:
        device.wait()

    waits = patch.object(torch.accelerator, "synchronize", synchronize)
    with attached(device), patch.object(torch, "Event", new_event), waits:
        yield device
