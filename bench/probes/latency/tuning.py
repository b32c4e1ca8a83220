"""Chooses how T functions are drawn by trying the ways on the device, within a budget of time."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from bench.errors import raise_if_stop
from bench.probes.latency.clock import Clock
from bench.probes.latency.modes import Compiled, Mode, Record, mode_of, record_on_cuda, ways_to_draw
from bench.training.drawing import OUT_OF_MEMORY, Drawing, Functions
from bench.training.limits import Limits

ROUNDS = 5  # of one pass of every way
GAIN = 0.05  # by which another way must be faster than the fixed one
TOLERANCE = 1e-3  # by which values may differ, relative to the largest: products may be rounded to 8 bits


@dataclass(frozen=True)
class Choice:
    """What was tried, and what was the fastest."""

    chosen: str
    fixed: str  # the way of every run of a suite
    tried: Mapping[str, float]  # ms of a pass of so many draws, the shortest of all rounds
    draws: int
    left_out: Mapping[str, str]  # with the reason
    bit_equal: bool  # the values are those of the fixed way, to the last bit

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        return asdict(self)


def tuned(
    job: Drawing,
    limits: Limits,
    budget: float,
    clock: Clock,
    graphs: Compiled | None = None,
    seconds: Callable[[], float] = time.perf_counter,
) -> tuple[Mode, Choice]:
    """Return the fastest mode for these draws at these rows, with what was tried within a budget of seconds.

    Trials have so many draws that all ways can be tried; the fixed way wins where no other is clearly faster.
    """
    record: Record | None = record_on_cuda if job.x.device.type == "cuda" else None
    whole = Functions(job, limits)
    ways, left_out = ways_to_draw(whole, limits.bytes, graphs, record)
    began = seconds()
    draws = _draws_to_try(job, limits, budget / (len(ways) * (ROUNDS + 1)), clock)
    few = whole if draws == job.draws else Functions(_fewer(job, draws), limits)
    fixed, expected, modes = next(iter(ways)), None, dict[str, Mode]()
    equal: dict[str, bool] = {}
    for name, way in ways.items():
        if modes and seconds() - began > budget:
            left_out[name] = "the time for trials was used up before"
            continue
        try:
            with warnings.catch_warnings():
                if (
                    modes
                ):  # a way that had to be cut is not the way whose name it has; the fixed one is always cut to fit
                    warnings.filterwarnings("error", message=OUT_OF_MEMORY)
                mode = mode_of(way(few), name)
                values = mode.evaluate(job.x)
        except Exception as error:  # a compiler or a device that cannot do this, or has no memory for it
            if not modes:
                raise
            raise_if_stop(error)
            left_out[name] = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:200]
            continue
        expected = values if expected is None else expected
        if not torch.allclose(values, expected, rtol=TOLERANCE, atol=TOLERANCE * float(expected.abs().max())):
            left_out[name] = "it gave other values than the fixed way"
            continue
        modes[name], equal[name] = mode, torch.equal(values, expected)
    times = _shortest(job, modes, clock, lambda: seconds() - began > budget)
    best = min(times, key=lambda name: times[name])
    chosen = best if times[best] < (1 - GAIN) * times[fixed] else fixed
    choice = Choice(chosen, fixed, times, draws, left_out, equal[chosen])
    return mode_of(ways[chosen](whole), chosen), choice


def _shortest(job: Drawing, modes: Mapping[str, Mode], clock: Clock, late: Callable[[], bool]) -> dict[str, float]:
    """Return the shortest time of every mode over rounds, of which there is at least one."""
    times = dict.fromkeys(modes, float("inf"))
    for number in range(ROUNDS):
        if number and late():
            break
        for name, mode in modes.items():
            times[name] = min(times[name], _milliseconds(job, mode, clock))
    return times


def _draws_to_try(job: Drawing, limits: Limits, seconds: float, clock: Clock) -> int:
    """Return how many draws fit into these seconds; at least two, of which the second needs no layer before noise."""
    one = mode_of(Functions(_fewer(job, 1), limits), "one draw")
    one.evaluate(job.x)
    each = _milliseconds(job, one, clock) / 1000
    return min(job.draws, max(2, int(seconds / each) if each else job.draws))


def _fewer(job: Drawing, draws: int) -> Drawing:
    """Return a request for fewer draws; an ensemble has as many networks as draws."""
    networks = job.networks[:draws] if len(job.networks) == job.draws else job.networks
    return replace(job, draws=draws, networks=networks)


def _milliseconds(job: Drawing, mode: Mode, clock: Clock) -> float:
    clock.wait()
    start = clock.mark()
    mode.evaluate(job.x)
    end = clock.mark()
    clock.wait()
    return clock.milliseconds(start, end)
