"""The conditions under which times were measured: without them a row of times is not stored."""

import os
from typing import TYPE_CHECKING, Any

from bench.errors import UserError
from bench.machine.environment import cores, cpu_model, driver
from bench.metrics.timing_facts import PER_SERIES, SHARED
from bench.probes.latency.machine_load import load_average
from bench.spec.cell import Outcome

if TYPE_CHECKING:
    from bench.probes.latency.probe import Latency

FACTS = ("modes", *SHARED, "threads", "wait_policy", "cpu", "torch", "load_average")
FACTS_PER_SERIES = (*PER_SERIES, "chunks", "threads")


def current_conditions(probe: "Latency", device: str) -> dict[str, Any]:
    """Return the conditions that all series share, as they are before the first pass."""
    import torch

    return {
        **{name: getattr(probe, name) for name in ("batch", "dtype", "repeats")},
        "threads": probe.threads or cores(),
        "wait_policy": os.environ.get("OMP_WAIT_POLICY", ""),
        "cpu": cpu_model(),
        "cores": cores(),
        "device": device,
        "device_name": cpu_model() if device == "cpu" else torch.cuda.get_device_name(device),
        "driver": driver(device),
        "torch": torch.__version__,
        "libraries": _libraries(),
        "load_average": load_average(),
    }


def _libraries() -> dict[str, str | None]:
    """Return the versions of the libraries that compute; None: not in use."""
    import numpy as np
    import torch

    cudnn = torch.backends.cudnn.version() if torch.cuda.is_available() else None
    return {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "cudnn": None if cudnn is None else str(cudnn),
    }


def check_conditions(outcome: Outcome) -> None:
    """Raise a UserError where an outcome has times and lacks the conditions they were measured under."""
    timed = {name.partition("@")[2] for name in outcome.metrics if name.startswith("latency_")}
    if not timed:
        return
    about = outcome.training.get("latency", {})
    lacking = [fact for fact in FACTS if fact not in about.get("facts", {})]
    series = about.get("series", {})
    lacking += [f"{f} of {c}" for c in sorted(timed) for f in FACTS_PER_SERIES if f not in series.get(c, {})]
    if lacking:
        raise UserError(f"a row of latencies must say how it was measured; it lacks {', '.join(lacking)}")
