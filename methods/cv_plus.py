"""CV+: intervals from the errors of K networks, each at the part of the training rows that it did not see.

    C(x) = [the j-th smallest m_-i(x) - R_i,  the k-th smallest m_-i(x) + R_i],   R_i = |y_i - m_-i(x_i)|
    j = floor((n + 1) alpha),   k = ceil((n + 1) (1 - alpha))

Barber, Candès, Ramdas and Tibshirani 2021, "Predictive Inference with the Jackknife+" (Annals of Statistics),
arXiv:1905.02928. m_-i is the mean of the wrapped method, trained without the fold of row i. All rows train and all
calibrate, at K times the cost. Over exchangeable rows coverage is at least 1 - 2 alpha - sqrt(2 / n), and
near 1 - alpha in practice. The folds are of all training rows of the split; each sets the suite's
share of its rows aside for early stopping. Regression only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.api import Array, HeldOut, Look, PluginSpec, Prediction, Problem, Wrapper
from bench.methods import _conformal as conformal

BLOCK = 2**22  # numbers: rows of the prediction times calibration rows


@dataclass(frozen=True)
class CVPlus(Wrapper):
    """Central intervals of several coverages at once, around the mean of the K networks."""

    title = "CV+"
    look = Look("sky", "-.", "^")

    method: PluginSpec = PluginSpec("deterministic")  # the method that is wrapped
    folds: int = 5  # K: how often the method is trained
    coverages: tuple[float, ...] = conformal.COVERAGES  # of the central intervals, ascending

    def __post_init__(self) -> None:
        conformal.check_coverages(self.coverages)
        if self.folds < 2:
            raise ValueError(f"folds must be at least 2, got {self.folds}")

    def skip(self, problem: Problem) -> str | None:
        """Return why classes have no residuals."""
        return None if problem.task == "regression" else "CV+ intervals are of numbers, not of classes"

    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> list[Array]:
        """Return the residuals of each fold."""
        return [np.abs(part.observed - _mean(part.prediction)) for part in held]

    def predict(
        self, state: list[Array], predictions: Sequence[Prediction], generator: np.random.Generator
    ) -> Prediction:
        """Return the intervals as quantiles."""
        means = np.stack([_mean(prediction) for prediction in predictions], axis=1)
        residuals, folds = np.concatenate(state), np.repeat(np.arange(len(state)), [len(part) for part in state])
        step = max(1, BLOCK // len(residuals))
        blocks = [means[begin : begin + step, folds] for begin in range(0, len(means), step)]
        found = [conformal.cross_intervals(block, residuals, self.coverages) for block in blocks]
        lower, upper = (np.concatenate(bounds) for bounds in zip(*found, strict=True))
        centre = means.mean(axis=1)
        return conformal.as_quantiles(lower, centre, upper, centre, self.coverages)

    def doubts(self, state: list[Array]) -> Sequence[str]:
        """Say for which coverages the rows are too few."""
        return conformal.too_few(sum(map(len, state)), self.coverages)


def _mean(prediction: Prediction) -> Array:
    mean: Array = conformal.regression(prediction).centre.mean(axis=0)
    return mean
