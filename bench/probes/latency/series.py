"""Latency: what T draws cost, for every method of a suite, in one process and in turn.

Each (cell, T, mode) is a series of repeated passes. All series are warmed up; then every round carries out one pass of
each, in another random order, so that what the machine does meanwhile falls on all alike. One series more is a plain
pass of the same network, which the others are compared with. The weights are those of the first step: no cost of a
draw depends on what was learned.
"""

import gc
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from bench.api import Array, Estimator, Method, options
from bench.api.tape import stream
from bench.errors import raise_if_stop
from bench.machine.environment import cores
from bench.probes.base import Finding, Subject
from bench.probes.latency.clock import Clock, clock_of
from bench.probes.latency.conditions import current_conditions
from bench.probes.latency.doubts import Times, doubts_of_machine, doubts_of_series, ratio, statistics
from bench.probes.latency.estimator_passes import estimator_modes
from bench.probes.latency.machine_load import Gpu, OtherProcesses, Throttling
from bench.probes.latency.memory_use import peak_of
from bench.probes.latency.passes import MODES, SPANS, Mode, Spans, Workload, timed_pass
from bench.probes.latency.probe import Latency
from bench.training.compiled_graphs import compiler_found
from bench.training.drawing import Drawing, Functions
from bench.training.limits import Limits, threads
from bench.training.member import Fitted, Member, finish, start
from bench.training.network_factory import network_factory
from bench.training.rows import Prepared, prepare

STABLE = 0.1  # two warm-up passes that differ by less are enough
ROWS_TO_SET_UP = 1000  # training rows that scale the inputs and that `finish` sees: no cost of a draw depends on them


@dataclass(frozen=True)
class _PlainPass(Method):
    """One pass of the suite's network: what other passes are compared with."""


@dataclass(eq=False)
class Series:
    """Repeated passes of one kind."""

    condition: str
    mode: Mode
    workload: Workload
    spans: list[Spans] = field(default_factory=list)
    joules: list[float] = field(default_factory=list)
    stable: bool = False
    memory: float | None = None
    error: BaseException | None = None

    def times(self, span: str = "forward") -> Times:
        """Return the milliseconds of every repeat."""
        return np.array([getattr(each, span) for each in self.spans], dtype=np.float64)

    def per_thousand(self, span: str) -> float:
        """Return the median in milliseconds per 1,000 samples."""
        return float(np.median(self.times(span))) * 1000 / len(self.workload.rows)


@dataclass(eq=False)
class _Case:
    """A cell's series, and the plain pass they are compared with."""

    series: dict[str, Series]
    plain: Series
    facts: dict[str, Any]
    remarks: list[str]


def measure_in_turn(
    probe: Latency, subjects: Sequence[Subject], device: str, limits: Limits
) -> Iterator[tuple[int, Finding | BaseException]]:
    """Time all subjects; yield the number of each with its finding, or with the exception that it raised."""
    cases: dict[int, _Case] = {}
    plain: dict[Hashable, Series] = {}
    facts = current_conditions(probe, device)  # before the set-up, whose own load does not count
    with threads(probe.threads or cores()):
        for number, subject in enumerate(subjects):
            try:
                cases[number] = _case(probe, subject, device, limits, plain, facts)
            except BaseException as error:  # a plug-in's fault is its own cell's
                raise_if_stop(error)
                yield number, error
        series = [*plain.values(), *(one for case in cases.values() for one in case.series.values())]
        random = np.random.default_rng(0)
        machine = time_rounds(series, probe, clock_of(device), Gpu(device), random, facts["load_average"])
        for one in series:
            if one.error is None:
                one.memory = peak_of(partial(timed_pass, one.workload, one.mode.evaluate, clock_of(device)), device)
    for number, case in cases.items():
        raised = next((one.error for one in (case.plain, *case.series.values()) if one.error), None)
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


