"""Facts of the machine and the software, stored with every result."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("uqbench", "torch", "numpy", "scipy", "pandas", "scikit-learn", "SQLAlchemy", "matplotlib")


def package_versions() -> dict[str, str | None]:
    """Return the installed version of every package that matters; None where it is missing."""
    found: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def cpu_model() -> str:
    """Return the processor's name as the system reports it."""
    return _cpu_fact("model name") or platform.processor() or platform.machine()


@cache
def cpu_features() -> str:
    """Return what code that was compiled for this processor depends on: its name and its instructions."""
    return f"{cpu_model()}: {_cpu_fact('flags') or _cpu_fact('Features')}"  # Arm calls them features


def _cpu_fact(name: str) -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8", "replace").splitlines() if info.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def cores() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def driver(device: str) -> str:
    """Return the version of the GPU's driver as the system reports it; 'none' for a CPU."""
    if not device.startswith("cuda"):
        return "none"
    file = Path("/proc/driver/nvidia/version")
    return file.read_text("utf-8", "replace").partition("\n")[0].strip() if file.is_file() else "unknown"


@cache
def code_version() -> str:
    """Return the git commit of the code, with '-dirty' if it was changed since, or '' outside a checkout."""
    folder = Path(__file__).resolve().parents[1]  # the package
    if not (folder.parent / "pyproject.toml").is_file():
        return ""  # installed: a checkout around it is not ours
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def facts(device: str) -> dict[str, Any]:
    """Return the facts that are stored with every result."""
    import torch

    return {
        "code": code_version(),
        "packages": package_versions(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": cpu_model(),
        "vectors": torch.backends.cpu.get_cpu_capability(),  # the name of a virtual machine's processor may not say it
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "wait_policy": os.environ.get("OMP_WAIT_POLICY", ""),
        "device": device,
        "device_name": torch.cuda.get_device_name() if device.startswith("cuda") else cpu_model(),
    }
