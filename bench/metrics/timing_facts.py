"""The facts without which a time cannot be interpreted: rows of latencies have them, and claims ask for them."""

import json
from collections.abc import Iterable

SHARED = ("device", "device_name", "driver", "libraries", "dtype", "batch", "floor", "gpu")  # of all series of a cell
PER_SERIES = ("mode", "batch")


def lacking_timing_facts(training: object, conditions: Iterable[str]) -> list[str]:
    """Return which facts the record of a cell, as it is stored, lacks for its times under these conditions."""
    record = json.loads(training) if isinstance(training, str) else {}
    about = record.get("latency", {})
    lacking = [name for name in SHARED if name not in about.get("facts", {})]
    series = about.get("series", {})
    lacking += [f"{name} of {at}" for at in conditions for name in PER_SERIES if name not in series.get(at, {})]
    return lacking
