"""A cell and its outcome. Between processes an outcome travels as JSON and plain arrays, never as code.

Light to import: neither torch nor the database.
"""

import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench.spec.spec import CellSpec

Status = Literal["ok", "diverged", "failed"]
BINARY = ("arrays", "predictions")  # the parts of an outcome that JSON cannot hold


@dataclass(frozen=True)
class Cell:
    """One result of a suite."""

    key: str
    dataset: str  # the names it has in its suite
    split: int
    method: str
    seed: int
    spec: str  # the text of its `CellSpec`, as it is stored: all that is needed to run it

    @classmethod
    def of(cls, spec: CellSpec, dataset: str, method: str) -> "Cell":
        """Return the cell of a specification under the names that a suite gives its dataset and method."""
        return cls(spec.key, dataset, spec.split, method, spec.seed, spec.text)


@dataclass(frozen=True)
class Outcome:
    """The result of a cell, or why there is none."""

    status: Status
    message: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)  # epochs, losses, chosen options
    timing: Mapping[str, float] = field(default_factory=dict)  # seconds, cpu_seconds: this cell's share of its unit
    environment: Mapping[str, Any] = field(default_factory=dict)  # of the process that made it
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    predictions: bytes = b""  # the content of a file of all its predictions (`bench.metrics.kept`)

    def __reduce__(self) -> tuple[Any, ...]:
        # What crosses to another process or machine holds no object of a plug-in's.
        return from_bytes, (to_bytes(self),)


def to_bytes(outcome: Outcome) -> bytes:
    """Return an outcome as a zip of plain arrays, the rest of it as JSON among them."""
    about = {f.name: getattr(outcome, f.name) for f in fields(outcome) if f.name not in BINARY}
    about["metrics"] = {name: _plain(value) for name, value in outcome.metrics.items()}
    text = np.frombuffer(json.dumps(about, allow_nan=False).encode(), dtype=np.uint8)
    content = io.BytesIO()
    parts = {f"array.{name}": array for name, array in outcome.arrays.items()}
    if outcome.predictions:
        parts["predictions"] = np.frombuffer(outcome.predictions, dtype=np.uint8)
    np.savez(content, allow_pickle=False, about=text, **parts)
    return content.getvalue()


def from_bytes(content: bytes) -> Outcome:
    """Return the outcome that `to_bytes` wrote."""
    with np.load(io.BytesIO(content), allow_pickle=False) as parts:
        about = json.loads(parts["about"].tobytes())
        arrays = {name.removeprefix("array."): parts[name] for name in parts.files if name.startswith("array.")}
        predictions = parts["predictions"].tobytes() if "predictions" in parts.files else b""
    about["metrics"] = {name: float(value) for name, value in about["metrics"].items()}
    return Outcome(**about, arrays=arrays, predictions=predictions)


def _plain(value: float) -> float | str:
    """JSON has no infinity: a log-likelihood that is infinite travels as a word."""
    return value if math.isfinite(value) else str(value)
