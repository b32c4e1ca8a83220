"""What one draw may state about a real target: a point, a normal, a normal-inverse-gamma, or quantiles.

Every prediction holds T draws at N rows. Its functions treat each draw by itself; `Mixture` combines the draws.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, float_array
from bench.metrics.standard_normal import mean_distance, ratio

LOG_TWO_PI = math.log(2 * math.pi)


class RegressionPrediction(ABC):
    """T predictions at N rows. In all functions `y` is [..., N] and the answer [..., T, N].

    The variance that a prediction states has two parts, [T, N] each: `model_variance` (it would vanish with more
    data) and `noise_variance` (of the observations). None: not stated. NaN: this row's variance does not exist.
    """

    @property
    @abstractmethod
    def centre(self) -> FloatArray:
        """The point that each draw predicts, [T, N]: its mean where it has one."""

    @property
    def model_variance(self) -> FloatArray | None:
        """The stated variance of the model."""
        return None

    @property
    def noise_variance(self) -> FloatArray | None:
        """The stated variance of the observations."""
        return None

    @property
    def variance(self) -> FloatArray | None:
        """The sum of the stated parts, or None where neither is stated."""
        model, noise = self.model_variance, self.noise_variance
        if model is None or noise is None:
            return noise if model is None else model
        return model + noise

    @property
    def has_distribution(self) -> bool:
        """Whether a draw has a distribution function, quantiles and a CRPS."""
        return True

    @property
    def has_density(self) -> bool:
        """Whether a draw has a density."""
        return self.has_distribution

    @property
    def draw_count(self) -> int:
        """T, the number of draws."""
        return int(self.centre.shape[0])

    @property
    def row_count(self) -> int:
        """N, the number of rows."""
        return int(self.centre.shape[1])

    def rows(self, index: slice | NDArray[Any]) -> Self:
        """Return the prediction at some of the rows."""
        return self._map(lambda values: values[:, index])

    def draws(self, first: int | None) -> Self:
        """Return the first draws."""
        return self._map(lambda values: values[:first])

    @abstractmethod
    def affine(self, factor: float, offset: float) -> Self:
        """Return the prediction of `factor * y + offset`, with a positive factor."""

    def with_noise(self, variance: float) -> "RegressionPrediction":
        """Return the prediction of an observation: fitted noise is added where no noise is stated."""
        return self

    @abstractmethod
    def log_density(self, y: FloatArray) -> FloatArray:
        """Return the log density at y."""

    @abstractmethod
    def cdf(self, y: FloatArray) -> FloatArray:
        """Return the probability of a value of at most y."""

    @abstractmethod
    def quantile(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles [L, T, N] of levels [L], or [T, N] of one level per row [N] with `levels` [1, N]."""

    @abstractmethod
    def crps(self, y: FloatArray) -> FloatArray:
        """Return the continuous ranked probability score at y; NaN where it is infinite."""

    def _map(self, change: Any) -> Self:
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        changed = {name: change(values) for name, values in arrays.items() if isinstance(values, np.ndarray)}
        return replace(self, **changed)  # type: ignore[type-var]  # subclasses are dataclasses

    def _check(self, names: str, *, above: float | None = None, least: float | None = None) -> None:
        """Check arrays of the centre's shape; they are above, or at least, a number."""
        for name in names.split():
            if getattr(self, name) is None:
                continue
            array = float_array(getattr(self, name), name, self.centre.shape)
            low = float(array.min())
            if (above is not None and low <= above) or (least is not None and low < least):
                bound = f"above {above:g}" if above is not None else f"at least {least:g}"
                raise UserError(f"{name}: lowest value is {low:.6g}, must be {bound}")
            object.__setattr__(self, name, array)


