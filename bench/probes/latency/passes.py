"""One timed pass over the test rows.

What is timed, batch by batch:

    total      from rows in original units on the host to mean predictions there: cutting, scaling, all of the below
    transfer   rows to the device, the draws, and their predictions back to the host
    forward    the draws alone: T functions at rows that lie on the device

Nothing else is between the marks: networks, random generators' seeds, graphs and the rows themselves are there before.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.api import Array
from bench.probes.latency.clock import Clock
from bench.probes.latency.modes import Evaluate
from bench.training.transfers import to_device, to_host

SPANS = ("forward", "transfer", "total")


@dataclass(frozen=True, eq=False)
class Workload:
    """The rows of a pass, and the batches in which they go to the device."""

    rows: Array  # in original units, on the host
    scaled: Callable[[Array], Tensor]  # to training units, on the host
    batch: int
    device: str
    dtype: str = "float32"


@dataclass(frozen=True)
class Spans:
    """Milliseconds of one pass."""

    forward: float
    transfer: float
    total: float


def timed_pass(workload: Workload, evaluate: Evaluate, clock: Clock) -> Spans:
    """Carry out one pass and time it."""
    moments, predictions, device = [], [], torch.device(workload.device)
    with torch.no_grad(), precision(workload):
        clock.wait()
        start = clock.mark()
        for begin in range(0, len(workload.rows), workload.batch):
            host = workload.scaled(workload.rows[begin : begin + workload.batch])
            ready = clock.mark()
            x = to_device(host, device)
            there = clock.mark()
            values = evaluate(x)
            drawn = clock.mark()
            (back,) = to_host([values])
            moments.append((ready, there, drawn, clock.mark()))
            predictions.append(back.mean(0))
        torch.cat(predictions)
        end = clock.mark()
        clock.wait()
    forward = sum(clock.milliseconds(there, drawn) for _, there, drawn, _ in moments)
    transfer = sum(clock.milliseconds(ready, back) for ready, _, _, back in moments)
    return Spans(forward, transfer, clock.milliseconds(start, end))


@contextmanager
def precision(workload: Workload) -> Iterator[None]:
    """Compute products in the precision of the options."""
    kind = workload.device.partition(":")[0]
    with torch.autocast(kind, torch.bfloat16, enabled=workload.dtype == "bfloat16"):
        yield
