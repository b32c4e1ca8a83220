"""What an experiment fixes beside the method: the network, the training, the scaling, the number of draws.

Plain validated data, light to import. Every field is part of a cell's key.
"""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictBool
from pydantic.dataclasses import dataclass

from bench.errors import unknown_name

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
    schedule: Literal["constant", "cosine", "step"] = "constant"  # step: a tenth after half, a hundredth after 3/4
    epochs: Positive = 100
    batch: Positive = 32
    augmentation: Literal["none", "crop-flip"] = "none"  # of the images of a training batch
    patience: Annotated[int, Field(ge=0, strict=True)] = (
        0  # epochs without a better validation loss before a stop; 0: never
    )
    validate: Literal["clean", "noisy"] = "clean"  # loss without the method's noise, or the training loss itself
    # Of the forward and backward passes in training; weights, their updates and all draws are float32.
    precision: Literal["float32", "bfloat16"] = "float32"


@dataclass(frozen=True, config=_CLOSED)
class Architecture:
    """Which network the methods transform."""

    kind: Literal["mlp", "conv", "resnet8"] = "mlp"
    hidden: list[Positive] = Field(default_factory=lambda: [50])  # units (mlp) or channels (conv) of each hidden layer
    activation: Literal["relu", "tanh"] = "relu"


@dataclass(frozen=True, config=_CLOSED)
class TestProbe:
    """Draw at the test rows and score; also the first so many draws alone, under the conditions `T=...`."""

    kind: Literal["test"] = "test"
    draws: list[Positive] = Field(default_factory=list)

    def __post_init__(self) -> None:
        if len(set(self.draws)) < len(self.draws):
            raise ValueError("probe.draws: name every number of draws once")


CORRUPTION_NAMES = (
    "gaussian-noise",
    "shot-noise",
    "impulse-noise",
    "speckle-noise",
    "gaussian-blur",
    "motion-blur",
    "brightness",
    "contrast",
    "pixelate",
    "occlusion",
    "quantised",
)
FOREIGN_NAMES = ("inverted", "permuted", "uniform-noise")


@dataclass(frozen=True, config=_CLOSED)
class ShiftProbe:
    """Score at the clean test images, under every corruption at every severity, and against foreign images."""

    kind: Literal["shift"] = "shift"
    corruptions: list[str] = Field(default_factory=lambda: list(CORRUPTION_NAMES))
    severities: list[Annotated[int, Field(ge=1, le=5, strict=True)]] = Field(default_factory=lambda: [1, 2, 3, 4, 5])
    foreign: list[str] = Field(default_factory=lambda: ["inverted", "permuted", "uniform-noise"])
    rows: Annotated[int, Field(ge=0, strict=True)] = 0  # so many test images, the first ones; 0: all

    def __post_init__(self) -> None:
        for key, kind, known in (
            ("corruptions", "corruption", CORRUPTION_NAMES),
            ("foreign", "foreign set", FOREIGN_NAMES),
        ):
            for name in getattr(self, key):
                if name not in known:
                    raise ValueError(str(unknown_name(kind, name, known, f"probe.{key}")))
        for key in ("corruptions", "severities", "foreign"):
            if len(set(getattr(self, key))) < len(getattr(self, key)):
                raise ValueError(f"probe.{key}: something is named twice")
        if bool(self.corruptions) != bool(self.severities):
            raise ValueError("probe: corruptions and severities go together; name both or leave both empty")


@dataclass(frozen=True, config=_CLOSED)
class NoiseProbe:
    """Draw at one test image under growing Gaussian noise: when does the prediction flip, how do the draws spread?"""

    kind: Literal["softmax-noise"] = "softmax-noise"
    label: Annotated[int, Field(ge=0, strict=True)] = 0  # the class of the image
    image: Annotated[int, Field(ge=0, strict=True)] = 0  # which of the test images of that class
    levels: list[NotNegative] = Field(  # standard deviations, in the units of the data; here the paper's
        default_factory=lambda: [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1]
    )

    def __post_init__(self) -> None:
        if not self.levels or any(low >= high for low, high in pairwise(self.levels)):
            raise ValueError("probe.levels: name at least one level, the lowest first, none twice")


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


# What is asked of networks: `bench.probes`.
Probe = Annotated[TestProbe | ShiftProbe | NoiseProbe | LatencyProbe, Field(discriminator="kind")]
PROBES: dict[str, type] = {"test": TestProbe, "shift": ShiftProbe, "softmax-noise": NoiseProbe, "latency": LatencyProbe}
Together = LatencyProbe  # those that look at all cells of a suite at once: one unit, with nothing beside it


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
