"""Point errors and log losses of regression forecasts. Pure functions over arrays of N rows, float64 inside."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from bench.metrics.arrays import FloatArray, float_array, variance_array
from bench.metrics.forecast import Forecast
from bench.metrics.metric import PAPER, Metric, Template

LOG_TWO_PI = math.log(2 * math.pi)


def root_mean_squared_error(observed: ArrayLike, mean: ArrayLike) -> float:
    """RMSE = sqrt(mean_i (y_i - m_i)^2), in the unit of the target."""
    return float(np.sqrt(np.mean(np.square(_residuals(observed, mean)))))


def mean_absolute_error(observed: ArrayLike, mean: ArrayLike) -> float:
    """MAE = mean_i |y_i - m_i|, in the unit of the target."""
    return float(np.mean(np.abs(_residuals(observed, mean))))


def r_squared(observed: ArrayLike, mean: ArrayLike) -> float:
    """R2 = 1 - sum_i (y_i - m_i)^2 / sum_i (y_i - mean(y))^2: the same in every affine unit of the target.

    NaN (undefined) where the observed values are all equal, hence also for one row.
    """
    y = float_array(observed, "observed", (None,))
    residuals = _residuals(y, mean)
    if y.min() == y.max():
        return math.nan
    return float(1.0 - np.sum(np.square(residuals)) / np.sum(np.square(y - y.mean())))


def gaussian_nll_rows(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> FloatArray:
    """Return -log N(y_i | m_i, v_i) = (log(2 pi v_i) + (y_i - m_i)^2 / v_i) / 2 for each row, in nat.

    A variance of 0 is a point mass, which has no density: that row is +inf, also where the residual is 0, so that a
    forecast without any uncertainty never wins by chance. Nothing is clipped.
    """
    residuals = _residuals(observed, mean)
    v = variance_array(variance, residuals.size)
    rows = np.full(residuals.size, np.inf)
    positive = v > 0
    # A squared residual over a variance of, say, 1e-310 overflows to +inf, which is the value meant.
    with np.errstate(over="ignore"):
        scaled = np.square(residuals[positive]) / v[positive]
        rows[positive] = 0.5 * (LOG_TWO_PI + np.log(v[positive]) + scaled)
    return rows


def gaussian_nll(observed: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> float:
    """Mean of `gaussian_nll_rows`, in nat.

    With the variance over draws alone this is the paper's negative log-likelihood (`nll_mc`); with the fitted
    observation noise added it is `nll`, the mixture replaced by one normal of its moments, as Lakshminarayanan et al.
    (NeurIPS 2017) do for ensembles. Gal and Ghahramani's log likelihood is that of the mixture itself, `nll_mixture`.
    The three are never mixed.
    """
    return float(gaussian_nll_rows(observed, mean, variance).mean())


def standardised_log_loss(
    observed: ArrayLike, mean: ArrayLike, variance: ArrayLike, train_mean: float, train_variance: float
) -> float:
    """MSLL = mean_i [-log N(y_i | m_i, v_i) + log N(y_i | train mean, train variance)], in nat.

    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 2.5: the loss against the trivial
    Gaussian of the training targets, negative for a forecast that beats it. NaN where the training variance is 0.
    """
    model = gaussian_nll_rows(observed, mean, variance)
    if train_variance == 0:
        return math.nan
    trivial = gaussian_nll_rows(observed, np.full(model.size, train_mean), train_variance)
    return float(np.mean(model - trivial))


def sharpness(variance: ArrayLike) -> float:
    """Root of the mean predicted variance, sqrt(mean_i v_i), in the unit of the target.

    Kuleshov, Fenner and Ermon, Accurate Uncertainties for Deep Learning Using Calibrated Regression, ICML 2018. It
    looks at no observation: read it beside a calibration metric.
    """
    v = float_array(variance, "variance", (None,))
    return float(np.sqrt(np.mean(variance_array(v, v.size))))


def _residuals(observed: ArrayLike, mean: ArrayLike) -> FloatArray:
    y = float_array(observed, "observed", (None,))
    difference: FloatArray = y - float_array(mean, "mean", y.shape)
    return difference


def _in_three_units(
    name: str, formula: str, source: str, error: Callable[[ArrayLike, ArrayLike], float]
) -> tuple[Metric, ...]:
    """Declare an error in original, standardised and min-max units; NaN where the training target is constant."""

    def over(forecast: Forecast, length: float) -> float:
        return error(forecast.observed, forecast.mean) / length if length > 0 else math.nan

    def standardised(forecast: Forecast) -> float:
        return over(forecast, forecast.scale.std if forecast.scale else 0.0)

    def min_max(forecast: Forecast) -> float:
        return over(forecast, forecast.scale.maximum - forecast.scale.minimum if forecast.scale else 0.0)

    plain = Template("regression", "predictive", "target unit")
    scaled = replace(plain, needs="scale")
    return (
        plain(name, formula, source).by(lambda f: error(f.observed, f.mean)),
        scaled(f"{name}_std", f"{formula} / std of train targets", source, unit="train std").by(standardised),
        scaled(f"{name}_minmax", f"{formula} / (max - min) of train targets", source, unit="train range").by(min_max),
    )


def _against_train_targets(f: Forecast) -> float:
    if f.scale is None:
        return math.nan
    return standardised_log_loss(f.observed, f.mean, f.predictive_variance, f.scale.mean, f.scale.std**2)


def _mixture_nll(f: Forecast) -> float:
    return math.nan if f.distribution is None else -float(f.distribution.log_density(f.observed).mean())


_nat = Template("regression", "calibration", "nat", signed=True)
METRICS: tuple[Metric, ...] = (
    *_in_three_units("rmse", "sqrt(mean_i (y_i - m_i)^2)", PAPER, root_mean_squared_error),
    *_in_three_units("mae", "mean_i abs(y_i - m_i)", "Willmott and Matsuura, 2005", mean_absolute_error),
    Template("regression", "predictive", "1", "higher", signed=True, highest=1.0)(
        "r2",
        "1 - sum_i (y_i - m_i)^2 / sum_i (y_i - mean(y))^2, the same in every unit of the target",
        "Draper and Smith, Applied Regression Analysis, 1998",
    ).by(lambda f: r_squared(f.observed, f.mean)),
    Template("regression", "predictive", "standardised")(
        "cv_mse",
        "mean over the folds of a search of the mean squared error at held-out rows, targets standardised, of the "
        "chosen configuration",
        "github.com/peace-andjoy/noise_injection_uncertainty, regression/predictive_performance_cv.py",
    ).by_probe(),
    _nat("nll_mc", "mean_i -log N(y_i; m_i, s_i^2), s_i^2 the variance over draws alone", PAPER, needs="draws").by(
        lambda f: gaussian_nll(f.observed, f.mean, f.spread)
    ),
    _nat(
        "nll",
        "mean_i -log N(y_i; m_i, v_i + 1/tau), 1/tau fitted on validation data",
        "Lakshminarayanan, Pritzel and Blundell, NeurIPS 2017",
        needs="noise",
    ).by(lambda f: gaussian_nll(f.observed, f.mean, f.predictive_variance)),
    replace(_nat, biased_in_draws=True)(
        "nll_mixture",
        "mean_i -log f_i(y_i), f_i = 1/T sum_t f_ti the density of F_i; falls with T, so compare at equal T",
        "Gal and Ghahramani, ICML 2016, section 4",
        needs="density",
    ).by(_mixture_nll),
    _nat("msll", "nll_mc minus the baseline method's mean nll_mc on the same split", PAPER, needs="draws").relative_to(
        "nll_mc"
    ),
    _nat(
        "msll_rw",
        "mean_i [-log N(y_i; m_i, v_i + 1/tau) + log N(y_i; train mean, train std^2)]",
        "Rasmussen and Williams, 2006, section 2.5",
        needs="noise scale",
    ).by(_against_train_targets),
    Template("regression", "calibration", "target unit", needs="variance", only_with="picp95")(
        "sharpness", "sqrt(mean_i v_i), to be read beside a calibration metric", "Kuleshov, Fenner and Ermon, ICML 2018"
    ).by(lambda f: sharpness(f.variance)),
)
