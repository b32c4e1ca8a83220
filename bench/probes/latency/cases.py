"""What is timed of one cell: its networks before the first step, and a series for every T, mode and batch."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch

from bench.api import Estimator, Method, options
from bench.api.tape import stream
from bench.probes.base import Subject
from bench.probes.latency.clock import Clock
from bench.probes.latency.doubts import Times
from bench.probes.latency.estimator_passes import estimator_modes
from bench.probes.latency.modes import MODES, Compiled, Mode, by_compiler
from bench.probes.latency.passes import Spans, Workload, precision
from bench.probes.latency.probe import Latency
from bench.probes.latency.tuning import Choice, tuned
from bench.training.compiled_graphs import compiler_found
from bench.training.drawing import Drawing, Functions
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, finish, start
from bench.training.network_factory import network_factory
from bench.training.rows import Prepared, prepare

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
    plain: "Series | None" = None  # the plain passes of the same batches that it is compared with
    choice: Choice | None = None  # how its mode was chosen, where it was
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
class Case:
    """A cell's series, and the conditions that they share."""

    series: dict[str, Series]
    facts: dict[str, Any]
    remarks: list[str]

    @property
    def plain(self) -> dict[str, Series]:
        """The plain passes that the series are compared with, by their condition."""
        return {one.plain.condition: one.plain for one in self.series.values() if one.plain is not None}


PlainPasses = dict[Hashable, Series]  # of all cells; those on the same rows share them


class CaseMaker:
    """Makes the cases of all cells; `plain` collects their plain passes."""

    def __init__(self, probe: Latency, device: str, limits: Limits, clock: Clock, facts: dict[str, Any]) -> None:
        self.probe, self.device, self.limits, self.clock, self.facts = probe, device, limits, clock, facts
        self.plain: PlainPasses = {}

    def case(self, subject: Subject) -> Case:
        """Build the networks and the series of one cell."""
        probe, split = self.probe, subject.split
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
        data = on_host if self.device == "cpu" else prepare(few, subject.protocol, subject.seed, self.device)
        workload = Workload(rows, on_host.inputs, probe.batch, self.device, probe.dtype)
        workloads = {"": workload}
        if probe.single_rows:
            workloads[",batch=1"] = replace(workload, rows=rows[: probe.single_rows], batch=1)
        about = {**self.facts, "rows": len(rows), "data": split.about}
        plain = {at: self._plain_pass(subject, data, load, at) for at, load in workloads.items()}
        if isinstance(subject.method, Estimator):
            by_draws = estimator_modes(subject.method, subject, probe.draws, few.test_x)
            host = replace(workload, device="cpu")
            series = {f"T={t}": Series(f"T={t}", mode, host, plain[""]) for t, mode in by_draws.items()}
            return Case(series, {**about, "modes": ["engine"]}, [])
        modes, remarks = list(probe.modes), list[str]()
        if "compiled" in modes and not compiler_found():
            modes.remove("compiled")
            remarks.append("no C++ compiler was found: the mode 'compiled' is left out")
        case = Case({}, {**about, "modes": modes}, remarks)
        method = cast("Method", subject.method)
        trained = _networks(subject, method, method.networks, data)
        noisy = Functions(_drawing(subject, data, method, trained[:1], 2), self.limits).count == 2
        growing = not noisy and "networks" in options(method)  # an ensemble: T functions are T networks
        if growing:
            trained = _networks(subject, method, max(probe.draws), data)
        graphs = Compiled()
        for draws in probe.draws if noisy or growing else [1]:
            job = _drawing(subject, data, method, trained[:draws] if growing else trained, draws)
            for at, load in workloads.items():
                own = replace(job, x=job.x[: load.batch])
                for name in modes:
                    condition = f"T={draws}" + ("" if name == "engine" else f",mode={name}") + at
                    mode, choice = self._mode(name, own, load, graphs)
                    case.series[condition] = Series(condition, mode, load, plain[at], choice)
        return case

    def _mode(self, name: str, job: Drawing, workload: Workload, graphs: Compiled) -> tuple[Mode, Choice | None]:
        if name == "compiled":
            return by_compiler(job, self.limits, graphs), None
        if name != "tuned":
            return MODES[name](job, self.limits), None
        compiling = "compiled" in self.probe.modes or self.device != "cpu"
        with torch.no_grad(), precision(workload):
            return tuned(job, self.limits, self.probe.tuning_seconds, self.clock, graphs if compiling else None)

    def _plain_pass(self, subject: Subject, data: Prepared, workload: Workload, at: str) -> Series:
        place = (id(subject.split), subject.seed, repr(subject.protocol), workload.batch)
        if place not in self.plain:
            one = _PlainPass()
            job = _drawing(subject, data, one, _networks(subject, one, 1, data), 1)
            mode = MODES["engine"](replace(job, x=job.x[: workload.batch]), self.limits)
            self.plain[place] = Series("plain" + at.replace(",", "@"), mode, workload)
        return self.plain[place]


def _drawing(subject: Subject, data: Prepared, method: Method, networks: Sequence[Fitted], draws: int) -> Drawing:
    return Drawing(method, networks, subject.split.task, data.test_x, stream(subject.seed, "test"), draws)


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
