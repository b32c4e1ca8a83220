"""The plan of passes, with a fake clock."""

import gc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.probes.latency import Latency
from bench.probes.latency.cases import Series
from bench.probes.latency.gpu_state import Gpu
from bench.probes.latency.modes import Mode
from bench.probes.latency.passes import Workload
from bench.probes.latency.series import time_rounds
from bench.training.drawing import Cuts

CUTS = Cuts(large=False, by_row=False, rows=10, draws=1, networks=1)


class Clock:
    """Only what a series is said to take passes."""

    def __init__(self) -> None:
        self.now = 0.0

    def wait(self) -> None:
        pass

    def mark(self) -> float:
        return self.now

    def milliseconds(self, start: float, end: float) -> float:
        return end - start


def series(name: str, clock: Clock, log: list[str], times: Iterator[float]) -> Series:
    def evaluate(x: Tensor) -> Tensor:
        log.append(name)
        clock.now += next(times)
        return torch.zeros(1, len(x), 1)

    load = Workload(np.zeros((10, 1), dtype=np.float32), torch.from_numpy, 10, "cpu")
    return Series(name, Mode(evaluate, CUTS, 1), load)


def steady(milliseconds: float) -> Iterator[float]:
    while True:
        yield milliseconds


def measured(all_times: dict[str, Iterator[float]], **options: Any) -> tuple[list[Series], list[str]]:
    clock, log = Clock(), list[str]()
    made = [series(name, clock, log, times) for name, times in all_times.items()]
    time_rounds(made, Latency(**options), clock, Gpu("cpu"), np.random.default_rng(0))
    return made, log


def test_warm_up_comes_first_then_rounds_of_all_series_in_changing_order() -> None:
    names = [f"s{k}" for k in range(6)]
    made, log = measured({name: steady(5.0) for name in names}, repeats=8)
    assert log[:12] == [name for name in names for _ in range(2)]  # two equal passes are enough
    rounds = [tuple(log[k : k + 6]) for k in range(12, len(log), 6)]
    assert len(rounds) == 8
    assert all(sorted(each) == names for each in rounds)
    assert len(set(rounds)) > 1
    first = Counter(each[0] for each in rounds)
    assert len(first) > 1
    assert all(len(one.spans) == 8 for one in made)


def test_warm_up_goes_on_until_two_passes_agree() -> None:
    (one,), log = measured({"s": iter([100.0, 50.0, 30.0, 29.0, 7.0])}, repeats=1, warm_up=10)
    assert len(log) == 5
    assert one.stable
    assert one.times().tolist() == [7.0]  # nothing of the warm-up counts


def test_warm_up_has_an_end_and_the_series_says_so() -> None:
    (one,), log = measured({"s": iter([100.0, 50.0, 25.0, 7.0])}, repeats=1, warm_up=3)
    assert len(log) == 4
    assert not one.stable


def test_values_are_milliseconds_per_thousand_samples() -> None:
    (one,), _ = measured({"s": steady(3.0)}, repeats=4)
    assert one.times("total").tolist() == [3.0] * 4
    assert one.per_thousand("forward") == 300.0  # 10 rows in 3 ms


def test_garbage_is_not_collected_while_the_clock_runs() -> None:
    states = []

    def times() -> Iterator[float]:
        while True:
            states.append(gc.isenabled())
            yield 1.0

    assert gc.isenabled()
    measured({"s": times()}, repeats=3)
    assert states == [False] * 5
    assert gc.isenabled()


def test_a_series_that_raises_does_not_disturb_the_others() -> None:
    def broken() -> Iterator[float]:
        yield from (1.0, 1.0, 1.0)
        raise RuntimeError("no more")

    (good, bad), _ = measured({"good": steady(1.0), "bad": broken()}, repeats=5)
    assert len(good.spans) == 5
    assert "no more" in str(bad.error)
