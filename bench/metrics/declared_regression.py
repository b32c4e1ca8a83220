"""Declarations: point errors, log losses and CRPS of regression forecasts."""

import math
from collections.abc import Callable

from bench.metrics import crps, regression
from bench.metrics.arrays import FloatArray
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric

GAL = "Gal and Ghahramani, ICML 2016"
GNEITING = "Gneiting and Raftery, JASA 2007"
PAPER = "Yuan, Li and Kuruoglu, MCNI"


def _in_three_units(
    name: str, formula: str, source: str, error: Callable[[FloatArray, FloatArray], float]
) -> tuple[Metric, ...]:
    """Declare an error in original, standardised and min-max units; a constant training target leaves NaN."""

    def original(forecast: Forecast) -> float:
        return error(forecast.observed, forecast.mean)

    def over(forecast: Forecast, length: float) -> float:
        return original(forecast) / length if length > 0 else math.nan

    def standardised(forecast: Forecast) -> float:
        return over(forecast, forecast.scale.std if forecast.scale else 0.0)

    def min_max(forecast: Forecast) -> float:
        return over(forecast, forecast.scale.maximum - forecast.scale.minimum if forecast.scale else 0.0)

    return tuple(
        Metric(
            name=name + suffix,
            task="regression",
            family="predictive",
            direction="lower",
            target=None,
            unit=unit,
            needs=frozenset(needs),
            formula=formula + divisor,
            source=source,
            compute=compute,
        )
        for suffix, unit, needs, divisor, compute in (
            ("", "target unit", (), "", original),
            ("_std", "train std", ("scale",), " / std of train targets", standardised),
            ("_minmax", "train range", ("scale",), " / (max - min) of train targets", min_max),
        )
    )


def _rasmussen_williams(forecast: Forecast) -> float:
    if forecast.scale is None:
        return math.nan
    return regression.standardised_log_loss(
        forecast.observed, forecast.mean, forecast.predictive_variance, forecast.scale.mean, forecast.scale.std**2
    )


METRICS: tuple[Metric, ...] = (
    *_in_three_units("rmse", "sqrt(mean_i (y_i - m_i)^2)", PAPER, regression.root_mean_squared_error),
    *_in_three_units("mae", "mean_i abs(y_i - m_i)", "Willmott and Matsuura, 2005", regression.mean_absolute_error),
    Metric(
        name="r2",
        task="regression",
        family="predictive",
        direction="higher",
        target=None,
        unit="1",
        needs=frozenset(),
        formula="1 - sum_i (y_i - m_i)^2 / sum_i (y_i - mean(y))^2, the same in every unit of the target",
        source="Draper and Smith, Applied Regression Analysis, 1998",
        compute=lambda f: regression.r_squared(f.observed, f.mean),
        signed=True,
    ),
    Metric(
        name="nll_mc",
        task="regression",
        family="calibration",
        direction="lower",
        target=None,
        unit="nat",
        needs=frozenset({"draws"}),
        formula="mean_i -log N(y_i; m_i, s_i^2), s_i^2 the variance over draws alone",
        source=PAPER,
        compute=lambda f: regression.gaussian_nll(f.observed, f.mean, f.spread),
        signed=True,
    ),
    Metric(
        name="nll",
        task="regression",
        family="calibration",
        direction="lower",
        target=None,
        unit="nat",
        needs=frozenset({"noise"}),
        formula="mean_i -log N(y_i; m_i, v_i + 1/tau), 1/tau fitted on validation data",
        source=GAL,
        compute=lambda f: regression.gaussian_nll(f.observed, f.mean, f.predictive_variance),
        signed=True,
    ),
    Metric(
        name="msll",
        task="regression",
        family="calibration",
        direction="lower",
        target=None,
        unit="nat",
        needs=frozenset({"draws", "baseline"}),
        formula="nll_mc minus the baseline method's mean nll_mc on the same split",
        source=PAPER,
        compute=None,
        relative_to="nll_mc",
        signed=True,
    ),
    Metric(
        name="msll_rw",
        task="regression",
        family="calibration",
        direction="lower",
        target=None,
        unit="nat",
        needs=frozenset({"noise", "scale"}),
        formula="mean_i [-log N(y_i; m_i, v_i + 1/tau) + log N(y_i; train mean, train std^2)]",
        source="Rasmussen and Williams, 2006, section 2.5",
        compute=_rasmussen_williams,
        signed=True,
    ),
    Metric(
        name="crps",
        task="regression",
        family="calibration",
        direction="lower",
        target=None,
        unit="target unit",
        needs=frozenset({"draws"}),
        formula="mean_i CRPS(N(m_i, v_i), y_i), closed form",
        source=GNEITING,
        compute=lambda f: crps.crps_gaussian(f.observed, f.mean, f.variance),
    ),
    Metric(
        name="crps_noise",
        task="regression",
        family="calibration",
        direction="lower",
        target=None,
        unit="target unit",
        needs=frozenset({"noise"}),
        formula="mean_i CRPS(N(m_i, v_i + 1/tau), y_i), closed form",
        source=GNEITING,
        compute=lambda f: crps.crps_gaussian(f.observed, f.mean, f.predictive_variance),
    ),
    Metric(
        name="crps_sample",
        task="regression",
        family="calibration",
        direction="lower",
        target=None,
        unit="target unit",
        needs=frozenset({"draws"}),
        formula="mean_i [mean_t abs(x_ti - y_i) - sum_{s,t} abs(x_si - x_ti) / (2 T (T - 1))], draws alone",
        source="Ferro, QJRMS 2014",
        compute=lambda f: crps.crps_fair(f.observed, f.draws),
    ),
)
