"""Memory of a call, and memory that is kept."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from bench.probes.latency.memory_use import peak_of

needs_linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc"
)


@needs_linux
def test_the_peak_of_a_call_is_what_it_holds_at_once() -> None:
    def hold(mib: int) -> float:
        found = peak_of(lambda: torch.ones(mib * 2**18), "cpu")
        assert found is not None
        return found

    assert hold(64) == pytest.approx(64, abs=8)
    assert hold(8) < 20  # the mark of the call before is gone


HELD = """
import torch
from pathlib import Path
from bench.training.allocator import keep_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

assert keep_freed_memory()
before = resident()
tensors = [torch.ones(4 * 2**18) for _ in range(16)]  # 4 MiB each, which malloc would give back one by one
del tensors
print(resident() - before)
"""


@needs_linux
def test_freed_memory_is_kept(python: Callable[[str], str]) -> None:
    # In an interpreter of its own: what other tests left in the heap would decide.
    assert float(python(HELD)) > 32
