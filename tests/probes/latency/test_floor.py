"""The floor of times, by a clock that is told what takes how long."""

import pytest
import torch

from bench.probes.latency import floor
from bench.probes.latency.clock import clock_of
from bench.probes.latency.floor import LAUNCHES, measure_floor


class Clock:
    """Every span takes what is next."""

    def __init__(self, kernel: list[float]) -> None:
        self.kernel, self.waits, self.spans = kernel, 0, 0

    def wait(self) -> None:
        self.waits += 1

    def mark(self) -> int:
        return self.spans

    def milliseconds(self, start: int, end: int) -> float:
        self.spans += 1
        assert self.waits == 2 * self.spans  # before the first mark and before anything is read
        return self.kernel.pop(0) if self.kernel else 0.5


def test_the_known_kernel_is_repeated_until_its_times_agree() -> None:
    clock = Clock([9.0, 4.0, 2.0, 1.0, 1.01, 1.02])
    found = measure_floor("cpu", clock, seconds=lambda: 0.0)
    assert found.stable
    assert found.kernel == 1.01
    assert found.gigaflops == pytest.approx(2 * 256**3 / 1.01e-3 / 1e9)
    assert (found.empty, found.launch, found.graph) == (0.5, 0.5 / LAUNCHES, None)


def test_times_that_never_agree_end_with_the_budget() -> None:
    now = iter(range(1000))
    clock = Clock([float(2**k) for k in range(20)])
    found = measure_floor("cpu", clock, seconds=lambda: next(now) * 0.05)
    assert not found.stable
    assert found.kernel < 2**10


def test_a_gpu_is_kept_busy_while_its_clock_rises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "SIZE_ON_A_DEVICE", 4)
    now = iter(range(1000))
    clock = Clock([1.0] * 100)
    measure_floor("meta", clock, seconds=lambda: next(now) * 0.01)
    assert clock.spans - 2 * LAUNCHES + 100 > 20  # stable at once, and not ended before half a second


def test_a_processor_multiplies_slower_than_it_does_nothing() -> None:
    found = measure_floor("cpu", clock_of("cpu"))
    assert 0 <= found.empty < found.kernel
    assert found.gigaflops > 0.1
    assert torch.get_num_threads() >= 1