@dataclass(frozen=True, eq=False)
class Points(RegressionPrediction):
    """Points [T, N]. They have no distribution unless a noise was fitted; then each is the mean of a normal."""

    values: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", float_array(self.values, "values", (None, None)))

    @property
    def centre(self) -> FloatArray:
        """The points."""
        return self.values

    @property
    def has_distribution(self) -> bool:
        """False: a point states no distribution."""
        return False

    def affine(self, factor: float, offset: float) -> Self:
        """Return the points in another unit."""
        return replace(self, values=self.values * factor + offset)

    def with_noise(self, variance: float) -> "Normal":
        """Return normals around the points."""
        return Normal(self.values, noise_variance=np.full(self.values.shape, variance))

    def log_density(self, y: FloatArray) -> FloatArray:
        """Raise: a point has no density."""
        raise _no_distribution()

    def cdf(self, y: FloatArray) -> FloatArray:
        """Raise: a point has no distribution."""
        raise _no_distribution()

    def quantile(self, levels: FloatArray) -> FloatArray:
        """Raise: a point has no quantiles."""
        raise _no_distribution()

    def crps(self, y: FloatArray) -> FloatArray:
        """Raise: a point has no distribution."""
        raise _no_distribution()


def _no_distribution() -> UserError:
    return UserError(
        "points state no distribution; fit an observation noise (`fit_noise_variance`) or state a variance"
    )


@dataclass(frozen=True, eq=False)
class Normal(RegressionPrediction):
    """Normal distributions, [T, N] each, with the parts of the variance that the method states (at least one).

    A mean-variance network states noise; a Gaussian process states the variance of its latent function as model
    variance. Where the noise is None, the noise fitted on validation data is added.
    """

    mean: FloatArray
    model_variance: FloatArray | None = None
    noise_variance: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", float_array(self.mean, "mean", (None, None)))
        if self.model_variance is None and self.noise_variance is None:
            raise UserError("Normal: state model_variance, noise_variance or both; without either it is Points")
        self._check("model_variance noise_variance", least=0.0)

    @property
    def centre(self) -> FloatArray:
        """The means."""
        return self.mean

    def affine(self, factor: float, offset: float) -> Self:
        """Return the normals in another unit."""
        model, noise = (None if v is None else v * factor**2 for v in (self.model_variance, self.noise_variance))
        return replace(self, mean=self.mean * factor + offset, model_variance=model, noise_variance=noise)

    def with_noise(self, variance: float) -> "Normal":
        """Return the normals with this noise where they state none."""
        if self.noise_variance is not None:
            return self
        return replace(self, noise_variance=np.full(self.mean.shape, variance))

    @property
    def variance(self) -> FloatArray:
        """The sum of the stated parts."""
        parts = [part for part in (self.model_variance, self.noise_variance) if part is not None]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    @property
    def std(self) -> FloatArray:
        """The root of the whole variance."""
        return np.sqrt(self.variance)

    def log_density(self, y: FloatArray) -> FloatArray:
        """Return the log density; -inf everywhere for a variance of 0, which has none."""
        variance = self.variance
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scaled = np.square(y[..., None, :] - self.mean) / variance
            logs: FloatArray = -0.5 * (LOG_TWO_PI + np.log(variance) + scaled)
        return np.where(np.isnan(logs) | (variance == 0), -np.inf, logs)

    def cdf(self, y: FloatArray) -> FloatArray:
        """Return Phi((y - m) / s); with a variance of 0 it is 0, 1/2 or 1 as y lies below, at or above the mean."""
        from scipy.special import ndtr

        values: FloatArray = ndtr(ratio(y[..., None, :] - self.mean, self.std))
        return values

    def quantile(self, levels: FloatArray) -> FloatArray:
        """Return m + s Phi^-1(level)."""
        from scipy.special import ndtri

        values: FloatArray = self.mean + _per_draw(ndtri(levels)) * self.std
        return values

    def crps(self, y: FloatArray) -> FloatArray:
        """Return the closed form (Gneiting and Raftery, JASA 2007, equation 21)."""
        std, distance = self.std, y[..., None, :] - self.mean
        return mean_distance(distance, std) - std / math.sqrt(math.pi)


