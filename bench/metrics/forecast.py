"""The predictions of a method for one test set: the only argument of every declared metric."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.metrics.arrays import (
    BoolArray,
    FloatArray,
    LabelArray,
    float_array,
    label_array,
    numeric_array,
    require_distributions,
    require_finite,
    set_array,
)
from bench.metrics.class_predictions import ClassPrediction, Logits, Sets
from bench.metrics.mixture import LEVELS, Mixture
from bench.metrics.predictions import RegressionPrediction, as_prediction
from bench.metrics.sorting import sort_by_score

if TYPE_CHECKING:
    from bench.metrics.law_comparison import LawComparison

Prediction = RegressionPrediction | ClassPrediction  # what a method may state about its rows


@dataclass(frozen=True)
class TargetScale:
    """Mean, standard deviation and range of the training targets, in original units."""

    mean: float
    std: float
    minimum: float
    maximum: float

    def __post_init__(self) -> None:
        values = (self.mean, self.std, self.minimum, self.maximum)
        if not all(np.isfinite(value) for value in values):
            raise UserError(f"scale: mean, std, minimum, maximum must be finite, got {values}")
        if self.std < 0 or self.maximum < self.minimum:
            raise UserError(f"scale: std must not be negative nor maximum below minimum, got {values}")


@dataclass(frozen=True, eq=False)
class Forecast:
    """The predictions of a method for one test set with everything that a metric may use. Numpy arrays only.

    With T draws of N rows (and C classes):

    - `task`: "regression" or "classification".
    - `observed`: [N], floats in original units, or integer class labels 0..C-1.
    - `draws`: [T, N] in original units, or [T, N, C] probabilities that sum to 1 within 1e-3 (not normalised).
    - `draw_variance`: [T, N], the noise variance each draw states by itself (heteroscedastic heads), original units
      squared.
    - `noise_variance`: the fitted observation noise 1/tau, original units squared (see `fit_noise_variance`).
    - `scale`: of the training targets, for standardised and min-max units.
    - `sets`: [N, C] booleans, the classes of each row's prediction set.
    - `truth`: [N], the targets without noise, where the dataset knows them.
    - `law`: one draw that is the exact law of the targets, where the dataset states it.
    - `posterior`: one draw with the exact posterior of the function as its model variance, where there is one.
    - `stated`: what the draws state where that is more than points, points with a variance, or probabilities; write
      `Forecast.of(prediction, observed)`, which takes the other arrays from it.

    Construction checks all of it and raises UserError; the properties are computed once, in float64.
    """

    task: Literal["regression", "classification"]
    observed: NDArray[Any]
    draws: NDArray[Any]
    draw_variance: NDArray[Any] | None = None
    noise_variance: float | None = None
    scale: TargetScale | None = None
    sets: NDArray[np.bool_] | None = None
    stated: Prediction | None = None
    truth: NDArray[Any] | None = None
    law: Prediction | None = None
    posterior: RegressionPrediction | None = None

    @classmethod
    def of(
        cls,
        prediction: Prediction,
        observed: NDArray[Any],
        noise_variance: float | None = None,
        scale: TargetScale | None = None,
        truth: NDArray[Any] | None = None,
        law: Prediction | None = None,
        posterior: RegressionPrediction | None = None,
    ) -> Self:
        """Return the forecast that is the equal mixture of the T draws of a prediction."""
        if isinstance(prediction, ClassPrediction):
            sets, draws = prediction.members if isinstance(prediction, Sets) else None, prediction.probabilities
            return cls("classification", observed, draws, None, noise_variance, scale, sets, prediction, law=law)
        common = (observed, prediction.centre, None, noise_variance, scale, None, prediction, truth)
        return cls("regression", *common, law, posterior)

    def __post_init__(self) -> None:
        if self.task == "regression":
            draws = numeric_array(self.draws, "draws", (None, None))
            require_finite(draws, "draws")
            observed: NDArray[Any] = float_array(self.observed, "observed", (draws.shape[1],))
            self._check_variances(draws.shape)
            if self.sets is not None:
                raise UserError("sets belong to classification, not to regression")
            if self.truth is not None:
                object.__setattr__(self, "truth", float_array(self.truth, "truth", (draws.shape[1],)))
        elif self.task == "classification":
            draws = numeric_array(self.draws, "draws", (None, None, None))
            require_distributions(draws, "draws")
            observed = label_array(self.observed, draws.shape[1], draws.shape[2])
            if self.draw_variance is not None or self.noise_variance is not None:
                raise UserError("draw_variance and noise_variance belong to regression, not to classification")
            if self.sets is not None:
                object.__setattr__(self, "sets", set_array(self.sets, draws.shape[1], draws.shape[2]))
        else:
            raise UserError(f"task must be 'regression' or 'classification', got {self.task!r}")
        object.__setattr__(self, "draws", draws)
        object.__setattr__(self, "observed", observed)
        for name, known in (("law", self.law), ("posterior", self.posterior)):
            self._check_known(name, known)

    def _check_variances(self, shape: tuple[int, ...]) -> None:
        if self.stated is not None and self.draw_variance is not None:
            raise UserError("draw_variance: a stated prediction has its own variance; give one of the two")
        if self.draw_variance is not None:
            stated = float_array(self.draw_variance, "draw_variance", shape)
            if stated.min() < 0:
                raise UserError(f"draw_variance: lowest value is {float(stated.min()):.6g}, must not be negative")
            object.__setattr__(self, "draw_variance", stated)
        if self.noise_variance is not None and not (np.isfinite(self.noise_variance) and self.noise_variance >= 0):
            raise UserError(f"noise_variance must be finite and not negative, got {self.noise_variance}")

    def _check_known(self, name: str, known: Prediction | None) -> None:
        if known is None:
            return
        if isinstance(known, ClassPrediction) != (self.task == "classification"):
            raise UserError(f"{name}: a {type(known).__name__} does not belong to a {self.task}")
        if (known.draw_count, known.row_count) != (1, self.row_count):
            found = f"{known.draw_count} of {known.row_count} rows"
            raise UserError(f"{name}: expected one draw of {self.row_count} rows, got {found}")

    def at_rows(self, kept: BoolArray) -> "Forecast":
        """Return the forecast at some of the rows."""
        truth = None if self.truth is None else self.truth[kept]
        law = None if self.law is None else self.law.rows(kept)
        posterior = None if self.posterior is None else self.posterior.rows(kept)
        observed = self.observed[kept]
        if self.stated is not None:
            stated = self.stated.rows(kept)
            return Forecast.of(stated, observed, self.noise_variance, self.scale, truth, law, posterior)
        draws, sets = self.draws[:, kept], None if self.sets is None else self.sets[kept]
        variance = None if self.draw_variance is None else self.draw_variance[:, kept]
        arrays = (observed, draws, variance, self.noise_variance, self.scale, sets, None, truth)
        return Forecast(self.task, *arrays, law, posterior)

    @property
    def draw_count(self) -> int:
        """T, the number of draws."""
        return int(self.draws.shape[0])

    @property
    def row_count(self) -> int:
        """N, the number of test rows."""
        return int(self.draws.shape[1])

    @cached_property
    def mean(self) -> FloatArray:
        """The prediction: the mean over draws, [N] or [N, C]."""
        single = self.draw_count == 1
        mean: FloatArray = (
            self.draws[0].astype(np.float64, copy=False) if single else self.draws.mean(axis=0, dtype=np.float64)
        )
        return mean

    @cached_property
    def spread(self) -> FloatArray:
        """The unbiased (T - 1) variance over draws, [N] or [N, C]; NaN everywhere when T is 1."""
        if self.draw_count == 1:
            return np.full(self.draws.shape[1:], np.nan)
        # Measured from the first draw: equal draws then have a variance of exactly 0, whatever their mean rounds to.
        shifted = np.subtract(self.draws, self.draws[0], dtype=np.float64)
        spread: FloatArray = shifted.var(axis=0, ddof=1)
        return spread

    @cached_property
    def prediction(self) -> RegressionPrediction:
        """What the draws of a regression state: `stated`, or points, or normals with the stated noise."""
        if self.task != "regression":
            raise UserError(f"prediction is defined for regression, this forecast is of {self.task}")
        if isinstance(self.stated, RegressionPrediction):
            return self.stated
        return as_prediction(self.draws, self.draw_variance)

    @cached_property
    def stated_variance(self) -> FloatArray | None:
        """The mean over draws of the variance that each states, both parts; None where they state none."""
        stated = self.prediction.variance if self.stated is not None else self.draw_variance
        mean: FloatArray | None = None if stated is None else stated.mean(axis=0)
        return mean

    @cached_property
    def variance(self) -> FloatArray:
        """The spread plus the mean of the stated variances (law of total variance).

        With one draw it is the variance that the draw states; NaN everywhere where it states none, and in rows whose
        stated variance does not exist.
        """
        if self.task != "regression" or self.stated_variance is None:
            return self.spread
        return self.stated_variance if self.draw_count == 1 else self.spread + self.stated_variance

    @cached_property
    def predictive_variance(self) -> FloatArray:
        """Variance of an observation: `variance` plus the fitted noise, which is added to a stated noise, too.

        One draw has no spread: the variance is then its observation noise, plus the variance it states.
        """
        if self.task != "regression" or self.noise_variance is None:
            raise UserError("predictive_variance needs a regression forecast with a fitted noise_variance")
        if self.draw_count > 1:
            return self.variance + self.noise_variance
        stated = 0.0 if self.stated_variance is None else self.stated_variance
        return np.full(self.row_count, self.noise_variance) + stated

    @cached_property
    def model_part(self) -> FloatArray:
        """The part of the variance that is the model's: the spread plus the mean of what the draws state as such."""
        spread = self.spread if self.draw_count > 1 else np.zeros(self.row_count)
        stated = self.prediction.model_variance
        return spread if stated is None else spread + stated.mean(axis=0)

    @cached_property
    def noise_part(self) -> FloatArray:
        """The part that is noise: the mean of what the draws state as such, or else the fitted noise, or else 0."""
        stated = self.prediction.noise_variance
        if stated is None:
            return np.full(self.row_count, self.noise_variance or 0.0)
        mean: FloatArray = stated.mean(axis=0)
        return mean

    @cached_property
    def total_variance(self) -> FloatArray:
        """`model_part` plus `noise_part`: the variance of `distribution`, with the unbiased spread."""
        return self.model_part + self.noise_part

    @property
    def states_model(self) -> bool:
        """Whether one draw of class probabilities states by itself how uncertain they are (a Dirichlet)."""
        return isinstance(self.stated, ClassPrediction) and self.stated.states_model

    @cached_property
    def distribution(self) -> Mixture | None:
        """The equal mixture of what the draws state, with the fitted noise where they state none; None for points."""
        stated = self.prediction
        if self.noise_variance is not None:
            stated = stated.with_noise(self.noise_variance)
        return Mixture(stated) if stated.has_distribution else None

    @cached_property
    def quantiles(self) -> FloatArray:
        """The quantiles [23, N] of `distribution` at the levels `bench.metrics.mixture.LEVELS`."""
        found = self._require_distribution("quantiles").quantile(LEVELS)
        # Of values near 1e300 the last bits may put two quantiles in the wrong order.
        ascending: FloatArray = np.maximum.accumulate(found, axis=0)
        return ascending

    @cached_property
    def pit(self) -> FloatArray:
        """The probability integral transform F_i(y_i) of `distribution`, [N]."""
        return self._require_distribution("pit").cdf(self.observed)

    @cached_property
    def against_law(self) -> "LawComparison":
        """The forecast compared with the exact law of the targets."""
        from bench.metrics.law_comparison import LawComparison

        return LawComparison(self)

    @cached_property
    def geometric_mean(self) -> FloatArray:
        """The softmax of the mean logits, [N, C]: the geometric mean of the draws' probabilities, made to sum to 1.

        Logits are log p up to a constant, so probabilities are enough. One that was rounded to 0 counts as the smallest
        number of its type.
        """
        self._require_classes("geometric_mean")
        logs: FloatArray = np.zeros(self.draws.shape[1:])
        if isinstance(self.stated, Logits):
            logs += self.stated.values.mean(axis=0)
        else:
            kind = self.draws.dtype if self.draws.dtype.kind == "f" else np.dtype(np.float64)
            floor = float(np.finfo(kind).smallest_subnormal)
            for draw in self.draws:  # one at a time: the float64 copy is of one draw and not of all
                logs += np.log(np.maximum(draw.astype(np.float64), floor))
            logs /= self.draw_count
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares: FloatArray = weights / weights.sum(axis=1, keepdims=True)
        return shares

    @cached_property
    def predicted(self) -> LabelArray:
        """The class of the highest mean probability; of equal ones the first."""
        self._require_classes("predicted")
        best: LabelArray = self.mean.argmax(axis=1)
        return best

    @cached_property
    def confidence(self) -> FloatArray:
        """The highest mean probability."""
        self._require_classes("confidence")
        return self.mean[np.arange(self.row_count), self.predicted]

    @cached_property
    def correct(self) -> BoolArray:
        """Whether the predicted class is the observed one."""
        hits: BoolArray = self.predicted == self.observed
        return hits

    @cached_property
    def loss(self) -> FloatArray:
        """The loss that selective risk averages: squared error, or 1 for a wrong class and 0 for a right one."""
        if self.task == "classification":
            return (~self.correct).astype(np.float64)
        squared: FloatArray = np.square(self.mean - self.observed)
        return squared

    @cached_property
    def uncertainty(self) -> FloatArray:
        """The score that selective metrics sort by: the variance, or 1 - confidence."""
        return 1.0 - self.confidence if self.task == "classification" else self.variance

    @cached_property
    def sorted_loss(self) -> FloatArray:
        """The losses by ascending uncertainty, averaged over ties (see `sort_by_score`)."""
        return sort_by_score(self.uncertainty, self.loss)

    def _require_distribution(self, name: str) -> Mixture:
        if self.distribution is None:
            raise UserError(f"{name}: points have no distribution without a fitted or stated noise")
        return self.distribution

    def _require_classes(self, name: str) -> None:
        if self.task != "classification":
            raise UserError(f"{name} is defined for classification, this forecast is of {self.task}")
