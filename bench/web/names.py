"""Names of pages: safe in a folder and in an address, the same in every build, never the same for two subjects."""

import hashlib
import re

from bench.metrics import Metric, condition

LONGEST = 60


def file_name(name: str) -> str:
    """Return a file's name, without its suffix; a name that is not safe as it is gets a part of its hash."""
    safe = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:LONGEST]
    if safe and safe == name:
        return safe
    return f"{safe or 'name'}-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"


def metric_name(name: str) -> str:
    """Return a stored metric's name as it is read: its condition behind it, in words."""
    under = condition(name)
    return f"{name.partition('@')[0]} at {under}" if under else name


def better(metric: Metric) -> str:
    """Return which values are good."""
    if metric.target is not None:
        return f"nearer to {metric.target:g} is better"
    return f"{metric.direction} is better"
