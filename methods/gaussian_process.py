"""Gaussian process regression with a squared exponential kernel, a length scale per feature and white noise.

    y = f(x) + eps,   f ~ GP(0, k),   eps ~ N(0, n)
    k(x, x') = s exp(-sum_j (x_j - x'_j)^2 / (2 l_j^2))
    f | data at x ~ N(k_x^T (K + n I)^-1 y,  k(x, x) - k_x^T (K + n I)^-1 k_x)

Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", https://gaussianprocess.org/gpml, chapters 2 and
5. The variance of f is the model's part and n the noise. s, l and n maximise the marginal likelihood of the training
rows. Through scikit-learn.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from bench.api import Array, Estimator, Examples, Look, Normal, Prediction, Problem


@dataclass(frozen=True)
class GaussianProcess(Estimator):
    """One prediction, a normal with both parts of its variance; the cost grows with the cube of the training rows."""

    restarts: int = 0  # of the optimiser, from random kernels, beside the start from unit scales
    most_rows: int = 3000  # training rows that it accepts

    look = Look("brown", "-", "D")

    def __post_init__(self) -> None:
        if self.restarts < 0 or self.most_rows < 1:
            raise ValueError(
                f"restarts must not be negative and most_rows be at least 1, got {self.restarts}, {self.most_rows}"
            )

    def skip(self, problem: Problem) -> str | None:
        """Skip classes, images and more rows than the cubic cost allows."""
        if problem.task == "classification":
            return "classes have no Gaussian likelihood; use it on regression"
        if len(problem.inputs) > 1:
            return "a distance of images says little; use it on rows of numbers"
        if problem.rows > self.most_rows:
            return f"{problem.rows:,} training rows are more than most_rows = {self.most_rows:,}; the cost is cubic"
        return None

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        """Return the process with the kernel of the highest marginal likelihood found."""
        kernel = ConstantKernel(1.0) * RBF(np.ones(train.x.shape[1])) + WhiteKernel(0.1, (1e-6, 1e2))
        process = GaussianProcessRegressor(kernel, n_restarts_optimizer=self.restarts, random_state=seed)
        with warnings.catch_warnings():
            # A length scale at its bound belongs to a feature that does not matter.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return process.fit(train.x.astype(np.float64), train.y.astype(np.float64))

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        """Return the posterior of f, and the noise beside it."""
        mean, deviation = state.predict(x.astype(np.float64), return_std=True)
        noise = state.kernel_.k2.noise_level
        # The standard deviation of scikit-learn is that of an observation. Rounding may make the rest negative.
        latent = np.maximum(deviation**2 - noise, 0.0)
        return Normal(mean[None], latent[None], np.full((1, len(x)), noise))
