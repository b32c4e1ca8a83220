"""Split conformal prediction: intervals around a prediction, as wide as its errors on held-out rows were.

    C(x) = [m(x) - r s(x), m(x) + r s(x)]
    r = the k-th smallest |y_i - m(x_i)| / s(x_i),   k = ceil((n + 1) (1 - alpha))

Papadopoulos, Proedrou, Vovk and Gammerman 2002, "Inductive Confidence Machines for Regression" (ECML),
doi:10.1007/3-540-36755-1_29; Lei, G'Sell, Rinaldo, Tibshirani and Wasserman 2018, "Distribution-Free Predictive
Inference for Regression", arXiv:1604.04173. m is the mean of the wrapped method and s = 1, or with `scaled` the
standard deviation that its draws have and state. Over exchangeable calibration and test rows, coverage is at least 1 -
alpha, and at most 1 / (n + 1) more where no two scores are equal. Where n rows are too few for a coverage, its interval
is infinite. Regression only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.api import Array, HeldOut, Look, PluginSpec, Prediction, Problem, RegressionPrediction, Wrapper
from bench.methods import _conformal as conformal


@dataclass(frozen=True)
class Calibration:
    """The radius of each coverage, and the number of rows that it is from."""

    radii: Array
    rows: int


@dataclass(frozen=True)
class SplitConformal(Wrapper):
    """Central intervals of several coverages at once, each valid by itself."""

    look = Look("blue", "-.", "s")

    method: PluginSpec = PluginSpec("deterministic")  # the method that is wrapped
    coverages: tuple[float, ...] = conformal.COVERAGES  # of the central intervals, ascending
    scaled: bool = False  # intervals in proportion to the method's standard deviation

    def __post_init__(self) -> None:
        conformal.check_coverages(self.coverages)

    def skip(self, problem: Problem) -> str | None:
        """Return why classes have no residuals."""
        return None if problem.task == "regression" else "split conformal intervals are of numbers, not of classes"

    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Calibration:
        """Return the radius of each coverage."""
        inner = conformal.regression(held[0].prediction)
        scores = np.abs(held[0].observed - inner.centre.mean(axis=0)) / self._scale(inner)
        return Calibration(conformal.radii(scores, self.coverages), len(scores))

    def predict(
        self, state: Calibration, predictions: Sequence[Prediction], generator: np.random.Generator
    ) -> Prediction:
        """Return the intervals around the mean as quantiles."""
        inner = conformal.regression(predictions[0])
        mean = inner.centre.mean(axis=0)
        reach = np.broadcast_to(self._scale(inner), mean.shape)[:, None] * state.radii
        return conformal.as_quantiles(mean[:, None] - reach, mean, mean[:, None] + reach, mean, self.coverages)

    def doubts(self, state: Calibration) -> Sequence[str]:
        """Say for which coverages the calibration rows are too few."""
        return conformal.too_few(state.rows, self.coverages)

    def _scale(self, inner: RegressionPrediction) -> Array:
        return conformal.deviation(inner) if self.scaled else np.ones(1)
