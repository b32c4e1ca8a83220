"""The floor of all times on a device: what nothing takes, what a launch takes, and how fast a known kernel is.

No latency below the first two says anything about a method, and a known kernel that is slower than on the same device
elsewhere says that the device is shared, hot or held back. Measuring it also warms the device up: clocks of a GPU rise
within the first second of work.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from bench.probes.latency.clock import Clock

SIZE = {"cpu": 256}  # of the matrices of the known kernel; a GPU needs larger ones to be busy
SIZE_ON_A_DEVICE = 2048
LAUNCHES = 100
STABLE = 0.05  # by which the last three times of the known kernel may differ
FEWEST = 3
SECONDS = {"cpu": 0.2}  # at most, to become stable
SECONDS_ON_A_DEVICE = 3.0
LEAST_SECONDS_ON_A_DEVICE = 0.5  # in which clocks rise


@dataclass(frozen=True)
class Floor:
    """Times of a device that no method has a part in, in milliseconds."""

    empty: float  # between two marks with nothing between them
    launch: float  # of one of many operations on a single number
    graph: float | None  # of a recorded graph with one such operation; None: the device records none
    kernel: float  # of a product of two square matrices
    size: int  # of these matrices
    gigaflops: float  # per second in that product
    stable: bool  # whether the times of the product agreed in the end

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        return asdict(self)


def measure_floor(device: str, clock: Clock, seconds: Callable[[], float] = time.perf_counter) -> Floor:
    """Warm the device up with the known kernel until its times are stable, then measure the floor."""
    kind = torch.device(device).type
    size = SIZE.get(kind, SIZE_ON_A_DEVICE)
    one, matrix = torch.zeros((), device=device), torch.zeros(size, size, device=device)

    def milliseconds(work: Callable[[], object]) -> float:
        clock.wait()
        start = clock.mark()
        work()
        end = clock.mark()
        clock.wait()
        return clock.milliseconds(start, end)

    def launches() -> None:
        for _ in range(LAUNCHES):
            one.add(1.0)

    least = 0.0 if kind == "cpu" else LEAST_SECONDS_ON_A_DEVICE
    most = SECONDS.get(kind, SECONDS_ON_A_DEVICE)
    times: list[float] = []
    began, stable = seconds(), False
    while len(times) < FEWEST or (seconds() - began < most and not stable) or seconds() - began < least:
        times.append(milliseconds(lambda: matrix @ matrix))
        stable = len(times) >= FEWEST and max(times[-FEWEST:]) <= (1 + STABLE) * min(times[-FEWEST:])
    kernel = float(np.median(times[-FEWEST:]))
    empty = float(np.median([milliseconds(lambda: None) for _ in range(LAUNCHES)]))
    milliseconds(launches)
    launch = float(np.median([milliseconds(launches) for _ in range(5)])) / LAUNCHES
    graph = None
    if kind == "cuda":
        from bench.probes.latency.modes import record_on_cuda

        replay, _ = record_on_cuda(lambda: one.add(1.0))
        graph = float(np.median([milliseconds(replay) for _ in range(LAUNCHES)]))
    return Floor(empty, launch, graph, kernel, size, 2 * size**3 / kernel / 1e6 if kernel else 0.0, stable)
