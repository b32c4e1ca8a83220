"""The memory that this process uses: now, and at its highest."""

import re
import sys
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """Measures by how much the memory in use grows from the moment at which it is made."""

    def __init__(self) -> None:
        self._before = resident("VmRSS") if reset_peak() else _peak_ever()

    def growth(self) -> float | None:
        """Return the highest growth so far in MiB; None where the platform does not tell."""
        now = resident("VmHWM") or _peak_ever()
        return None if now is None or self._before is None else max(0.0, (now - self._before) / 1024)


def reset_peak() -> bool:
    """Start the high-water mark of this process again; return whether the platform can (Linux)."""
    try:
        _RESET.write_text("5")
    except OSError:
        return False
    return True


def resident(name: str) -> int | None:
    """Return a line of the process's status in KiB: `VmRSS` (now) or `VmHWM` (the high-water mark)."""
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1])


def _peak_ever() -> int | None:
    """Return the highest memory since the process started, in KiB."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak
