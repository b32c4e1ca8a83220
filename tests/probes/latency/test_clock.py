"""Clocks: units, and the order in which an accelerator is asked."""

import time
from typing import Any

import pytest
import torch

from bench.probes.latency.clock import EventClock, HostClock, clock_of


class Stream:
    """A device that works behind the host: events pass when it is waited for."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.now = 0.0
        self.queued: list[Any] = []

    def work(self, milliseconds: float) -> None:
        self.queued.append(milliseconds)

    def wait(self) -> None:
        self.log.append("wait")
        for item in self.queued:
            if isinstance(item, Event):
                item.passed = self.now
            else:
                self.now += item
        self.queued.clear()


class Event:
    def __init__(self, stream: Stream) -> None:
        self.stream, self.passed = stream, float("nan")

    def record(self) -> None:
        self.stream.log.append("record")
        self.stream.queued.append(self)

    def elapsed_time(self, other: "Event") -> float:
        self.stream.log.append("elapsed")
        return other.passed - self.passed


def test_the_host_clock_tells_milliseconds() -> None:
    readings = iter([5_000_000, 12_500_000])
    clock = HostClock(lambda: next(readings))
    assert clock.milliseconds(clock.mark(), clock.mark()) == 7.5


def test_the_host_clock_goes_with_time() -> None:
    clock = clock_of("cpu")
    start = clock.mark()
    time.sleep(0.02)
    assert clock.milliseconds(start, clock.mark()) >= 20


def test_an_event_is_a_moment_in_the_order_of_the_work() -> None:
    stream = Stream()
    clock = EventClock("cuda", lambda: Event(stream), stream.wait)
    stream.work(3.0)
    start = clock.mark()
    stream.work(4.0)
    end = clock.mark()
    stream.work(5.0)
    clock.wait()
    assert clock.milliseconds(start, end) == 4.0  # not what was queued before or behind
    assert stream.log == ["record", "record", "wait", "elapsed"]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_events_of_a_gpu_wait_for_its_work() -> None:
    clock = clock_of("cuda")
    x = torch.randn(4096, 4096, device="cuda")
    clock.wait()
    start = clock.mark()
    begun = time.perf_counter()
    for _ in range(20):
        x @ x
    queued = (time.perf_counter() - begun) * 1000
    end = clock.mark()
    clock.wait()
    whole = (time.perf_counter() - begun) * 1000
    assert queued / 2 < clock.milliseconds(start, end) <= whole * 1.05
