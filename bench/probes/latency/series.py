"""Latency: what T draws cost, for every method of a suite, in one process and in turn.

Each (cell, T, mode) is a series of repeated passes. All series are warmed up; then every round carries out one pass of
each, in another random order, so that what the machine does meanwhile falls on all alike. One series more is a plain
pass of the same network, which the others are compared with. The weights are those of the first step: no cost of a
draw depends on what was learned.
"""

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from bench.api import Array
from bench.errors import raise_if_stop
from bench.machine.environment import cores
from bench.probes.base import Finding, Subject
from bench.probes.latency.cases import Case, CaseMaker, Series
from bench.probes.latency.clock import Clock, clock_of
from bench.probes.latency.conditions import current_conditions
from bench.probes.latency.doubts import doubts_of_gpu, doubts_of_machine, doubts_of_series, ratio, statistics
from bench.probes.latency.floor import measure_floor
from bench.probes.latency.gpu_state import Gpu
from bench.probes.latency.machine_load import OtherProcesses, Throttling
from bench.probes.latency.memory_use import peak_of
from bench.probes.latency.passes import SPANS, timed_pass
from bench.probes.latency.probe import Latency
from bench.training.limits import Limits, threads

STABLE = 0.1  # two warm-up passes that differ by less are enough


def measure_in_turn(
    probe: Latency, subjects: Sequence[Subject], device: str, limits: Limits
) -> Iterator[tuple[int, Finding | BaseException]]:
    """Time all subjects; yield the number of each with its finding, or with the exception that it raised."""
    cases: dict[int, Case] = {}
    facts = current_conditions(probe, device)  # before the set-up, whose own load does not count
    clock, gpu = clock_of(device), Gpu(device)
    facts |= {"floor": measure_floor(device, clock).to_json(), "gpu": {"before": gpu.state()}}
    maker = CaseMaker(probe, device, limits, clock, facts)
    with threads(probe.threads or cores()):
        for number, subject in enumerate(subjects):
            try:
                cases[number] = maker.case(subject)
            except BaseException as error:  # a plug-in's fault is its own cell's
                raise_if_stop(error)
                yield number, error
        series = [*maker.plain.values(), *(one for case in cases.values() for one in case.series.values())]
        random = np.random.default_rng(0)
        machine = time_rounds(series, probe, clock, gpu, random, facts["load_average"])
        facts["gpu"]["after"] = gpu.state()
        if not facts["floor"]["stable"]:
            machine.append("the times of a known kernel did not become stable before the first pass")
        machine += doubts_of_gpu(**facts["gpu"])
        for one in series:
            if one.error is None:
                one.memory = peak_of(partial(timed_pass, one.workload, one.mode.evaluate, clock), device)
    for number, case in cases.items():
        raised = next((one.error for one in (*case.plain.values(), *case.series.values()) if one.error), None)
        yield number, raised or _finding(case, machine)


def time_rounds(
    series: Sequence[Series],
    probe: Latency,
    clock: Clock,
    gpu: Gpu,
    random: np.random.Generator,
    load: float | None = None,
) -> list[str]:
    """Warm up, then time the rounds; return the doubts about the machine as a whole."""
    others, heat, held = OtherProcesses(), Throttling(), ""
    with no_garbage_collection():
        for one in series:
            _guarded(one, partial(_warm_up, one, probe.warm_up, clock))
        for _ in range(probe.repeats):
            for place in random.permutation(len(series)):
                one = series[place]
                if one.error is None:
                    _guarded(one, partial(_repeat, one, clock, gpu))
            held = held or gpu.throttled()
    whole = [one.times("total") for one in series if one.error is None]
    return doubts_of_machine(load, cores(), others.share(), whole, heat.message() or held)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect garbage now and not inside the block."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _guarded(one: Series, call: Callable[[], None]) -> None:
    try:
        call()
    except BaseException as error:  # a plug-in's fault is its own cell's; the others go on
        raise_if_stop(error)
        one.error = error


def _warm_up(one: Series, at_most: int, clock: Clock) -> None:
    """Carry out passes until two agree."""
    before = math.inf
    for _ in range(at_most):
        now = timed_pass(one.workload, one.mode.evaluate, clock).total
        if abs(now - before) <= STABLE * min(now, before):
            one.stable = True
            return
        before = now


def _repeat(one: Series, clock: Clock, gpu: Gpu) -> None:
    before = gpu.joules()
    one.spans.append(timed_pass(one.workload, one.mode.evaluate, clock))
    after = gpu.joules()
    if before is not None and after is not None:
        one.joules.append(after - before)


def _finding(case: Case, machine: Sequence[str]) -> Finding:
    """Return the values, the repeats, and their conditions and doubts."""
    metrics: dict[str, float] = {}
    arrays: dict[str, Array] = {f"latency/{name}": one.times() for name, one in case.plain.items()}
    record: dict[str, Any] = {}
    random = np.random.default_rng(0)
    for condition, one in case.series.items():
        rows = len(one.workload.rows)
        about: dict[str, Any] = {
            "mode": one.mode.name,
            "batch": one.workload.batch,
            "chunks": asdict(one.mode.cuts),
            "threads": one.mode.threads,
        }
        if one.choice is not None:
            about["choice"] = one.choice.to_json()
        for span in SPANS:
            metrics[f"latency_{span}@{condition}"] = one.per_thousand(span)
            arrays[f"latency/latency_{span}@{condition}"] = one.times(span)
            about[span] = statistics(one.times(span) * 1000 / rows).to_json()
        about["throughput"] = rows / (float(np.median(one.times("total"))) / 1000)  # samples per second
        assert one.plain is not None
        value, low, high = ratio(one.times(), one.plain.times(), random)
        about["ratio"] = {"value": value, "low": low, "high": high}
        metrics[f"latency_ratio@{condition}"] = value
        if one.memory is not None:
            metrics[f"latency_memory@{condition}"] = one.memory
        if one.joules:
            metrics[f"latency_energy@{condition}"] = float(np.mean(one.joules)) * 1000 / rows
        record[condition] = about
    for condition in case.series:
        draws, _, mode = condition.removeprefix("T=").partition(",")
        first = case.series.get(f"T=1,{mode}" if mode else "T=1")
        if first is not None and draws != "1":
            scaled = case.series[condition].per_thousand("forward") / (int(draws) * first.per_thousand("forward"))
            metrics[f"latency_scaling@{condition}"] = scaled
    unstable = [condition for condition, one in case.series.items() if not one.stable]
    doubts = [*machine, *doubts_of_series({c: one.times() for c, one in case.series.items()}, unstable)]
    about = {"facts": case.facts, "series": record, "doubts": doubts, "remarks": case.remarks}
    return Finding(metrics, arrays, record={"latency": about}, doubts=[*doubts, *case.remarks])
