"""Checks of a device: whether training, drawing and timing on it can be believed (`uqbench verify device`).

Methods and networks are the built-in ones. What is compared with the CPU gets the same random numbers there.
"""

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import torch

from bench import __version__
from bench.api import Array, Method
from bench.errors import UserError, unknown_name
from bench.machine.environment import driver, facts
from bench.machine.memory import resident
from bench.plugins.registry import Registry
from bench.testing.check import Check, NotApplicable, Verdict, chosen_checks, judge, require
from bench.testing.device_timing import events_to_host, saturating_work, times_for_twice
from bench.testing.hooks import hook_results
from bench.testing.network_checks import ROWS, NetworkSubject
from bench.testing.problems import ONE_STEP, PLAIN, STACK, Plain, members_of, split_of
from bench.testing.second_device import NOT_COMPARED, ROUNDING, require_same_hooks, second_device
from bench.testing.subject import MethodSubject
from bench.training.drawing import Drawing, Functions, draw
from bench.training.fit import fit
from bench.training.limits import Limits
from bench.training.member import Fitted, Member, finish

KINDS = ("cuda", "mps", "xpu", "cpu")
OWN_HOOKS = ("loss", "update", "remember", "finish")  # by which methods differ most
TWICE = (1.8, 2.2)
CLOCKS = (0.9, 1.1)
LEFT_BEHIND = 64  # MiB that a process may keep
TOO_MUCH = 2**48  # numbers that no device has room for


def find_device(name: str | None) -> str:
    """Return the device of this name, or without one the first accelerator that torch sees, else the CPU."""
    if name is None:
        return next(kind for kind in KINDS if _is_there(kind))
    if name not in KINDS:
        raise unknown_name("device", name, KINDS)
    if not _is_there(name):
        raise UserError(f"torch {torch.__version__} sees no {name} device here; 'uqbench doctor' shows what it sees")
    return name


def _is_there(kind: str) -> bool:
    return kind == "cpu" or bool(torch.get_device_module(kind).is_available())


