"""The load of the machine: other processes and throttling."""

import contextlib
import os
import time
from pathlib import Path

from bench.machine.environment import cores

_STAT = Path("/proc/stat")
_PROCESSORS = Path("/sys/devices/system/cpu")


def load_average() -> float | None:
    """Return how many processes were running over the last minute; None where the system does not report it."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


class OtherProcesses:
    """The share of the processors that other processes use from now on."""

    def __init__(self) -> None:
        self._start = self._now()

    def share(self) -> float | None:
        """Return their share since, from 0 to 1; None where the system does not report it."""
        end = self._now()
        if self._start is None or end is None:
            return None
        seconds, busy, own = (b - a for a, b in zip(self._start, end, strict=True))
        return min(1.0, max(0.0, (busy - own) / (seconds * (os.cpu_count() or cores())))) if seconds > 0 else None

    def _now(self) -> tuple[float, float, float] | None:
        """Return wall clock, seconds of all processors spent working (or stolen by a host), and our own."""
        try:
            first = _STAT.read_text("utf-8").partition("\n")[0].split()
            ticks = [int(part) for part in first[1:]]
            idle = ticks[3] + ticks[4]  # idle, and waiting for a disk
            busy = (sum(ticks[:8]) - idle) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError, AttributeError):
            return None
        return time.perf_counter(), busy, time.process_time()


class Throttling:
    """Whether the processor was held back for its heat from now on."""

    def __init__(self, folder: Path = _PROCESSORS) -> None:
        self._folder = folder
        self._start = self._count()

    def message(self) -> str:
        """Return in words what the system reports since; empty: nothing."""
        times = self._count() - self._start
        return f"the processor was throttled for its heat {times} times" if times > 0 else ""

    def _count(self) -> int:
        total = 0
        for path in self._folder.glob("cpu*/thermal_throttle/core_throttle_count"):
            with contextlib.suppress(OSError, ValueError):
                total += int(path.read_text("utf-8"))
        return total
