"""Memory of a call, and memory that is kept."""

import sys
from pathlib import Path

import pytest
import torch

from bench.memory import keep_freed_memory, peak_of

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


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_freed_memory_is_kept() -> None:
    assert keep_freed_memory()
    resource = pytest.importorskip("resource")

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        tensors = [torch.ones(4 * 2**18) for _ in range(8)]  # 4 MiB each
        del tensors
        return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

    faults()
    assert faults() < 1000  # 8192 pages if the memory were new
