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
    """The clock of an accelerator: events among the work of the stream that is current when they are recorded."""

    def __init__(self, device: str, event: Callable[[], Any] | None = None, wait: Callable[[], None] | None = None):
        import torch

        self._event: Callable[[], Any] = event or (lambda: torch.Event(device, enable_timing=True))
        self._wait = wait or (lambda: torch.accelerator.synchronize(torch.device(device)))
        # Named, because an event by itself would take the stream of the current device, which may be another one.
        self._streams: list[Callable[[], Any]] = []
        if event is None:
            self._streams.append(lambda: torch.accelerator.current_stream(torch.device(device)))

    def wait(self) -> None:
        """Wait for the device."""
        self._wait()

    def mark(self) -> Any:
        """Record an event."""
        event = self._event()
        event.record(*(stream() for stream in self._streams))
        return event

    def milliseconds(self, start: Any, end: Any) -> float:
        """Return the time between two events of which the device has passed both."""
        return float(start.elapsed_time(end))


def clock_of(device: str) -> Clock:
    """Return the clock of a device."""
    return HostClock() if device == "cpu" else EventClock(device)
