"""Copies to and from a device: pinned where the device reads such memory, and one wait of the host per turn."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from bench.methods.mc_dropout import MCDropout
from bench.training import stack as stacks
from bench.training import transfers
from bench.training.fit import fit
from bench.training.limits import Limits
from bench.training.transfers import to_device, to_host
from tests.fixtures.training import MakeMember

READS = ("tolist", "item", "__float__", "__int__", "__bool__", "__index__")


@pytest.mark.parametrize("path", ["stack", "plain"])
def test_the_host_reads_from_the_device_once_per_turn(
    path: Any, member: MakeMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Losses and validation losses of all slots and epochs of a turn; whatever reads a value waits for the device."""
    reads: list[str] = []
    turns: list[int] = []
    depth = [0]

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(Tensor, name)

        def read(self: Tensor, *given: Any) -> Any:
            if depth[0]:
                reads.append(name)
            return real(self, *given)

        return read

    def inside(name: str) -> None:
        real = getattr(stacks.Stack, name)

        def call(stack: Any, *given: Any) -> Any:
            depth[0] += 1
            turns.append(1) if name == "_train_turn" else None
            try:
                result = real(stack, *given)
                return list(result) if name == "_close_turn" else result
            finally:
                depth[0] -= 1

        monkeypatch.setattr(stacks.Stack, name, call)

    members = [member(MCDropout(), seed, patience=2, epochs=6) for seed in range(1 if path == "plain" else 3)]
    list(fit(members, Limits(path=path, compiling=False)))  # checks at the first step of a graph may read
    for name in READS:
        monkeypatch.setattr(Tensor, name, counted(name))
    inside("_train_turn")
    inside("_close_turn")
    list(fit(members, Limits(path=path, compiling=False)))
    assert len(turns) >= 1
    assert reads == ["tolist"] * len(turns)


class PinnedError(Exception):
    """Pinning was asked for, which needs a device."""


def test_copies_to_a_gpu_are_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    def pin(tensor: Tensor) -> Tensor:
        raise PinnedError

    monkeypatch.setattr(Tensor, "pin_memory", pin)
    x = torch.arange(3.0)
    for kind in ("cuda", "xpu"):
        with pytest.raises(PinnedError):
            to_device(x, torch.device(kind))
    assert to_device(x, torch.device("cpu")) is x
    assert to_device(x, torch.device("meta")).device.type == "meta"


def test_the_device_is_waited_for_once_after_the_last_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    real_empty, real_copy = torch.empty, Tensor.copy_

    def empty(*shape: Any, pin_memory: bool = False, **given: Any) -> Tensor:
        log.append("pinned" if pin_memory else "not pinned")
        return real_empty(*shape, **given)

    def copy(tensor: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
        log.append("copy" if non_blocking else "wait for copy")
        return real_copy(tensor, source)

    monkeypatch.setattr(transfers, "PINNING", ("cpu",))
    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(Tensor, "copy_", copy)
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda device: log.append("wait"))
    parts = [torch.arange(3.0), torch.ones(2)]
    found = to_host(part for part in parts)
    assert [each.tolist() for each in found] == [[0.0, 1.0, 2.0], [1.0, 1.0]]
    assert log == ["pinned", "copy", "pinned", "copy", "wait"]
