"""What a row of timings must say about how and where they were taken."""

import os
from typing import Any

import torch

from bench.machine.environment import cores, cpu_model, driver
from bench.probes.latency.machine_load import load_average
from bench.spec.protocol import LatencyProbe


def facts_of(probe: LatencyProbe, device: str) -> dict[str, Any]:
    """Return the facts that all series share, as they are before the first pass."""
    return {
        "batch": probe.batch,
        "dtype": probe.dtype,
        "repeats": probe.repeats,
        "threads": probe.threads or cores(),
        "wait_policy": os.environ.get("OMP_WAIT_POLICY", ""),
        "cpu": cpu_model(),
        "cores": cores(),
        "device": device,
        "device_name": cpu_model() if device == "cpu" else torch.cuda.get_device_name(device),
        "driver": driver(device),
        "torch": torch.__version__,
        "load_average": load_average(),
    }
