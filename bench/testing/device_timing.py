"""Whether the times of a device can be believed: a kernel that fills it, timed once and twice, and by two clocks."""

import time
from collections.abc import Callable

import torch

from bench.probes.latency.clock import clock_of

MILLISECONDS = 30.0  # of one measurement at least: far above the cost of launching
REPEATS = 7


def saturating_work(device: str) -> Callable[[int], None]:
    """Return a function that queues so many times the same work, of at least `MILLISECONDS`."""
    size = 512 if device == "cpu" else 4096
    x = torch.ones(size, size, device=device) / size
    out = torch.empty_like(x)

    def work(times: int) -> None:
        for _ in range(times):
            torch.mm(x, x, out=out)

    count = 1
    while by_clock(work, count, device) < MILLISECONDS and count < 2**20:
        count *= 2
    return lambda times: work(times * count)


def by_clock(work: Callable[[int], None], times: int, device: str) -> float:
    """Return the milliseconds of some work by the clock that latencies are measured with."""
    clock = clock_of(device)
    clock.wait()
    start = clock.mark()
    work(times)
    end = clock.mark()
    clock.wait()
    return clock.milliseconds(start, end)


def by_host(work: Callable[[int], None], times: int, device: str) -> float:
    """Return the milliseconds of some work by the clock of the host, which waits before and after."""
    clock = clock_of(device)
    clock.wait()
    start = time.perf_counter()
    work(times)
    clock.wait()
    return (time.perf_counter() - start) * 1e3


def times_for_twice(work: Callable[[int], None], device: str) -> float:
    """Return how many times as long twice the work takes; shortest of several, in turn: others only ever add time."""
    once, twice = [], []
    for _ in range(REPEATS):
        once.append(by_clock(work, 1, device))
        twice.append(by_clock(work, 2, device))
    return min(twice) / min(once)


def events_to_host(work: Callable[[int], None], device: str) -> float:
    """Return the time by events relative to the time by the host's clock."""
    events = min(by_clock(work, 2, device) for _ in range(REPEATS))
    host = min(by_host(work, 2, device) for _ in range(REPEATS))
    return events / host
