"""What an NVIDIA GPU says of itself: energy, clocks, throttling, temperature, and other processes on it.

From NVIDIA's management library where it is installed (extra "gpu"), else from the command `nvidia-smi`, which has no
energy. Where neither is found, or for other devices, the reason is stored in the place of the facts.
"""

import contextlib
import importlib
import os
import subprocess
from collections.abc import Callable
from typing import Any

COMMAND = "nvidia-smi"
QUERY = "clocks.sm,clocks.max.sm,temperature.gpu,power.draw,clocks_throttle_reasons.active"
HELD_BACK = {"SwPowerCap": 4, "HwSlowdown": 8, "SwThermalSlowdown": 32, "HwThermalSlowdown": 64, "HwPowerBrake": 128}
WORRYING = ("HwSlowdown", "SwThermalSlowdown", "HwThermalSlowdown", "HwPowerBrake")  # a power cap is usual under load

Run = Callable[[list[str]], str]


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout


class Gpu:
    """The GPU in use; `reason` says why nothing is known of it."""

    def __init__(self, device: str, library: Any = None, run: Run = _run) -> None:
        self._library, self._handle, self._run = library, None, run
        self.source, self.reason = "", ""
        if not device.startswith("cuda"):
            self.reason = f"a {device} device tells no clocks, throttling or energy"
            return
        try:
            self._name = _uuid() if library is None else ""
            if library is None:
                self._library = importlib.import_module("pynvml")
            self._library.nvmlInit()
            self._handle = self._library.nvmlDeviceGetHandleByUUID(self._name)
            self.source = "nvml"
        except Exception as error:  # not installed, or it does not know this GPU
            self._handle = None
            self.reason = f"pynvml: {error} (pip install 'uqbench[gpu]')"
            with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
                self._ask()
                self.source = COMMAND

    def joules(self) -> float | None:
        """Return the reading of the energy counter; None: there is none."""
        if self._handle is None:
            return None
        try:
            return float(self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1000
        except Exception:  # a GPU without the counter
            return None

    def state(self) -> dict[str, Any]:
        """Return clocks, temperature, power, what holds the clock back and other processes; or the reason for none."""
        if self._handle is not None:
            return {"source": self.source, **self._by_library()}
        if self.source:
            with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
                return {"source": self.source, **self._ask()}
        return {"reason": self.reason}

    def throttled(self) -> str:
        """Return in words whether the GPU's clock is held back now; empty: it is not, or nothing is known."""
        if self._handle is None:  # a command takes too long between two rounds
            return ""
        held = [name for name in self._by_library()["held_back"] if name in WORRYING]
        return f"the GPU's clock is held back: {', '.join(held)}" if held else ""

    def _by_library(self) -> dict[str, Any]:
        library, handle = self._library, self._handle

        def read(name: str, *given: Any) -> Any:
            try:
                return getattr(library, name)(handle, *given)
            except Exception:  # no GPU knows everything
                return None

        reasons = read("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        processes = read("nvmlDeviceGetComputeRunningProcesses")
        others = None if processes is None else [each.pid for each in processes if each.pid != os.getpid()]
        power = read("nvmlDeviceGetPowerUsage")
        return {
            "clock_mhz": read("nvmlDeviceGetClockInfo", 1),
            "highest_clock_mhz": read("nvmlDeviceGetMaxClockInfo", 1),
            "celsius": read("nvmlDeviceGetTemperature", 0),
            "watts": None if power is None else power / 1000,
            "held_back": [name for name, bit in HELD_BACK.items() if reasons & bit],
            "other_processes": others,
        }

    def _ask(self) -> dict[str, Any]:
        chosen = [f"--id={self._name}"] if self._name else []
        line = self._run([COMMAND, *chosen, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]).splitlines()[0]
        clock, highest, celsius, watts, reasons = (part.strip() for part in line.split(","))
        listed = self._run([COMMAND, *chosen, "--query-compute-apps=pid", "--format=csv,noheader"]).split()
        bits = int(reasons, 16)
        return {
            "clock_mhz": _number(clock),
            "highest_clock_mhz": _number(highest),
            "celsius": _number(celsius),
            "watts": _number(watts),
            "held_back": [name for name, bit in HELD_BACK.items() if bits & bit],
            "other_processes": [int(pid) for pid in listed if pid.isdigit() and int(pid) != os.getpid()],
        }


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # "[N/A]"
        return None


def _uuid() -> str:
    import torch

    return f"GPU-{torch.cuda.get_device_properties().uuid}"
