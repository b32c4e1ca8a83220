"""What a GPU says of itself, through doubles of NVIDIA's library and command."""

import os
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from bench.probes.latency import gpu_state
from bench.probes.latency.doubts import doubts_of_gpu
from bench.probes.latency.gpu_state import Gpu


def library(**changes: Any) -> SimpleNamespace:
    """The calls of NVIDIA's management library that are used."""
    calls: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetHandleByUUID": lambda name: "handle",
        "nvmlDeviceGetTotalEnergyConsumption": lambda handle: 12_500,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0,
        "nvmlDeviceGetClockInfo": lambda handle, kind: 1400,
        "nvmlDeviceGetMaxClockInfo": lambda handle, kind: 1800,
        "nvmlDeviceGetTemperature": lambda handle, kind: 61,
        "nvmlDeviceGetPowerUsage": lambda handle: 250_000,
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
            SimpleNamespace(pid=os.getpid()),
            SimpleNamespace(pid=77),
        ],
    }
    return SimpleNamespace(**{**calls, **changes})


def raises(*given: object) -> int:
    raise RuntimeError("not supported")


def test_a_gpu_tells_its_state() -> None:
    gpu = Gpu("cuda", library())
    assert gpu.joules() == 12.5
    assert gpu.throttled() == ""
    assert gpu.state() == {
        "source": "nvml",
        "clock_mhz": 1400,
        "highest_clock_mhz": 1800,
        "celsius": 61,
        "watts": 250.0,
        "held_back": [],
        "other_processes": [77],
    }


def test_heat_that_holds_the_clock_back_is_told_and_a_power_cap_is_recorded() -> None:
    hot = Gpu("cuda", library(nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 32))
    assert "SwThermalSlowdown" in hot.throttled()
    capped = Gpu("cuda", library(nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 4))
    assert capped.throttled() == ""
    assert capped.state()["held_back"] == ["SwPowerCap"]


def test_a_gpu_need_not_know_everything() -> None:
    gpu = Gpu("cuda", library(nvmlDeviceGetTotalEnergyConsumption=raises, nvmlDeviceGetClockInfo=raises))
    assert gpu.joules() is None
    assert gpu.state()["clock_mhz"] is None


def test_a_cpu_says_why_it_tells_nothing() -> None:
    gpu = Gpu("cpu")
    assert (gpu.joules(), gpu.throttled()) == (None, "")
    assert gpu.state() == {"reason": "a cpu device tells no clocks, throttling or energy"}


def answers(command: list[str]) -> str:
    assert command[0] == "nvidia-smi"
    if "--query-compute-apps=pid" in command:
        return f"{os.getpid()}\n88\n"
    return "1335, 1800, 54, [N/A], 0x0000000000000020\n"


def test_without_the_library_the_command_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_state, "_uuid", lambda: "GPU-1")
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)  # an import raises
    gpu = Gpu("cuda", run=answers)
    assert gpu.joules() is None
    assert gpu.state() == {
        "source": "nvidia-smi",
        "clock_mhz": 1335.0,
        "highest_clock_mhz": 1800.0,
        "celsius": 54.0,
        "watts": None,
        "held_back": ["SwThermalSlowdown"],
        "other_processes": [88],
    }


def test_without_both_the_reason_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(command: list[str]) -> str:
        raise subprocess.CalledProcessError(9, command)

    monkeypatch.setattr(gpu_state, "_uuid", lambda: "GPU-1")
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    gpu = Gpu("cuda", run=missing)
    assert gpu.state()["reason"].endswith("(pip install 'uqbench[gpu]')")
    assert doubts_of_gpu(gpu.state(), gpu.state()) == []


def test_other_processes_and_a_falling_clock_are_doubts() -> None:
    before, after = {"clock_mhz": 1800.0, "other_processes": []}, {"clock_mhz": 1200.0, "other_processes": [77, 5]}
    assert doubts_of_gpu(before, before) == []
    assert doubts_of_gpu(before, after) == [
        "other processes were on the GPU (5, 77)",
        "the GPU's clock fell from 1800 to 1200 MHz",
    ]