def _per_draw(values: FloatArray) -> FloatArray:
    """Return values of levels [L] or [1, N] so that they broadcast against [T, N]."""
    return values[:, None, None] if values.ndim == 1 else values


@dataclass(frozen=True, eq=False)
class NormalInverseGamma(RegressionPrediction):
    """Evidential regression: y ~ N(mu, v), mu ~ N(mean, v / nu), v ~ inverse gamma(alpha, beta).

    Amini et al., Deep Evidential Regression, NeurIPS 2020. An observation has a Student t of 2 alpha degrees at `mean`
    with the squared scale beta (1 + nu) / (nu alpha). Its variance is beta / (alpha - 1), the noise, plus
    beta / (nu (alpha - 1)), the model; it exists for alpha > 1 only.
    """

    mean: FloatArray
    nu: FloatArray
    alpha: FloatArray
    beta: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", float_array(self.mean, "mean", (None, None)))
        self._check("nu alpha beta", above=0.0)

    @property
    def centre(self) -> FloatArray:
        """The location: the mean, where the distribution has one, and the median always."""
        return self.mean

    @property
    def model_variance(self) -> FloatArray:
        """The variance of mu; NaN where alpha is at most 1."""
        return self.noise_variance / self.nu

    @property
    def noise_variance(self) -> FloatArray:
        """The mean of v; NaN where alpha is at most 1: a Student t of at most 2 degrees has no variance."""
        with np.errstate(divide="ignore"):
            return np.where(self.alpha > 1, self.beta / (self.alpha - 1), np.nan)

    @property
    def degrees(self) -> FloatArray:
        """The degrees of freedom of the Student t."""
        return 2 * self.alpha

    @property
    def scale(self) -> FloatArray:
        """The scale of the Student t."""
        return np.sqrt(self.beta * (1 + self.nu) / (self.nu * self.alpha))

    def affine(self, factor: float, offset: float) -> Self:
        """Return the predictions in another unit."""
        return replace(self, mean=self.mean * factor + offset, beta=self.beta * factor**2)

    def log_density(self, y: FloatArray) -> FloatArray:
        """Return the log density of the Student t."""
        from scipy.special import gammaln

        nu, scale = self.degrees, self.scale
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi) - np.log(scale)
        z = (y[..., None, :] - self.mean) / scale
        logs: FloatArray = constant - (nu + 1) / 2 * np.log1p(np.square(z) / nu)
        return logs

    def cdf(self, y: FloatArray) -> FloatArray:
        """Return the distribution function of the Student t."""
        from scipy.special import stdtr

        values: FloatArray = stdtr(self.degrees, (y[..., None, :] - self.mean) / self.scale)
        return values

    def quantile(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles of the Student t."""
        from scipy.special import stdtrit

        values: FloatArray = self.mean + self.scale * stdtrit(self.degrees, _per_draw(levels))
        return values

    def crps(self, y: FloatArray) -> FloatArray:
        """Return the closed form (Jordan, Krueger and Lerch, JSS 2019); NaN at most 1 degree, where it is infinite."""
        from scipy.special import betaln, stdtr

        nu, scale = self.degrees, self.scale
        z = (y[..., None, :] - self.mean) / scale
        with np.errstate(divide="ignore", invalid="ignore"):
            density = np.exp(self.log_density(y)) * scale
            pairs = 2 * np.sqrt(nu) / (nu - 1) * np.exp(betaln(0.5, nu - 0.5) - 2 * betaln(0.5, nu / 2))
            full = scale * (z * (2 * stdtr(nu, z) - 1) + 2 * density * (nu + np.square(z)) / (nu - 1) - pairs)
        return np.where(nu > 1, full, np.nan)


def as_prediction(draws: ArrayLike, draw_variance: ArrayLike | None) -> RegressionPrediction:
    """Return points, or normals whose stated variance is noise."""
    if draw_variance is None:
        return Points(np.asarray(draws))
    return Normal(np.asarray(draws), noise_variance=np.asarray(draw_variance))
