"""What a probe is, what it is given, and what it returns.

Nothing here loads torch, and a probe should not at import: suites are checked and stores are read without it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from bench.api import Array, Prediction, Results, Split
from bench.metrics.kept import Kept
from bench.spec.cell import Outcome
from bench.spec.keep import MOMENTS, Keep
from bench.spec.plugin import keyed_options
from bench.spec.protocol import Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from bench.api import BaseMethod, Network
    from bench.training.limits import Limits
    from bench.training.predictors import Predictor
    from bench.training.rows import Prepared


class DivergedError(Exception):
    """There is nothing to measure: a network or a prediction is not finite."""

    def __init__(self, what: str, first: str = "") -> None:
        super().__init__(what, first)
        self.what, self.first = what, first  # what is not finite, and the first value found

    def __str__(self) -> str:
        return f"{self.what}; first not finite: {self.first}" if self.first else self.what

    def under(self, condition: str) -> "DivergedError":
        """Return the same error with the condition under which it arose."""
        return DivergedError(f"{self.what} {condition}", self.first)


@dataclass(frozen=True, eq=False)
class Subject:
    """A cell whose networks need not be trained."""

    method: "BaseMethod"
    network: "Network"
    protocol: Protocol
    split: Split
    seed: int


@dataclass(frozen=True, eq=False)
class TrainedSubject(Subject):
    """A cell whose networks are trained."""

    data: "Prepared"
    predictor: "Predictor"
    requested: frozenset[str] = frozenset()  # metrics that are computed on request
    keep: Keep = MOMENTS  # what is kept of its predictions

    def predict(self, x: "Tensor", name: str) -> Prediction:
        """Return the prediction in original units at rows in training units; another name gives other draws."""
        from bench.api.tape import stream
        from bench.training.predictors import NotFiniteError

        try:
            prediction = self.predictor.predict(x, self.protocol.draws, stream(self.seed, name))
        except NotFiniteError as error:
            raise DivergedError(f"a prediction at the {name} rows was not finite", str(error)) from None
        return self.data.original(prediction)


@dataclass(frozen=True)
class Finding:
    """What a probe found: metric values, some of them under a condition (`accuracy@fog:3`), and arrays for figures."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)  # stored with the cell's training, as JSON
    doubts: Sequence[str] = ()  # why the numbers may be wrong
    kept: Kept | None = None  # the predictions that the metrics without a condition are of


class Probe:
    """A kind in a suite's table `[probe]`.

    Subclass it as a frozen pydantic dataclass (`config=CLOSED`) whose fields are the options, each with a default.
    Most probes write `measure`; one that needs all cells at the same time sets `together` and writes
    `measure_together` and `evaluations` instead.
    """

    kind: ClassVar[str]
    later: ClassVar[frozenset[str]] = frozenset()  # options that came later: no part of a key at their defaults
    together: ClassVar[bool] = False  # measures all cells of a suite in one unit of work, and trains none

    @property
    def spec(self) -> dict[str, Any]:
        """The table `[probe]` of a key: the kind and every option, without later ones that have their defaults."""
        plain = asdict(self)  # type: ignore[call-overload]  # subclasses are dataclasses
        return {"kind": self.kind, **keyed_options(self, plain)}

    def check(self, split: Split) -> None:
        """Raise a UserError where the probe cannot be used on the data."""

    def rows_drawn(self, test_rows: int) -> int:
        """Return at how many rows functions are drawn, which is most of what a probe costs."""
        return test_rows

    def measure(self, subject: TrainedSubject) -> Finding:
        """Measure one trained cell; raises DivergedError where that is impossible."""
        raise NotImplementedError

    def measure_together(
        self, subjects: Sequence[Subject], device: str, limits: "Limits"
    ) -> Iterator[tuple[int, Finding | BaseException]]:
        """Measure all cells; yield the number of each with its finding, or with the exception that it raised."""
        raise NotImplementedError

    def evaluations(self, test_rows: int) -> int:
        """Return how many functions `measure_together` evaluates per cell, times the rows of each, roughly."""
        raise NotImplementedError

    @staticmethod
    def table(results: Results) -> str:
        """Return the table that ends a run in the terminal; empty: the usual ranks of the methods."""
        return ""

    @staticmethod
    def check_outcome(outcome: Outcome) -> None:
        """Raise a UserError if an outcome lacks the facts without which its values cannot be interpreted."""