def _case(
    probe: Latency, subject: Subject, device: str, limits: Limits, plain: dict[Hashable, Series], facts: dict[str, Any]
) -> _Case:
    """Build networks and series of one cell."""
    remarks: list[str] = []
    split = subject.split
    rows = split.test_x[: probe.rows or None]
    few = replace(
        split,
        train_x=split.train_x[:ROWS_TO_SET_UP],
        train_y=split.train_y[:ROWS_TO_SET_UP],
        test_x=rows[: probe.batch],
        test_y=split.test_y[: min(len(rows), probe.batch)],
        test_truth=None,
        test_groups=None,
        blocks=None,
    )
    on_host = prepare(few, subject.protocol, subject.seed, "cpu")
    data = on_host if device == "cpu" else prepare(few, subject.protocol, subject.seed, device)
    workload = Workload(rows, on_host.inputs, probe.batch, device, probe.dtype)

    def drawing(method: Method, networks: Sequence[Fitted], draws: int) -> Drawing:
        return Drawing(method, networks, split.task, data.test_x, stream(subject.seed, "test"), draws)

    place = (id(split), subject.seed, repr(subject.protocol))
    if place not in plain:
        one = _PlainPass()
        mode = MODES["engine"](drawing(one, _networks(subject, one, 1, data), 1), limits)
        plain[place] = Series("plain", mode, workload)

    about = {**facts, "rows": len(rows), "data": split.about}
    if isinstance(subject.method, Estimator):
        by_draws = estimator_modes(subject.method, subject, probe.draws, few.test_x)
        host = replace(workload, device="cpu")
        series = {f"T={t}": Series(f"T={t}", mode, host) for t, mode in by_draws.items()}
        return _Case(series, plain[place], {**about, "modes": ["engine"]}, remarks)

    method = cast("Method", subject.method)
    trained = _networks(subject, method, method.networks, data)
    noisy = Functions(drawing(method, trained[:1], 2), limits).count == 2
    growing = not noisy and "networks" in options(method)  # an ensemble: T functions are T networks
    if growing:
        trained = _networks(subject, method, max(probe.draws), data)
    modes = list(probe.modes)
    if "compiled" in modes and not compiler_found():
        modes.remove("compiled")
        remarks.append("no C++ compiler was found: the mode 'compiled' is left out")
    series = {}
    for draws in probe.draws if noisy or growing else [1]:
        for name in modes:
            condition = f"T={draws}" + ("" if name == "engine" else f",mode={name}")
            job = drawing(method, trained[:draws] if growing else trained, draws)
            series[condition] = Series(condition, MODES[name](job, limits), workload)
    return _Case(series, plain[place], {**about, "modes": modes}, remarks)


def _networks(subject: Subject, method: Method, count: int, data: Prepared) -> list[Fitted]:
    """Return networks as they are before the first step."""
    problem, network = subject.split.problem, subject.network
    networks = []
    for k in range(count):
        seed = subject.seed if k == 0 else stream(subject.seed, "network", k)
        new_network = network_factory(network, problem)
        member = Member(method, problem, new_network, repr(network), subject.protocol.training, data.rows, seed)
        first = start(member)
        fresh = Fitted(first.module, first.params, first.buffers, first.memory)
        networks.append(finish(member, fresh))
    return networks


def _finding(case: _Case, machine: Sequence[str]) -> Finding:
    """Return the values, the repeats, and their conditions and doubts."""
    metrics: dict[str, float] = {}
    arrays: dict[str, Array] = {"latency/plain": case.plain.times()}
    record: dict[str, Any] = {}
    random = np.random.default_rng(0)
    for condition, one in case.series.items():
        rows = len(one.workload.rows)
        about: dict[str, Any] = {"chunks": asdict(one.mode.cuts), "threads": one.mode.threads}
        for span in SPANS:
            metrics[f"latency_{span}@{condition}"] = one.per_thousand(span)
            arrays[f"latency/latency_{span}@{condition}"] = one.times(span)
            about[span] = statistics(one.times(span) * 1000 / rows).to_json()
        about["throughput"] = rows / (float(np.median(one.times("total"))) / 1000)  # samples per second
        value, low, high = ratio(one.times(), case.plain.times(), random)
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
