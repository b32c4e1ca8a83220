"""Laws p(y | x) of generated datasets: noise around a function, Gaussian weights, overlapping classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bench.api import (
    Array,
    Dataset,
    Law,
    Normal,
    NormalInverseGamma,
    NormalMixture,
    Prediction,
    Probabilities,
    RegressionPrediction,
    Split,
)

Noise = Literal["constant", "growing", "skewed", "heavy-tailed", "bimodal"]
DEGREES = 3.0  # of the Student t with heavy tails
GAP = 0.6  # half of its width
KNOWN = 1e12  # nu of a normal-inverse-gamma whose mean is known
# Means and standard deviations of equal mixtures of normals, which have the mean 0; divided by their deviation below.
SHAPES: Mapping[str, tuple[Array, Array]] = {
    "skewed": (np.array([-0.9, -0.6, 0.0, 1.5]), np.array([0.25, 0.35, 0.6, 1.1])),
    "bimodal": (np.array([-1.0, 1.0]), np.array([0.3, 0.3])),
}


@dataclass(frozen=True)
class NoisyFunction(Law):
    """y = f(x) + s(x) e, with E e = 0 and var e = 1; f and s depend on the mean of sines of all inputs."""

    noise: Noise
    size: float  # of the noise: its standard deviation, at the middle of the inputs where it grows

    def at(self, x: Array) -> Prediction:
        """Return the law."""
        mean, std = self.function(x)[None], self.deviation(x)[None]
        if self.noise in SHAPES:
            means, deviations = SHAPES[self.noise]
            whole = np.sqrt(np.square(deviations).mean() + means.var())
            parts = mean[..., None] + std[..., None] * means / whole
            return NormalMixture(parts, np.square(std[..., None] * deviations / whole))
        if self.noise == "heavy-tailed":
            alpha = np.full_like(mean, DEGREES / 2)
            return NormalInverseGamma(mean, np.full_like(mean, KNOWN), alpha, np.square(std) * (alpha - 1))
        return Normal(mean, noise_variance=np.square(std))

    def function(self, x: Array) -> Array:
        """Return f(x): the mean over inputs of sin(2 x_j) + x_j / 2, times the root of their number."""
        waves: Array = (np.sin(2 * x) + 0.5 * x).sum(axis=1) / np.sqrt(x.shape[1])
        return waves

    def deviation(self, x: Array) -> Array:
        """Return s(x): constant, or growing with the first input from a third of its size to three times of it."""
        if self.noise == "growing":
            grown: Array = self.size * 3.0 ** (np.clip(x[:, 0], -2.0, 2.0) / 2)
            return grown
        return np.full(len(x), self.size)


@dataclass(frozen=True, eq=False)
class GaussianWeights(Law):
    """y = w . phi(x) + e with known weights, whose prior was N(0, I); the posterior is exact.

    phi is one and the inputs, or, with frequencies [F], the Fourier series of a Gaussian process of each input:
    sum_j k(x_j, x'_j) with k(x, x') = sum_f s_f^2 cos(omega_f (x - x')).
    """

    weights: Array
    noise: float  # standard deviation
    frequencies: Array | None = None
    sizes: Array | None = None  # [F], the standard deviation of each wave

    def at(self, x: Array) -> Prediction:
        """Return the law."""
        mean = (self.features(x) @ self.weights)[None]
        return Normal(mean, noise_variance=np.full_like(mean, self.noise**2))

    def given(self, x: Array, y: Array) -> Law:
        """Return the posterior predictive law (Bishop, Pattern Recognition and Machine Learning, 2006, section 3.3)."""
        features = self.features(x)
        precision = np.eye(features.shape[1]) + features.T @ features / self.noise**2
        root = np.linalg.cholesky(precision)
        mean = np.linalg.solve(root.T, np.linalg.solve(root, features.T @ y / self.noise**2))
        return PosteriorWeights(self, mean, root)

    def features(self, x: Array) -> Array:
        """Return phi(x), [N, features]."""
        x = np.asarray(x, dtype=np.float64)
        if self.frequencies is None or self.sizes is None:
            return np.column_stack([np.ones(len(x)), x])
        angles = x[:, :, None] * self.frequencies
        waves = np.concatenate([self.sizes * np.cos(angles), self.sizes * np.sin(angles)], axis=2)
        return np.asarray(waves.reshape(len(x), -1) / np.sqrt(x.shape[1]))


@dataclass(frozen=True, eq=False)
class PosteriorWeights(Law):
    """The posterior predictive of Gaussian weights N(mean, (root root^T)^-1)."""

    prior: GaussianWeights
    mean: Array
    root: Array  # of the precision

    def at(self, x: Array) -> Prediction:
        """Return a normal with the variance of the function as model variance."""
        features = self.prior.features(x)
        mean = (features @ self.mean)[None]
        variance = np.square(np.linalg.solve(self.root, features.T)).sum(axis=0)[None]
        return Normal(mean, variance, np.full_like(mean, self.prior.noise**2))


@dataclass(frozen=True, eq=False)
class NormalClasses(Law):
    """Classes of equal share with inputs N(centre_c, I); a share of the labels is replaced by any class at random.

    Bayes' rule gives p(c | x) as the softmax of -|x - centre_c|^2 / 2; with noise q it is (1 - q) p(c | x) + q / C.
    """

    centres: Array  # [C, inputs]
    label_noise: float = 0.0

    def at(self, x: Array) -> Prediction:
        """Return the class probabilities."""
        x = np.asarray(x, dtype=np.float64)
        logits = x @ self.centres.T - np.square(self.centres).sum(axis=1) / 2
        clean = np.exp(logits - logits.max(axis=1, keepdims=True))
        clean /= clean.sum(axis=1, keepdims=True)
        return Probabilities(((1 - self.label_noise) * clean + self.label_noise / len(self.centres))[None])


def draw_targets(law: Law, x: Array, random: np.random.Generator) -> Array:
    """Return targets of the rows, drawn from their law."""
    stated = law.at(x)
    if isinstance(stated, Probabilities):
        below = stated.probabilities[0].cumsum(axis=1)
        labels: Array = (random.random((len(x), 1)) > below[:, :-1]).sum(axis=1)
        return labels
    if isinstance(stated, NormalMixture):
        part = random.integers(stated.means.shape[-1], size=len(x))
        rows = np.arange(len(x))
        return np.asarray(random.normal(stated.means[0, rows, part], np.sqrt(stated.variances[0, rows, part])))
    if isinstance(stated, NormalInverseGamma):
        return np.asarray(stated.mean[0] + stated.scale[0] * random.standard_t(stated.degrees[0]))
    assert isinstance(stated, Normal), "all other laws are normal"
    return np.asarray(random.normal(stated.mean[0], stated.std[0]))


def known_split(law: Law, x: Array, test_x: Array, random: np.random.Generator, groups: Array | None = None) -> Split:
    """Return a split whose targets are drawn from a law that it states."""
    y, test_y = draw_targets(law, x, random), draw_targets(law, test_x, random)
    stated = law.at(test_x)
    if isinstance(stated, Probabilities):
        classes = stated.probabilities.shape[-1]
        return Split("classification", x, y, test_x, test_y, classes, test_groups=groups, law=law)
    assert isinstance(stated, RegressionPrediction), "a law of classes states probabilities"
    return Split("regression", x, y, test_x, test_y, test_truth=stated.centre[0], test_groups=groups, law=law)


def inputs_with_gap(random: np.random.Generator, rows: int, test_rows: int, inputs: int) -> tuple[Array, Array, Array]:
    """Return training inputs that leave a gap, test inputs that are everywhere, and where each of these is.

    Training rows have their first input in [-2, -0.6] or [0.6, 2]; that of test rows is in [-3, 3].
    """
    x, test_x = random.uniform(-2, 2, (rows, inputs)), random.uniform(-2, 2, (test_rows, inputs))
    x[:, 0] = random.choice([-1.0, 1.0], rows) * random.uniform(GAP, 2, rows)
    test_x[:, 0] = random.uniform(-3, 3, test_rows)
    away = np.abs(test_x[:, 0])
    groups = np.where(away < GAP, "gap", np.where(away > 2, "beyond", "data"))
    return x, test_x, groups


def inputs_for(
    random: np.random.Generator, rows: int, test_rows: int, inputs: int, gap: bool
) -> tuple[Array, Array, Array | None]:
    """Return training and test inputs uniform in [-2, 2], or with a gap; then also where each test row is."""
    if gap:
        return inputs_with_gap(random, rows, test_rows, inputs)
    return random.uniform(-2, 2, (rows, inputs)), random.uniform(-2, 2, (test_rows, inputs)), None


@dataclass(frozen=True)
class KnownLaw(Dataset):
    """A generated problem whose law of the targets is known exactly; every split has rows of its own."""

    rows: int = 100
    test_rows: int = 500
    inputs: int = 1

    repeats = "independent"
    source = "generated"
    licence = "none needed"
    positive: ClassVar[tuple[str, ...]] = ()  # options that have to be above 0

    def __post_init__(self) -> None:
        if min(self.rows, self.test_rows) < 2 or self.inputs < 1:
            sizes = f"{self.rows}, {self.test_rows} and {self.inputs}"
            raise ValueError(f"at least 2 rows, 2 test_rows and 1 input are needed, got {sizes}")
        for name in self.positive:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
