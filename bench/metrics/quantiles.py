"""Calibration of the quantiles and of the central intervals of a regression forecast."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, float_array, variance_array
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric, Template


class QuantileCurve(NamedTuple):
    """Expected and observed share of observations below each predicted quantile."""

    expected: FloatArray
    observed: FloatArray


class PitHistogram(NamedTuple):
    """Bin edges [bins + 1] and densities [bins] of the probability integral transform; flat at 1 when calibrated."""

    edges: FloatArray
    density: FloatArray


def pit_values(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> FloatArray:
    """Return the probability integral transform Phi((y_i - m_i) / s_i) of each row.

    Gneiting, Balabdaoui and Raftery, Probabilistic Forecasts, Calibration and Sharpness, JRSS-B 2007. Uniform on
    [0, 1] when the forecast is calibrated. With a variance of 0 it is 0, 1/2 or 1 as y lies below, at or above m.
    """
    from scipy.special import ndtr

    y = float_array(observed, "observed", (None,))
    residuals = y - float_array(mean, "mean", y.shape)
    std = np.sqrt(variance_array(variance, y.size))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.where(residuals == 0, 0.0, residuals / std)
    values: FloatArray = ndtr(z)
    return values


def pit_histogram(pit: ArrayLike, bins: int = 10) -> PitHistogram:
    """Return the histogram of PIT values over `bins` equal bins of [0, 1], as densities."""
    values = _unit_values(pit)
    if bins < 1:
        raise UserError(f"bins: expected at least 1, got {bins}")
    density, edges = np.histogram(values, bins=bins, range=(0.0, 1.0), density=True)
    return PitHistogram(edges, density)


def quantile_curve(pit: ArrayLike, levels: int = 100) -> QuantileCurve:
    """Return, for `levels` evenly spaced probabilities p from 0 to 1, the share of rows whose PIT is at most p."""
    values = _unit_values(pit)
    if levels < 2:
        raise UserError(f"levels: expected at least 2, got {levels}")
    expected = np.linspace(0.0, 1.0, levels)
    return QuantileCurve(expected, np.searchsorted(np.sort(values), expected, side="right") / values.size)


def quantile_calibration_error(pit: ArrayLike, levels: int = 100) -> float:
    """Mean over probabilities p of |share of rows with PIT <= p, minus p|.

    Kuleshov, Fenner and Ermon, ICML 2018, with absolute differences; the mean absolute calibration error of
    uncertainty-toolbox with quantiles, on the same 100 levels.
    """
    curve = quantile_curve(pit, levels)
    return float(np.mean(np.abs(curve.observed - curve.expected)))


def root_mean_squared_quantile_error(pit: ArrayLike, levels: int = 100) -> float:
    """Root of the mean over probabilities p of (share of rows with PIT <= p, minus p)^2, on the same levels."""
    curve = quantile_curve(pit, levels)
    return float(np.sqrt(np.mean(np.square(curve.observed - curve.expected))))


def central_values(pit: ArrayLike) -> FloatArray:
    """Return 2 |PIT - 1/2|, the probability of the smallest central interval that holds the observation.

    In place of the PIT it turns each of these errors into that of centred intervals: share of rows within the central
    interval of probability p, minus p. A forecast that is biased can be calibrated so, and not in its quantiles.
    """
    centred: FloatArray = 2.0 * np.abs(_unit_values(pit) - 0.5)
    return centred


def miscalibration_area(pit: ArrayLike, levels: int = 100) -> float:
    """Area between the curve of `quantile_curve`, joined by lines, and the diagonal.

    uncertainty-toolbox (Chung et al. 2021), whose default is the curve of central intervals.
    """
    curve = quantile_curve(pit, levels)
    gaps = curve.observed - curve.expected
    a, b = np.abs(gaps[:-1]), np.abs(gaps[1:])
    # A line that crosses the diagonal makes two triangles, any other a trapezium.
    crosses = gaps[:-1] * gaps[1:] < 0
    with np.errstate(invalid="ignore", divide="ignore"):
        heights = np.where(crosses, (np.square(a) + np.square(b)) / (a + b), a + b)
    return float(heights.sum() / 2 / (levels - 1))


def _unit_values(pit: ArrayLike) -> FloatArray:
    values = float_array(pit, "pit", (None,))
    if values.min() < 0 or values.max() > 1:
        raise UserError("pit: values lie between 0 and 1")
    return values


def _quantile_error(suffix: str, spread: str, *, noise: bool = False) -> Metric:
    def compute(f: Forecast) -> float:
        return quantile_calibration_error(
            pit_values(f.observed, f.mean, f.predictive_variance if noise else f.variance)
        )

    formula = f"mean over 100 p of abs(share of y_i below the p-quantile of N(m_i, {spread}) - p): MACE, quantile form"
    template = Template("regression", "calibration", "probability", needs="noise" if noise else "variance")
    return template(f"quantile_error{suffix}", formula, "Kuleshov, Fenner and Ermon, ICML 2018").by(compute)


_CHUNG = "Chung et al., uncertainty-toolbox, 2021"
_error = Template("regression", "calibration", "probability", needs="distribution")
METRICS: tuple[Metric, ...] = (
    _quantile_error("", "v_i"),
    _quantile_error("_noise", "v_i + 1/tau", noise=True),
    _error("mace", "mean over 100 p of abs(share of y_i with F_i(y_i) <= p, minus p): quantile form", _CHUNG).by(
        lambda f: quantile_calibration_error(f.pit)
    ),
    _error("mace_central", "mean over 100 p of abs(share of y_i in the central interval p of F_i, minus p)", _CHUNG).by(
        lambda f: quantile_calibration_error(central_values(f.pit))
    ),
    _error("rmsce", "as mace, the root of the mean square over p", _CHUNG).by(
        lambda f: root_mean_squared_quantile_error(f.pit)
    ),
    _error(
        "miscalibration_area",
        "area between p and the share of y_i in the central interval p of F_i, over 100 p joined by lines",
        _CHUNG,
    ).by(lambda f: miscalibration_area(central_values(f.pit))),
)
