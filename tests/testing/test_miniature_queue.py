"""Timing code that forgets to wait is caught by a device that works behind the host."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.probes.latency.clock import Clock, EventClock, HostClock, clock_of
from bench.probes.latency.passes import Spans, Workload, timed_pass
from bench.testing.miniature_queue import LAUNCH, DeviceQueue, queue

ROWS, BATCH, OPERATIONS, MILLISECONDS = 6, 3, 40, 2.0


@pytest.fixture
def device() -> Iterator[DeviceQueue]:
    with queue(MILLISECONDS) as device:
        yield device


def some_pass(clock: Clock) -> Spans:
    rows = np.arange(2.0 * ROWS).reshape(ROWS, 2)
    workload = Workload(rows, lambda x: torch.from_numpy(x).float(), BATCH, "miniature")

    def evaluate(x: Tensor) -> Tensor:
        for _ in range(OPERATIONS):
            x = x + 1.0
        return x[None]

    return timed_pass(workload, evaluate, clock)


def test_events_time_the_work_of_the_device(device: DeviceQueue) -> None:
    spans = some_pass(clock_of("miniature"))
    operations = OPERATIONS + 1  # and the view at the end
    batches = ROWS / BATCH
    assert spans.forward == pytest.approx(batches * (operations * MILLISECONDS + LAUNCH))
    assert spans.total > spans.transfer > spans.forward


def test_a_wait_that_is_missing_raises(device: DeviceQueue) -> None:
    forgetful = EventClock("miniature", wait=lambda: None)
    with pytest.raises(RuntimeError, match="must be completed"):
        some_pass(forgetful)


def test_the_clock_of_the_host_sees_the_launches_alone(device: DeviceQueue) -> None:
    """What a pass without events would report: a tenth of a percent of the work."""
    spans = some_pass(HostClock(device.nanoseconds))
    assert spans.forward == pytest.approx(ROWS / BATCH * (OPERATIONS + 1) * LAUNCH)


def test_the_clock_of_the_host_is_right_where_it_waits(device: DeviceQueue) -> None:
    clock = HostClock(device.nanoseconds)
    x = torch.zeros(3, device="miniature")
    torch.accelerator.synchronize()
    start = clock.mark()
    for _ in range(OPERATIONS):
        x = x + 1.0
    torch.accelerator.synchronize()
    assert clock.milliseconds(start, clock.mark()) == pytest.approx(OPERATIONS * MILLISECONDS + LAUNCH)


def test_a_copy_that_does_not_block_has_no_numbers_before_the_wait(device: DeviceQueue) -> None:
    x = torch.arange(3.0).to("miniature")
    early = x.to("cpu", non_blocking=True)
    into = torch.zeros(3)
    into.copy_(x, non_blocking=True)
    assert early.isnan().all()
    assert into.isnan().all()
    torch.accelerator.synchronize()
    assert torch.equal(early, torch.arange(3.0))
    assert torch.equal(into, early)
    assert torch.equal(x.cpu(), early)  # a copy that blocks has waited


def test_a_number_is_waited_for(device: DeviceQueue) -> None:
    x = torch.ones(3, device="miniature")
    before = device.operations
    assert device.host < device.done
    assert x.sum().item() == 3.0
    assert device.host == device.done
    assert device.operations == before + 2
