"""The peak memory of one call."""

import ctypes
import gc
import re
from collections.abc import Callable
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


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
    try:
        _RESET.write_text("5")  # the high-water mark starts again
        before = _resident("VmRSS")
        call()
        return max(0.0, (_resident("VmHWM") - before) / 1024)
    except OSError:
        return None


def _resident(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    if found is None:
        raise OSError(f"{_STATUS} does not have {name}")
    return int(found[1])


def _give_back() -> None:
    """Give freed memory back, so that what a call needs is not hidden in what was kept."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return
