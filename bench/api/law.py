"""The exact law of the targets of a generated dataset. Nothing here loads torch."""

from dataclasses import dataclass

from bench.api.dataset import Array
from bench.metrics import ClassPrediction, Prediction


class Law:
    """p(y | x) of a dataset, at any rows: subclass it as a frozen dataclass of plain data, which can be pickled.

    A dataset that knows it gives it to its splits (`Split.law`). Metrics against the truth are computed there, and
    methods such as the oracle get it, in training units, as `Examples.law`.
    """

    def at(self, x: Array) -> Prediction:
        """Return the law at rows [N, *inputs] as one draw.

        A real target has `Normal` (with a noise variance alone), `NormalMixture`, or `NormalInverseGamma` as a Student
        t (nu of at least 1e9: its mean is known); classes have `Probabilities`.
        """
        raise NotImplementedError

    def given(self, x: Array, y: Array) -> "Law | None":
        """Return the posterior predictive law given rows and targets; None where it has no closed form.

        Its `at` states the variance of the function as model variance beside the noise.
        """
        return None


@dataclass(frozen=True, eq=False)
class ScaledLaw(Law):
    """A law in training units: inputs and targets are (value - mean) / std."""

    law: Law
    mean: Array
    std: Array
    target_mean: float
    target_std: float

    def at(self, x: Array) -> Prediction:
        """Return the law at rows in training units."""
        stated = self.law.at(x * self.std + self.mean)
        if isinstance(stated, ClassPrediction):
            return stated
        return stated.affine(1 / self.target_std, -self.target_mean / self.target_std)

    def given(self, x: Array, y: Array) -> Law | None:
        """Return the posterior predictive law, in training units, too."""
        found = self.law.given(x * self.std + self.mean, y * self.target_std + self.target_mean)
        return found and ScaledLaw(found, self.mean, self.std, self.target_mean, self.target_std)
