"""The clock of a device: moments are marked while work is queued, and read once it is done.

A GPU works while the host goes on. So a moment there is an event recorded among the work of the stream, and nothing is
read before the device has been waited for. On the CPU a moment is a reading of the clock.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol


class Clock(Protocol):
    """What a pass is timed with."""

    def wait(self) -> None:
        """Wait until the device has done all that was queued."""
        ...

    def mark(self) -> Any:
        """Return this moment in the device's order of work."""
        ...

    def milliseconds(self, start: Any, end: Any) -> float:
        """Return the time between two moments; wait before asking."""
        ...


class HostClock:
    """The clock of the CPU, where work is done when its call returns."""

    def __init__(self, nanoseconds: Callable[[], int] = time.perf_counter_ns) -> None:
        self._nanoseconds = nanoseconds

    def wait(self) -> None:
        """Nothing is queued."""

    def mark(self) -> int:
        """Return the reading."""
        return self._nanoseconds()

    def milliseconds(self, start: int, end: int) -> float:
        """Return the time between two readings."""
        return (end - start) / 1e6


class EventClock:
    """The clock of an accelerator: events on its current stream."""

    def __init__(self, device: str, event: Callable[[], Any] | None = None, wait: Callable[[], None] | None = None):
        import torch

        self._event = event or (lambda: torch.Event(device, enable_timing=True))
        self._wait = wait or torch.accelerator.synchronize

    def wait(self) -> None:
        """Wait for the device."""
        self._wait()

    def mark(self) -> Any:
        """Record an event."""
        event = self._event()
        event.record()
        return event

    def milliseconds(self, start: Any, end: Any) -> float:
        """Return the time between two events of which the device has passed both."""
        return float(start.elapsed_time(end))


def clock_of(device: str) -> Clock:
    """Return the clock of a device."""
    return HostClock() if device == "cpu" else EventClock(device)