class DeviceSubject:
    """A device under test, with what several checks need; `found` has a few words on what a check measured."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.found: dict[str, str] = {}
        self.registry = Registry()

    @cached_property
    def methods(self) -> dict[str, Method]:
        """The built-in methods that train networks."""
        names = [name for name, plugin in self.registry.plugins("method").items() if plugin.origin == "built in"]
        made = {name: self.registry.make("method", name, {}) for name in names}
        return {name: method for name, method in made.items() if isinstance(method, Method)}

    @cached_property
    def some(self) -> list[str]:
        """One method for every combination of hooks that methods write themselves, with one network or several."""
        kinds: dict[tuple[bool, ...], str] = {}
        for name, method in self.methods.items():
            own = (getattr(type(method), hook) is not getattr(Method, hook) for hook in OWN_HOOKS)
            kinds.setdefault((method.networks > 1, *own), name)
        return list(kinds.values())

    @cached_property
    def members(self) -> dict[str, Member]:
        """A network of every method on every task that it does not skip, and every network without a method."""
        members = {}
        for name, method in self.methods.items():
            for task in MethodSubject(method).tasks:
                members[f"{name} ({task})"] = members_of(method, split_of(task), ONE_STEP)[1][0]
        for name, plugin in self.registry.plugins("network").items():
            if plugin.origin == "built in":
                network = self.registry.make("network", name, {})
                split = NetworkSubject(network).split
                few = replace(split, train_x=split.train_x[:ROWS], train_y=split.train_y[:ROWS])
                members[f"network {name}"] = members_of(Plain(), few, ONE_STEP, network=network)[1][0]
        return members

    @cached_property
    def hooks(self) -> dict[str, list[tuple[str, list[str], float]]]:
        """For every member what each hook left elsewhere, and how far it is from the CPU; one that raised has both."""
        results: dict[str, list[tuple[str, list[str], float]]] = {}
        for name, member in self.members.items():
            results[name] = []
            try:
                for one in hook_results(member, self.device, lambda: _refusing_waits(self.device)):
                    results[name].append((one.hook, one.elsewhere(self.device), one.gap()))
            except Exception as error:  # of any type: the other methods are tested as well
                first = " ".join(str(error).split())[:160]
                results[name].append(("raised", [f"{type(error).__name__}: {first}"], 0.0))
        return results

    def train(self, name: str, limits: Limits) -> Drawing:
        """Return draws from a method trained on the device, by the same path as a run."""
        method = self.methods[name]
        split = split_of(MethodSubject(method).tasks[0])
        data, members = members_of(method, split, ONE_STEP, device=self.device)
        done: dict[int, Fitted] = dict(fit(members, limits))
        networks = [finish(member, done[number]) for number, member in enumerate(members)]
        return Drawing(method, networks, split.task, data.test_x, 1, 6)

    @cached_property
    def work(self) -> Any:
        """Work that fills the device."""
        return saturating_work(self.device)


@contextmanager
def _refusing_waits(device: str) -> Iterator[None]:
    """Raise at an operation for which the host waits, where torch can tell."""
    if device != "cuda":
        yield
        return
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def device_checks() -> Iterator[Check[DeviceSubject]]:
    """Yield every check of a device."""
    yield Check("placement", "hooks of every built-in method and network leave their tensors on it", _placement)
    yield Check("same-as-cpu", "with the same random numbers they compute what the CPU does", _same_as_cpu)
    yield Check("no-waits", "no draw copies to or waits for the host", _no_waits)
    yield Check("reproducible", "a seed gives the same training and the same draws, to the last bit", _reproducible)
    yield Check("twice-the-work", "twice the work takes twice the time", _twice_the_work)
    yield Check("two-clocks", "its events agree with the clock of the host", _two_clocks)
    yield Check("memory-returned", "memory is free again after a cell", _memory_returned)
    yield Check("out-of-memory", "it computes the same after running out of memory", _out_of_memory)


def verify_device(device: str, only: Collection[str] = ()) -> Iterator[Verdict]:
    """Run the checks on a device that is there; yield each verdict, with a few words on what was measured."""
    subject = DeviceSubject(device)
    for check in chosen_checks(device_checks(), only):
        verdict = judge(check, subject, {})
        yield replace(verdict, message=subject.found.get(check.name, "")) if verdict.state == "ok" else verdict


def device_facts(device: str) -> dict[str, Any]:
    """Return what the device and the software are, as it is stored with every result, and when that was."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"facts": facts(device) | {"driver": driver(device)}, "uqbench": __version__, "when": when}


def _placement(subject: DeviceSubject) -> None:
    wrong = [
        f"{name}: {hook if hook != 'raised' else 'it'} {'returns' if hook != 'raised' else 'raised'} {left[0]}"
        for name, hooks in subject.hooks.items()
        for hook, left, _ in hooks
        if left
    ]
    require(not wrong, f"{len(wrong)} of {len(subject.hooks)} fail; {'; '.join(wrong[:3])}")
    subject.found["placement"] = f"{len(subject.hooks)} pairs of methods or networks and tasks"


def _same_as_cpu(subject: DeviceSubject) -> None:
    gaps = {
        f"{name}, {hook}": gap
        for name, hooks in subject.hooks.items()
        for hook, left, gap in hooks
        if not left and hook not in NOT_COMPARED
    }
    if not gaps:
        raise NotApplicable("no hook works there: see placement")
    worst = max(gaps, key=lambda name: gaps[name])
    require(
        gaps[worst] < ROUNDING, f"{worst} differs by {gaps[worst]:.2g} of its largest number ({ROUNDING:g} allowed)"
    )
    subject.found["same-as-cpu"] = f"largest difference {gaps[worst]:.1g} ({worst})"


