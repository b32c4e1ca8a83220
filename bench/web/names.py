"""Names of files, pages and metrics."""

import hashlib
import re

from bench.metrics import Metric, condition

LONGEST, LONGEST_READABLE = 60, 80


def file_name(name: str) -> str:
    """Return the file name of a subject, without its suffix: safe in a folder and an address, and never another's.

    A name that is not safe as it is gets a part of its hash.
    """
    safe = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:LONGEST]
    if safe and safe == name:
        return safe
    return f"{safe or 'name'}-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"


def readable_name(words: str) -> str:
    """Return a readable name for a file, safe in a folder and an address; different words may give the same name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", words).strip("-")[:LONGEST_READABLE].strip("-") or "unnamed"


def metric_name(name: str) -> str:
    """Return a stored metric's name for readers: NAME@CONDITION becomes 'NAME at CONDITION'."""
    under = condition(name)
    return f"{name.partition('@')[0]} at {under}" if under else name


def better_values(metric: Metric) -> str:
    """Return which values of a metric are better, in words."""
    if metric.target is not None:
        return f"nearer to {metric.target:g} is better"
    return f"{metric.direction} is better" if metric.has_better else "it describes predictions: no value is better"
