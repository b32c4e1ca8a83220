"""What a probe is given, and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from bench.api import Array, Method, Split
from bench.api.tape import stream
from bench.spec.protocol import Protocol
from bench.training.drawing import Drawing, draw
from bench.training.limits import Limits
from bench.training.member import Fitted
from bench.training.rows import Prepared


@dataclass(frozen=True, eq=False)
class Subject:
    """A cell whose networks are trained."""

    method: Method
    protocol: Protocol
    split: Split
    seed: int
    data: Prepared
    networks: Sequence[Fitted]
    limits: Limits

    def draws(self, x: Tensor, name: str) -> Array:
        """Draw the protocol's number of functions at rows in training units; another name gives other draws."""
        drawing = Drawing(self.method, self.networks, self.split.task, x, stream(self.seed, name), self.protocol.draws)
        return draw(drawing, self.limits)


@dataclass(frozen=True, eq=False)
class Untrained:
    """A cell whose networks need not be trained."""

    method: Method
    protocol: Protocol
    split: Split
    seed: int


@dataclass(frozen=True)
class Finding:
    """What a probe found: metric values, some of them under a condition (`accuracy@fog:3`), and arrays for figures."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    diverged: str = ""  # why there is nothing to be measured
    record: Mapping[str, Any] = field(default_factory=dict)  # what the row says beside, as JSON
    doubts: Sequence[str] = ()  # why the numbers should not be trusted