def _no_waits(subject: DeviceSubject) -> None:
    if subject.device == "cuda":
        # The hooks were called so before; this is the path of a run, with random numbers of the device.
        for name in subject.some:
            job = subject.train(name, PLAIN)
            functions = Functions(job, PLAIN)
            with torch.no_grad():
                list(functions.at(job.x))  # the first pass may set up libraries
                with _refusing_waits(subject.device):
                    list(functions.at(job.x))
        subject.found["no-waits"] = "as CUDA tells (set_sync_debug_mode)"
        return
    device = second_device()
    for name, member in subject.members.items():
        if crossings := require_same_hooks(member, device):
            require(False, f"{name}: on an accelerator a draw would stop here: {crossings[0]}")
    subject.found["no-waits"] = "on the miniature device: torch tells of waits on CUDA alone"


def _reproducible(subject: DeviceSubject) -> None:
    for name in subject.some:
        for limits in (PLAIN, STACK):
            first, again = subject.train(name, limits), subject.train(name, limits)
            one, other = draw(first, limits), draw(again, limits)
            require(np.array_equal(one, other), f"{name}: two trainings of one seed differ ({_gap(one, other):.2g})")
            if len(one) == first.draws:  # others have as many draws as networks
                few = draw(replace(first, draws=3), limits)
                same = np.allclose(few, one[:3], rtol=1e-4, atol=1e-5)
                require(same, f"{name}: the first 3 of 6 draws are not those of T = 3 ({_gap(few, one[:3]):.2g})")
    subject.found["reproducible"] = f"{len(subject.some)} methods, alone and in a stack"


def _gap(one: Array, other: Array) -> float:
    return float(np.abs(one - other).max())


def _twice_the_work(subject: DeviceSubject) -> None:
    for _ in range(3):  # what else runs on the machine may disturb one
        ratio = times_for_twice(subject.work, subject.device)
        if TWICE[0] < ratio < TWICE[1]:
            subject.found["twice-the-work"] = f"{ratio:.2f} times the time"
            return
    require(False, f"twice the work takes {ratio:.2f} times as long; stop other programs, or the clock does not wait")


def _two_clocks(subject: DeviceSubject) -> None:
    if subject.device == "cpu":
        raise NotApplicable("the CPU is timed by the clock of the host")
    ratio = events_to_host(subject.work, subject.device)
    close = CLOCKS[0] < ratio < CLOCKS[1]
    require(close, f"events show {ratio:.2f} times the time of the host's clock; latencies here cannot be believed")
    subject.found["two-clocks"] = f"events show {ratio:.3f} times the host's time"


def _memory_returned(subject: DeviceSubject) -> None:
    for name in subject.some:  # libraries keep some memory from their first use
        draw(subject.train(name, PLAIN), PLAIN)
    before = _memory_in_use(subject.device)
    if before is None:
        raise NotApplicable(f"torch does not tell how much memory is in use on {subject.device}")
    for name in subject.some:
        draw(subject.train(name, PLAIN), PLAIN)
    left = (_memory_in_use(subject.device) or 0.0) - before
    require(
        left < LEFT_BEHIND, f"{left:.0f} MiB more are in use after {len(subject.some)} cells ({LEFT_BEHIND} allowed)"
    )
    subject.found["memory-returned"] = f"{max(0.0, left):.0f} MiB kept after {len(subject.some)} cells"


def _memory_in_use(device: str) -> float | None:
    """Return the MiB in use on a device, of this process; None: unknown."""
    gc.collect()
    if device == "cpu":
        used = resident("VmRSS")
        return None if used is None else used / 1024
    module: Any = torch.get_device_module(device)
    tell = getattr(module, "memory_allocated", None) or getattr(module, "current_allocated_memory", None)
    return None if tell is None else float(tell()) / 2**20


def _out_of_memory(subject: DeviceSubject) -> None:
    name = subject.some[0]
    job = subject.train(name, PLAIN)
    before = draw(job, PLAIN)
    try:
        torch.empty(TOO_MUCH, device=subject.device)
    except RuntimeError as error:  # torch.OutOfMemoryError is one; the CPU raises a plain one
        subject.found["out-of-memory"] = type(error).__name__
    else:
        raise NotApplicable("it gives away more memory than it has")
    same = np.array_equal(before, draw(job, PLAIN)) and np.array_equal(before, draw(subject.train(name, PLAIN), PLAIN))
    require(same, f"{name}: its draws differ after running out of memory")
