"""Memory: kept between calls where the system's would be slow, and the peak of one call."""

import ctypes
import gc
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
KEPT = 2**28
FROM_THE_HEAP = 2**25


@cache
def keep_freed_memory() -> bool:
    """Have freed memory kept for the next tensor; return whether that could be had.

    glibc gives megabytes back to the system when they are freed, and gets them again page by page. In calls that make
    tensors of some megabytes that took longer than the arithmetic. At most 256 MiB are kept.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library
        return False
    return bool(mallopt(_TRIM_THRESHOLD, KEPT)) and bool(mallopt(_MMAP_THRESHOLD, FROM_THE_HEAP))


def peak_of(call: Callable[[], object], device: str) -> float | None:
    """Return by how many MiB a call raises the memory in use: the device's, or this process's; None: not to be told."""
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
        raise OSError(f"{_STATUS} does not tell {name}")
    return int(found[1])


def _give_back() -> None:
    """Give freed memory back, so that what a call needs is not hidden in what was kept."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return
