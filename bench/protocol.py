"""What an experiment fixes beside the method: the network, the training, the scaling, the number of draws.

Plain validated data, light to import. Every field is part of a cell's key.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictBool
from pydantic.dataclasses import dataclass

# Strictness stands in the fields: on a class it would also refuse tables for the two parts.
_CLOSED = ConfigDict(extra="forbid")
Positive = Annotated[int, Field(gt=0, strict=True)]
NotNegative = Annotated[float, Field(ge=0, strict=True)]
Searched = Literal["learning_rate", "weight_decay"]


@dataclass(frozen=True, config=_CLOSED)
class Training:
    """How a network is trained."""

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: Annotated[float, Field(gt=0, strict=True)] = 0.001
    weight_decay: Annotated[float, Field(ge=0, strict=True)] = 0.0
    momentum: Annotated[float, Field(ge=0, lt=1, strict=True)] = 0.9  # Adam's first beta, SGD's momentum
    schedule: Literal["constant", "cosine"] = "constant"
    epochs: Positive = 100
    batch: Positive = 32
    augmentation: Literal["none", "crop-flip"] = "none"  # of the images of a training batch
    patience: Annotated[int, Field(ge=0, strict=True)] = (
        0  # epochs without a better validation loss before a stop; 0: never
    )
    validate: Literal["clean", "noisy"] = "clean"  # loss without the method's noise, or the training loss itself


@dataclass(frozen=True, config=_CLOSED)
class Architecture:
    """Which network the methods transform."""

    kind: Literal["mlp", "resnet8"] = "mlp"
    hidden: list[Positive] = Field(default_factory=lambda: [50])  # units of each hidden layer of an MLP
    activation: Literal["relu", "tanh"] = "relu"


@dataclass(frozen=True, config=_CLOSED)
class TestProbe:
    """Draw at the test rows and score."""

    kind: Literal["test"] = "test"


Mode = Literal["engine", "naive", "compiled"]
DEFAULT_MODES: tuple[Mode, ...] = ("engine", "naive")


@dataclass(frozen=True, config=_CLOSED)
class LatencyProbe:
    """Time passes over the test rows, all methods and numbers of draws in turn; nothing is trained."""

    kind: Literal["latency"] = "latency"
    draws: list[Positive] = Field(default_factory=lambda: [1, 10, 50, 100])  # T of the series
    batch: Positive = 500  # rows of one call
    rows: Annotated[int, Field(ge=0, strict=True)] = 0  # test rows of a pass; 0: all there are
    repeats: Positive = 10  # timed passes of each series
    modes: list[Mode] = Field(default_factory=lambda: list(DEFAULT_MODES))
    dtype: Literal["float32", "bfloat16"] = "float32"  # bfloat16: products only, by autocast
    threads: Annotated[int, Field(ge=0, strict=True)] = 0  # 0: one a core
    warm_up: Positive = 5  # passes of each series at most, before its times count

    def __post_init__(self) -> None:
        for name, values in (("draws", self.draws), ("modes", self.modes)):
            if not values or len(set(values)) != len(values):
                raise ValueError(f"probe.{name}: name at least one, and none twice")

    def evaluations(self, rows: int) -> int:
        """Return how many functions are evaluated at how many of so many rows, about."""
        return (self.repeats + 3) * sum(self.draws) * len(self.modes) * min(rows, self.rows or rows)


Probe = Annotated[TestProbe | LatencyProbe, Field(discriminator="kind")]  # what is asked of networks: `bench.probes`
Together = LatencyProbe  # those that look at all cells of a suite at once: one unit, with nothing beside it
PROBES: dict[str, type] = {"test": TestProbe, "latency": LatencyProbe}


@dataclass(frozen=True, config=_CLOSED)
class Protocol:
    """Everything an experiment fixes beside data, method and seed."""

    training: Training = Field(default_factory=Training)
    network: Architecture = Field(default_factory=Architecture)
    draws: Positive = 100
    validation: Annotated[float, Field(ge=0, lt=1, strict=True)] = (
        0.1  # share of the training rows held out for validation
    )
    scale_inputs: StrictBool = True  # each feature or image channel to mean 0 and variance 1
    scale_targets: StrictBool = True  # the same for regression targets; results are reported in original units
    search: Annotated[str, Field(pattern=r"^(none|grid|random:[1-9][0-9]*)$", strict=True)] = "none"
    folds: Annotated[int, Field(ge=2, strict=True)] = 5  # of the cross-validation that a search judges by
    grid: dict[Searched, list[NotNegative]] = Field(default_factory=dict)  # what a search tries of the training
    probe: Probe = Field(default_factory=TestProbe)

    def __post_init__(self) -> None:
        if self.training.patience and not self.validation:
            raise ValueError("training.patience watches the validation loss: give validation a share above 0")
        if empty := [name for name, values in self.grid.items() if not values]:
            raise ValueError(f"grid.{empty[0]}: name at least one value")
        if 0.0 in self.grid.get("learning_rate", []):
            raise ValueError("grid.learning_rate: a rate of 0 trains nothing")

    @property
    def together(self) -> bool:
        """Does the probe look at all cells of a suite at once, and train none?"""
        return isinstance(self.probe, Together)
