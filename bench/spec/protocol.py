"""What an experiment fixes beside the method: the network, the training, the scaling, the number of draws.

Plain validated data, light to import. Every field is part of a cell's key.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictBool
from pydantic.dataclasses import dataclass

from bench.spec.plugin import PluginSpec
from bench.spec.sizes import MOST_DRAWS, MOST_REPEATS

# Strict types are set per field: on a class they would also refuse tables for the two parts.
CLOSED = ConfigDict(extra="forbid")
Positive = Annotated[int, Field(gt=0, le=MOST_REPEATS, strict=True)]
Count = Annotated[int, Field(ge=0, le=MOST_REPEATS, strict=True)]
Draws = Annotated[int, Field(gt=0, le=MOST_DRAWS, strict=True)]
NotNegative = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
Searched = Literal["learning_rate", "weight_decay"]


@dataclass(frozen=True, config=CLOSED)
class Training:
    """How a network is trained."""

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)] = 0.001
    weight_decay: NotNegative = 0.0
    momentum: Annotated[float, Field(ge=0, lt=1, strict=True)] = 0.9  # Adam's first beta, SGD's momentum
    nesterov: StrictBool = False  # SGD with Nesterov's momentum
    schedule: Literal["constant", "cosine", "step"] = "constant"  # step: a tenth after half, a hundredth after 3/4
    epochs: Positive = 100
    batch: Positive = 32
    partial_batch: StrictBool = False  # whether the rows that fill no whole batch are the last, smaller batch
    augmentation: Literal["none", "crop-flip"] = "none"  # of the images of a training batch
    patience: Count = 0  # evaluations without a better validation loss before a stop; 0: never
    evaluate_every: Positive = 1  # epochs from one evaluation of the validation loss to the next
    validate: Literal["clean", "noisy"] = "clean"  # loss without the method's noise, or the training loss itself
    # Of the forward and backward passes in training; weights, their updates and all draws are float32.
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        if self.nesterov and (self.optimizer != "sgd" or not self.momentum):
            raise ValueError('training.nesterov is for optimizer = "sgd" with a momentum above 0')


DEFAULT_NETWORK = "mlp"


def _network_spec(given: object) -> object:
    """Read a table [network], its kind and the options of that kind; what is a specification already stays one."""
    if not isinstance(given, dict) or set(given) == set(PluginSpec.__dataclass_fields__):
        return given
    kind = given.get("kind", DEFAULT_NETWORK)
    if not isinstance(kind, str) or not kind:
        raise ValueError(f"network.kind: the name of a network is expected, got {kind!r}")
    return PluginSpec(kind, options={name: value for name, value in given.items() if name != "kind"})


def network_table(spec: PluginSpec) -> dict[str, Any]:
    """Return the table [network] of a suite that says this."""
    return {"kind": spec.name, **spec.options}


# A plan makes the network, which checks the options, and completes its origin, version and defaults.
NetworkSpec = Annotated[PluginSpec, BeforeValidator(_network_spec)]


def _with_kind(table: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(table.get("kind"), str):
        raise ValueError("probe.kind: this key is required, and is the name of a probe")
    return table


# The table [probe]: its kind and options. `bench.probes.make_probe` knows what they mean; suites complete the defaults.
ProbeSpec = Annotated[dict[str, Any], AfterValidator(_with_kind)]


@dataclass(frozen=True, config=CLOSED)
class Protocol:
    """Everything an experiment fixes beside data, method and seed."""

    training: Training = Field(default_factory=Training)
    network: NetworkSpec = Field(default_factory=lambda: PluginSpec(DEFAULT_NETWORK))
    draws: Draws = 100
    validation: Annotated[float, Field(ge=0, lt=1, strict=True)] = 0.1  # share of the training rows that is held out
    # Share of the training rows that neither trains nor stops a training, for what is fitted after it: noise,
    # temperatures, noise levels, intervals. 0: the validation rows serve for this, too.
    calibration: Annotated[float, Field(ge=0, lt=1, strict=True)] = 0.0
    scale_inputs: StrictBool = True  # each feature or image channel to mean 0 and variance 1
    scale_targets: StrictBool = True  # the same for regression targets; results are reported in original units
    search: Annotated[str, Field(pattern=r"^(none|grid|random:[1-9][0-9]*)$", strict=True)] = "none"
    # Of the cross-validation that a search judges by; 1: it judges on the validation rows alone.
    folds: Positive = 5
    # How a search judges a configuration on the held-out rows of a fold: by the validation loss, or by drawing.
    search_by: Literal["loss", "nll", "nll_mixture", "crps"] = "loss"
    refit: StrictBool = False  # after a search: train on the validation rows, too, for the epochs that the folds needed
    grid: dict[Searched, list[NotNegative]] = Field(default_factory=dict)  # what a search tries of the training
    probe: ProbeSpec = Field(default_factory=lambda: {"kind": "test"})

    def __post_init__(self) -> None:
        if self.training.patience and not self.validation:
            raise ValueError("training.patience watches the validation loss: give validation a share above 0")
        if self.validation + self.calibration >= 1:
            raise ValueError("validation and calibration: their shares leave no rows to train on")
        if self.search != "none" and self.folds == 1 and not self.validation:
            raise ValueError("folds = 1 judges a search on the validation rows: give validation a share above 0")
        if self.refit and self.search == "none":
            raise ValueError('refit trains for the epochs that a search has found: give search = "grid"')
        if empty := [name for name, values in self.grid.items() if not values]:
            raise ValueError(f"grid.{empty[0]}: name at least one value")
        if 0.0 in self.grid.get("learning_rate", []):
            raise ValueError("grid.learning_rate: a rate of 0 trains nothing")
