"""The declaration of a metric: everything that runs, reports, statistics and the gate know about it."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from bench.errors import UserError
from bench.metrics.forecast import Forecast
from bench.spec.names import check_name

Task = Literal["regression", "classification", "any"]
Family = Literal["predictive", "calibration", "selective", "detection", "cost", "truth", "descriptive"]
Direction = Literal["lower", "higher", "target", "none"]
PAPER = "Yuan, Li and Kuruoglu, MCNI"  # the source of several metrics
NEEDS = frozenset(
    {"draws", "disagreement", "variance", "distribution", "density", "probabilities", "noise", "scale", "baseline"}
    | {"probe", "sets", "truth", "law", "posterior"}
)


@dataclass(frozen=True)
class Metric:
    """One metric, declared once.

    `needs` is what a forecast must have: "draws" (at least two), "disagreement" (at least two
    draws, or a distribution of probabilities that a draw states), "variance" (at least two draws, or a variance that a
    draw states), "distribution" (a stated variance or quantiles, or points with a fitted noise), "density" (the same
    without point masses), "probabilities" (classification), "noise" (a fitted observation noise), "scale" (of the
    training targets), "baseline" (another method's value on the same split), "sets" (prediction sets beside the
    probabilities), "truth" (targets without noise, where the dataset knows them), "law" (the exact law of the targets,
    where the dataset states it), "posterior" (the exact posterior of the function, where there is one).
    `compute` returns NaN where the value is undefined; `score` then leaves the metric out. A metric with `relative_to`
    has no `compute`: it is the value of that metric minus the baseline method's value. A metric that needs a "probe"
    has none either: a probe (`bench.probes`) measures more than a forecast. A `signed` metric may be zero or negative,
    so that a share of it is meaningless. `highest` is the largest possible value; of a "probability" it is 1.

    A metric of direction "none" (family "descriptive") describes predictions: none of its values is better, so it is
    stored and shown, and never compared, ranked or gated. One that is `biased_in_draws` has an expectation that depends
    on the number of draws T, so methods are compared by it at equal T only. One that is `on_request` is computed only
    where a suite names it in `metrics`: a quantity that readers of one paper need, and no other study. `only_with`
    names the metric without which a better value means nothing: narrow intervals are good only if they cover, so
    reports show a width without calling any of its values the best.

    Raise the `version` where a change of `compute` changes values: 'uqbench rescore' then computes them again from
    stored predictions. The version of a metric in a plug-in file is the hash of the file.
    """

    name: str
    task: Task
    family: Family
    direction: Direction
    target: float | None
    unit: str
    needs: frozenset[str]
    formula: str
    source: str
    compute: Callable[[Forecast], float] | None
    relative_to: str | None = None
    signed: bool = False
    biased_in_draws: bool = False
    highest: float = math.inf
    on_request: bool = False
    version: int = 1
    only_with: str = ""

    def __post_init__(self) -> None:
        def reject(problem: str) -> UserError:
            return UserError(f"metric {self.name!r}: {problem}")

        if not re.fullmatch(r"[a-z][a-z0-9_]*(@[^@]+)?", self.name):
            raise reject("a name is snake_case (lower-case letters, digits and _), a condition comes after an @")
        check_name(self.name, "metric")
        for field, value, known in (
            ("task", self.task, get_args(Task)),
            ("family", self.family, get_args(Family)),
            ("direction", self.direction, get_args(Direction)),
        ):
            if value not in known:
                raise reject(f"{field} {value!r} is none of {', '.join(known)}")
        if (self.direction == "target") != (self.target is not None):
            raise reject("a target value goes with direction 'target' and with no other")
        if (self.direction == "none") != (self.family == "descriptive"):
            raise reject("direction 'none' and family 'descriptive' go together")
        if self.target is not None and not math.isfinite(self.target):
            raise reject(f"the target must be finite, got {self.target}")
        if not self.needs <= NEEDS:
            raise reject(f"unknown needs {sorted(self.needs - NEEDS)}, known are {sorted(NEEDS)}")
        if sum((self.compute is not None, self.relative_to is not None, "probe" in self.needs)) != 1:
            raise reject("give either compute, or relative_to, or the need 'probe'")
        if self.version < 1:
            raise reject(f"versions are numbers from 1 on, got {self.version}")
        if (self.relative_to is not None) != ("baseline" in self.needs):
            raise reject("relative_to and the need 'baseline' go together")

    def applies_to(self, forecast: Forecast) -> bool:
        """Whether the task matches and the forecast has everything that this metric needs."""
        return self.unmet(forecast) is None

    def unmet(self, forecast: Forecast) -> str | None:
        """Return why this metric does not apply to a forecast, or None."""
        if self.task not in ("any", forecast.task):
            return f"it is for {self.task}"
        return next((reason for need in sorted(self.needs) if (reason := _missing(need, forecast))), None)

    @property
    def has_better(self) -> bool:
        """Whether some values are better than others; false for a metric that only describes predictions."""
        return self.direction != "none"

    @property
    def draws_alone(self) -> bool:
        """Whether it judges targets by the spread of the draws, without the fitted observation noise.

        A method that states a variance of its own has that in its spread; for all others intervals from it are too
        narrow by the noise, however good the method is.
        """
        spread = bool(self.needs & {"draws", "variance"}) and "truth" not in self.needs
        return spread and self.task == "regression" and self.family == "calibration"

    @property
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        lowest = -math.inf if self.signed or self.relative_to else 0.0
        return lowest, min(self.highest, 1.0) if self.unit == "probability" else self.highest

    def loss(self, value: float) -> float:
        """Return `value` as a number of which lower is better: itself, its negative, or its distance to the target."""
        if not self.has_better:
            raise UserError(f"metric {self.name!r} describes predictions: no value of it is better than another")
        if self.direction == "target":
            return abs(value - (self.target or 0.0))
        return -value if self.direction == "higher" else value

    def better(self, a: float, b: float) -> bool:
        """Whether `a` is strictly better than `b`; never with NaN."""
        return self.loss(a) < self.loss(b)

    def relative(self, value: float, baseline: float) -> float:
        """Return `value` minus `baseline`, both of the metric `relative_to`; NaN when both are the same infinity."""
        if self.relative_to is None:
            raise UserError(f"metric {self.name!r} is not relative to a baseline")
        return value - baseline


def _missing(need: str, forecast: Forecast) -> str | None:
    """Return why a forecast lacks what a metric needs, or None."""
    if need in ("variance", "distribution", "density"):
        return _missing_distribution(need, forecast)
    has, reason = {
        "draws": (forecast.draw_count >= 2, "there is one draw"),
        "disagreement": (
            forecast.draw_count >= 2 or forecast.states_model,
            "there is one draw, which states no distribution of its probabilities",
        ),
        "probabilities": (forecast.task == "classification", "there are no probabilities"),
        "noise": (forecast.noise_variance is not None, "no observation noise was fitted"),
        "scale": (forecast.scale is not None, "the scale of the training targets is unknown"),
        "sets": (forecast.sets is not None, "there are no prediction sets"),
        "truth": (forecast.truth is not None, "the targets without noise are unknown"),
        "law": (forecast.law is not None, "the law of the targets is unknown"),
        "posterior": (forecast.posterior is not None, "the exact posterior is unknown"),
        "baseline": (False, "it is relative to a baseline"),
        "probe": (False, "a probe or a search measures it"),
    }[need]
    return None if has else reason


def _missing_distribution(need: str, forecast: Forecast) -> str | None:
    if forecast.task == "classification":
        return None if need == "variance" and forecast.draw_count >= 2 else f"these classes have no {need}"
    if need == "variance":
        if forecast.draw_count < 2 and forecast.stated_variance is None:
            return "one draw that states no variance has none"
        undefined = int(np.isnan(forecast.variance).sum())
        rows = f"{undefined} of {forecast.row_count} rows"
        return f"the stated variance of {rows} does not exist (alpha of at most 1, or infinite)" if undefined else None
    if forecast.distribution is None:
        return "points have no distribution without a fitted or stated noise"
    if need == "density" and not forecast.distribution.parts.has_density:
        return "the stated quantiles have no density (flat tails, or equal quantiles)"
    return None


@dataclass(frozen=True)
class Template:
    """The fields that several metrics share: call it with those of one metric, then name the source of its value.

    `nat("nll", "mean_i -log ...", "Gal and Ghahramani", needs="noise").by(lambda forecast: ...)`.
    """

    task: Task
    family: Family
    unit: str
    direction: Direction = "lower"
    needs: str = ""  # separated by spaces
    signed: bool = False
    target: float | None = None
    biased_in_draws: bool = False
    highest: float = math.inf
    on_request: bool = False
    version: int = 1
    only_with: str = ""
    name: str = ""
    formula: str = ""
    source: str = ""

    def __call__(self, name: str, formula: str, source: str, *, unit: str = "", needs: str = "") -> "Template":
        """Return a copy for one metric; its unit and needs are the shared ones unless given."""
        unit, needs = unit or self.unit, needs or self.needs
        return replace(self, name=name, formula=formula, source=source, unit=unit, needs=needs)

    def up_to(self, highest: float) -> "Template":
        """Return a copy for a metric whose largest possible value is `highest`."""
        return replace(self, highest=highest)

    def by(self, compute: Callable[[Forecast], float]) -> Metric:
        """Return the metric whose value `compute` returns."""
        return self._metric(compute)

    def by_probe(self) -> Metric:
        """Return the metric that a probe measures (`bench.probes`)."""
        return self._metric(None, "probe")

    def relative_to(self, name: str) -> Metric:
        """Return the metric that is the difference to the baseline method's value of another."""
        return self._metric(None, "baseline", name)

    def _metric(self, compute: Callable[[Forecast], float] | None, need: str = "", other: str | None = None) -> Metric:
        needs, shared = frozenset(f"{self.needs} {need}".split()), (self.task, self.family, self.direction, self.target)
        flags = (self.signed, self.biased_in_draws, self.highest, self.on_request)
        about = (self.name, *shared, self.unit, needs, self.formula, self.source)
        return Metric(*about, compute, other, *flags, version=self.version, only_with=self.only_with)
