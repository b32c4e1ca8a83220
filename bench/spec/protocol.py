"""What an experiment fixes beside the method: the network, the training, the scaling, the number of draws.

Plain validated data, light to import. Every field is part of a cell's key.
"""

from typing import Annotated, Any, ClassVar, Literal

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
    # Of the images of a training batch; crops have a border of 0 in training units, or of pixels that are 0: black.
    augmentation: Literal["none", "crop-flip", "crop-flip-black"] = "none"
    patience: Count = 0  # evaluations without a better validation loss before a stop; 0: never
    evaluate_every: Positive = 1  # epochs from one evaluation of the validation loss to the next
    evaluate_from: Count = 0  # the first epoch that is evaluated; 0: as many as from one evaluation to the next
    # What the validation loss is: without the method's noise, the training loss itself, or that of the mean of N draws.
    validate: Annotated[str, Field(pattern=r"^(clean|noisy|mean:[1-9][0-9]{0,5})$", strict=True)] = "clean"
    shuffle: StrictBool = True  # whether the rows of an epoch are in a new order
    # Of the forward and backward passes in training; weights, their updates and all draws are float32.
    precision: Literal["float32", "bfloat16"] = "float32"

    # Fields that came later: at their defaults they are no part of a cell's key, so that stored cells stay known.
    later: ClassVar[frozenset[str]] = frozenset({"evaluate_from", "shuffle"})

    @property
    def validation_draws(self) -> int:
        """The number of draws whose mean is validated; 0: no draws are."""
        kind, _, count = self.validate.partition(":")
        return int(count) if kind == "mean" else 0

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
    # Whose mean and variance these are: of the training rows, or of each part's own rows, the test rows' included.
    scale_by: Literal["training", "each-part"] = "training"
    search: Annotated[str, Field(pattern=r"^(none|grid|random:[1-9][0-9]*)$", strict=True)] = "none"
    # Of the cross-validation that a search judges by; 1: it judges on the validation rows alone.
    folds: Positive = 5
    # How a search judges a configuration on the held-out rows of a fold: by the validation loss, or by drawing.
    search_by: Literal["loss", "nll", "nll_mixture", "crps"] = "loss"
    # Whether the networks of a configuration on all folds stop in the same epoch, judged by the mean of their losses.
    stop_together: StrictBool = False
    search_network: dict[str, Any] = Field(default_factory=dict)  # options in which the networks of a search differ
    refit: StrictBool = False  # after a search: train on the validation rows, too, for the epochs that the folds needed
    refit_less: Count = 0  # by how many epochs a refit is shorter
    grid: dict[Searched, list[NotNegative]] = Field(default_factory=dict)  # what a search tries of the training
    probe: ProbeSpec = Field(default_factory=lambda: {"kind": "test"})

    later: ClassVar[frozenset[str]] = frozenset({"stop_together", "search_network", "refit_less", "scale_by"})

    def __post_init__(self) -> None:
        if self.training.patience and not self.validation:
            raise ValueError("training.patience watches the validation loss: give validation a share above 0")
        if self.validation + self.calibration >= 1:
            raise ValueError("validation and calibration: their shares leave no rows to train on")
        if self.search != "none" and self.folds == 1 and not self.validation:
            raise ValueError("folds = 1 judges a search on the validation rows: give validation a share above 0")
        if self.refit and self.search == "none":
            raise ValueError('refit trains for the epochs that a search has found: give search = "grid"')
        if (self.stop_together or self.search_network) and self.search == "none":
            name = "stop_together" if self.stop_together else "search_network"
            raise ValueError(f'{name} is about the networks of a search: give search = "grid"')
        if self.stop_together and not self.training.patience:
            raise ValueError("stop_together is about early stopping: give training.patience a number above 0")
        if self.refit_less and not self.refit:
            raise ValueError("refit_less shortens a refit: give refit = true")
        if self.scale_by == "each-part":
            self._check_parts()
        if empty := [name for name, values in self.grid.items() if not values]:
            raise ValueError(f"grid.{empty[0]}: name at least one value")
        if 0.0 in self.grid.get("learning_rate", []):
            raise ValueError("grid.learning_rate: a rate of 0 trains nothing")

    def _check_parts(self) -> None:
        """Raise an error where predictions at held-out rows would be needed in original units."""
        if not self.scale_inputs and not self.scale_targets:
            raise ValueError("scale_by is about scaling, which scale_inputs and scale_targets turn off")
        if self.calibration or (self.validation and not self.refit) or self.search_by != "loss":
            raise ValueError(
                'scale_by = "each-part" gives held-out rows units of their own, in which no noise can be fitted: give '
                'search_by = "loss", calibration = 0.0, and refit = true or validation = 0.0'
            )
