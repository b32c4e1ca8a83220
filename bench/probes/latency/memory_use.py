"""The peak memory of one call."""

import ctypes
import gc
from collections.abc import Callable

from bench.machine.memory import reset_peak, resident


def peak_of(call: Callable[[], object], device: str) -> float | None:
    """Return by how many MiB a call raises the memory in use: the device's, or this process's; None: unknown."""
    import torch

    gc.collect()
    if device != "cpu":
        torch.accelerator.synchronize()
        torch.accelerator.reset_peak_memory_stats()
        before = torch.accelerator.memory_allocated()
        call()
        torch.accelerator.synchronize()
        return float(torch.accelerator.max_memory_allocated() - before) / 2**20
    _give_back()
    used = resident("VmRSS") if reset_peak() else None
    if used is None:
        return None
    call()
    peak = resident("VmHWM")
    return None if peak is None else max(0.0, (peak - used) / 1024)


def _give_back() -> None:
    """Give freed memory back, so that what a call needs is not hidden in what was kept."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return
