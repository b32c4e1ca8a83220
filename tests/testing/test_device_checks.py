"""The checks of a device: each finds the fault that it is there for, planted in a device or in a method."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from bench.api import Method, Net, Tape
from bench.errors import UserError
from bench.testing import device_checks as checks
from bench.testing.check import Verdict, judge
from bench.testing.device_checks import DeviceSubject, find_device
from bench.testing.miniature import miniature
from bench.testing.miniature_queue import queue
from bench.testing.problems import ONE_STEP, members_of, split_of
from bench.training.drawing import Drawing
from bench.training.limits import Limits

DEVICE = miniature()


@dataclass(frozen=True)
class Planted(Method):
    """A method with one fault in its draw."""

    fault: str = "none"

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        outputs = net(x) + tape.normal((1,))
        if self.fault == "host tensor":
            return outputs + torch.zeros(1)
        if self.fault == "left on the host":
            return outputs.cpu()
        if self.fault == "other numbers":
            return outputs * (1.0 if x.device.type == "cpu" else 1.01)
        if self.fault == "item":
            return outputs * float(outputs.sum().item() < torch.inf)
        return outputs


def subject_with(fault: str, device: str = DEVICE) -> DeviceSubject:
    subject = DeviceSubject(device)
    subject.members = {"planted": members_of(Planted(fault), split_of("regression"), ONE_STEP)[1][0]}
    subject.methods = {"planted": Planted(fault)}
    return subject


def verdict(subject: DeviceSubject, name: str) -> Verdict:
    return judge(next(check for check in checks.device_checks() if check.name == name), subject, {})


@pytest.mark.parametrize(
    ("fault", "check", "message"),
    [
        ("none", "placement", ""),
        ("none", "same-as-cpu", ""),
        ("none", "no-waits", ""),
        ("none", "reproducible", ""),
        ("none", "out-of-memory", ""),
        ("host tensor", "placement", "planted: it raised RuntimeError: Expected all tensors to be on the same device"),
        ("left on the host", "placement", "planted: draw returns outputs on cpu"),
        ("other numbers", "same-as-cpu", "planted, draw differs by 0.01"),
        ("item", "no-waits", "wait (_local_scalar_dense) at test_device_checks.py"),
    ],
)
def test_a_fault_of_a_method_on_the_device_is_found(fault: str, check: str, message: str) -> None:
    found = verdict(subject_with(fault), check)
    assert found.state == ("failed" if message else "ok"), found
    assert message in found.message


def test_a_device_that_forgets_its_seed_is_not_reproducible() -> None:
    class Forgetful(DeviceSubject):
        seed = 0

        def train(self, name: str, limits: Limits) -> Drawing:
            self.seed += 1
            return replace(super().train(name, limits), seed=self.seed)

    subject = Forgetful("cpu")
    subject.methods = {"planted": Planted()}
    assert "two trainings of one seed differ" in verdict(subject, "reproducible").message
    assert "differ after running out of memory" in verdict(subject, "out-of-memory").message


def test_memory_that_stays_in_use_is_found() -> None:
    kept = []

    class Leaking(DeviceSubject):
        def train(self, name: str, limits: Limits) -> Drawing:
            kept.append(torch.ones(40 * 2**18))
            return super().train(name, limits)

    subject = Leaking("cpu")
    subject.some = ["planted", "planted"]
    subject.methods = {"planted": Planted()}
    assert "MiB more are in use" in verdict(subject, "memory-returned").message


def with_work(work: Callable[[int], object], device: str) -> DeviceSubject:
    subject = DeviceSubject(device)
    subject.work = work
    return subject


def test_a_clock_that_does_not_wait_is_found() -> None:
    found = verdict(with_work(lambda times: time.sleep(0.002), "cpu"), "twice-the-work")
    assert found.state == "failed"
    proportional = with_work(lambda times: time.sleep(0.02 * times), "cpu")
    assert verdict(proportional, "twice-the-work").state == "ok"
    assert verdict(proportional, "two-clocks").state == "not applicable"


def test_events_that_do_not_agree_with_the_host_are_found() -> None:
    """The queue's time is computed: its milliseconds have nothing to do with those of the host."""
    x = torch.zeros(3, device=DEVICE)
    with queue(milliseconds=1000.0):
        found = verdict(with_work(lambda times: [x + 1.0 for _ in range(times)], DEVICE), "two-clocks")
    assert found.state == "failed"
    assert "times the time of the host's clock" in found.message


def test_a_device_is_found_by_its_name_or_as_the_first_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_is_there", lambda kind: kind in ("xpu", "cpu"))
    assert find_device(None) == "xpu"
    assert find_device("cpu") == "cpu"
    with pytest.raises(UserError, match=r"^torch .* sees no cuda device here; 'uqbench doctor' shows what it sees$"):
        find_device("cuda")
    with pytest.raises(UserError, match="unknown device 'gpu'"):
        find_device("gpu")
