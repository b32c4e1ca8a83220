"""Declarations: intervals and quantiles of regression forecasts."""

from collections.abc import Callable

from bench.metrics import intervals, quantiles, regression
from bench.metrics.arrays import FloatArray
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric

PAPER = "Yuan, Li and Kuruoglu, MCNI"
PEARCE = "Pearce et al., ICML 2018"
KULESHOV = "Kuleshov, Fenner and Ermon, ICML 2018"

Variance = Callable[[Forecast], FloatArray]


def _without_noise(forecast: Forecast) -> FloatArray:
    return forecast.variance


def _with_noise(forecast: Forecast) -> FloatArray:
    return forecast.predictive_variance


def _interval_metrics(
    *, suffix: str, level: float, width: Callable[[], float], interval: str, variance: Variance, need: str, source: str
) -> tuple[Metric, ...]:
    """Declare coverage, width and Winkler score of one interval; `width` is a call, so that scipy loads on use."""

    def bounds(forecast: Forecast) -> intervals.Intervals:
        return intervals.gaussian_intervals(forecast.mean, variance(forecast), width())

    needs = frozenset({need})
    return (
        Metric(
            name=f"picp{suffix}",
            task="regression",
            family="calibration",
            direction="target",
            target=round(level, 4),
            unit="probability",
            needs=needs,
            formula=f"share of y_i within {interval}, bounds included",
            source=source,
            compute=lambda f: intervals.coverage_probability(f.observed, bounds(f)),
        ),
        Metric(
            name=f"mpiw{suffix}",
            task="regression",
            family="calibration",
            direction="lower",
            target=None,
            unit="target unit",
            needs=needs,
            formula=f"mean width of {interval}",
            source=source,
            compute=lambda f: intervals.mean_width(bounds(f)),
        ),
        Metric(
            name=f"winkler{suffix}",
            task="regression",
            family="calibration",
            direction="lower",
            target=None,
            unit="target unit",
            needs=needs,
            formula=f"mean of width + {2 / (1 - level):.6g} * distance of y_i outside, for {interval}",
            source="Winkler, JASA 1972",
            compute=lambda f: intervals.winkler_score(f.observed, bounds(f), level),
        ),
    )


def _quantile_metric(suffix: str, variance: Variance, need: str, spread: str) -> Metric:
    def compute(forecast: Forecast) -> float:
        pit = quantiles.pit_values(forecast.observed, forecast.mean, variance(forecast))
        return quantiles.quantile_calibration_error(pit)

    return Metric(
        name=f"quantile_error{suffix}",
        task="regression",
        family="calibration",
        direction="lower",
        target=None,
        unit="probability",
        needs=frozenset({need}),
        formula=f"mean over 100 p of abs(share of y_i below the p-quantile of N(m_i, {spread}) - p)",
        source=KULESHOV,
        compute=compute,
    )


def _width_95() -> float:
    return intervals.width_of(0.95)


METRICS: tuple[Metric, ...] = (
    *_interval_metrics(
        suffix="",
        level=intervals.level_of(3.0),
        width=lambda: 3.0,
        interval="m_i +- 3 sqrt(v_i)",
        variance=_without_noise,
        need="draws",
        source=PAPER,
    ),
    *_interval_metrics(
        suffix="95",
        level=0.95,
        width=_width_95,
        interval="m_i +- 1.96 sqrt(v_i)",
        variance=_without_noise,
        need="draws",
        source=PEARCE,
    ),
    *_interval_metrics(
        suffix="95_noise",
        level=0.95,
        width=_width_95,
        interval="m_i +- 1.96 sqrt(v_i + 1/tau)",
        variance=_with_noise,
        need="noise",
        source=PEARCE,
    ),
    _quantile_metric("", _without_noise, "draws", "v_i"),
    _quantile_metric("_noise", _with_noise, "noise", "v_i + 1/tau"),
    Metric(
        name="sharpness",
        task="regression",
        family="calibration",
        direction="lower",
        target=None,
        unit="target unit",
        needs=frozenset({"draws"}),
        formula="sqrt(mean_i v_i), to be read beside a calibration metric",
        source=KULESHOV,
        compute=lambda f: regression.sharpness(f.variance),
    ),
)
