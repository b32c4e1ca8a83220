"""Adaptive prediction sets: the most likely classes, as many as held-out rows needed, randomised at the last one.

    C(x) = { y : s(x, y, U) <= t },   s(x, y, u) = P(classes above y) + u p(y | x) + penalty max(place of y - free, 0)
    t = the k-th smallest s(x_i, y_i, U_i),   k = ceil((n + 1) coverage),   U ~ Uniform(0, 1) for each row

Romano, Sesia and Candès 2020, "Classification with Valid and Adaptive Coverage", arXiv:2006.02544. With a penalty:
Angelopoulos, Bates, Malik and Jordan 2021, "Uncertainty Sets for Image Classifiers using Conformal Prediction",
arXiv:2009.14193 (RAPS), whose sets are smaller. Over exchangeable rows coverage is at least `coverage`, and at most
1 / (n + 1) more. A set may be empty; where n rows are too few, it has all classes. The probabilities are the wrapped
method's, the mean over its draws. Classification only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.api import Array, HeldOut, Look, PluginSpec, Prediction, Problem, Sets, Wrapper
from bench.methods import _conformal as conformal


@dataclass(frozen=True)
class Calibration:
    """The largest score of a class in a set, and the number of rows that it is from."""

    threshold: float
    rows: int


@dataclass(frozen=True)
class AdaptiveSets(Wrapper):
    """One set of classes for each row, beside the probabilities."""

    look = Look("brown", "-.", "h")

    method: PluginSpec = PluginSpec("deterministic")  # the method that is wrapped
    coverage: float = 0.9  # how often a set has the label
    penalty: float = 0.0  # of RAPS, for each place below the free ones; 0: adaptive prediction sets
    free: int = 1  # classes without a penalty

    def __post_init__(self) -> None:
        conformal.check_coverages([self.coverage])
        if self.penalty < 0 or self.free < 0:
            raise ValueError(f"penalty and free must not be negative, got {self.penalty} and {self.free}")

    def skip(self, problem: Problem) -> str | None:
        """Return why numbers have no sets of classes."""
        return None if problem.task == "classification" else "adaptive sets are of classes, not of numbers"

    def calibrate(self, held: Sequence[HeldOut], generator: np.random.Generator) -> Calibration:
        """Return the threshold of the scores."""
        scores = self._scores(held[0].prediction, generator)
        own = scores[np.arange(len(scores)), held[0].observed]
        return Calibration(float(conformal.radii(own, [self.coverage])[0]), len(own))

    def predict(
        self, state: Calibration, predictions: Sequence[Prediction], generator: np.random.Generator
    ) -> Prediction:
        """Return the sets beside the probabilities."""
        inner = conformal.classes(predictions[0])
        return Sets(self._scores(inner, generator) <= state.threshold, inner)

    def doubts(self, state: Calibration) -> Sequence[str]:
        """Say that the calibration rows are too few."""
        return conformal.too_few(state.rows, [self.coverage], "its sets have all classes")

    def _scores(self, prediction: Prediction, generator: np.random.Generator) -> Array:
        probabilities = conformal.classes(prediction).probabilities.mean(axis=0, dtype=np.float64)
        return conformal.adaptive_scores(probabilities, generator.random(len(probabilities)), self.penalty, self.free)
