"""All checks of a metric."""

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bench.errors import UserError
from bench.metrics import Forecast, Metric, TargetScale, catalogue
from bench.metrics.scoring import compute
from bench.testing.check import Check, NotApplicable, require
from bench.testing.isolation import global_generators_untouched

SAME = 1e-9  # relative: sums in another order differ by rounding
SCALE = TargetScale(mean=1.0, std=2.0, minimum=-4.0, maximum=6.0)


class MetricSubject:
    """A metric under test."""

    def __init__(self, plugin: Metric) -> None:
        self.plugin = plugin

    def applicable(self, forecasts: Mapping[str, Forecast]) -> dict[str, Forecast]:
        """Return those of the forecasts that the metric applies to; raise NotApplicable where it computes nothing."""
        if self.plugin.compute is None:
            how = (
                "a probe measures it" if self.plugin.relative_to is None else "it is a difference of two stored values"
            )
            raise NotApplicable(f"it is not computed from a forecast: {how}")
        found = {name: forecast for name, forecast in forecasts.items() if self.plugin.applies_to(forecast)}
        if not found:
            raise NotApplicable("it applies to none of the forecasts of this check")
        return found

    def value(self, forecast: Forecast) -> float:
        """Return the value for a forecast; numpy's warnings are not errors."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return compute(self.plugin, forecast)


def metric_checks() -> Iterator[Check[MetricSubject]]:
    """Yield every check that a metric has to pass, the fast ones first."""
    yield Check("declaration", "formula, unit and source are stated, and its name is nobody else's", _declaration)
    yield Check(
        "direction", "a forecast that is far off is not better than a good one (predictive metrics)", _direction
    )
    yield Check("finite", "it is finite on ordinary forecasts of its task", _finite)
    yield Check("needs", "it is computed wherever what it says it needs is there, and never raises", _needs)
    yield Check("unusual", "it returns a number, infinity or NaN on unusual forecasts, and never raises", _unusual)
    yield Check("pure", "the same forecast gives the same value and is not changed", _pure)
    yield Check("row-order", "the order of the rows plays no part", _row_order)
    yield Check("global-randomness", "global random generators are untouched", _global_randomness)


def _declaration(subject: MetricSubject) -> None:
    metric = subject.plugin
    for field in ("formula", "unit", "source"):
        value = getattr(metric, field)
        require(isinstance(value, str) and value.strip(), f"{field} is {value!r}; say it in a few words")
    require(len(metric.formula) >= 5, f"formula is {metric.formula!r}; write it out, as in 'mean_i |m_i - y_i|'")
    known = catalogue().get(metric.name)
    taken = known is not None and known != metric
    require(not taken, f"uqbench or an installed package has a metric {metric.name!r}; choose another name")


def _direction(subject: MetricSubject) -> None:
    metric = subject.plugin
    if metric.family != "predictive" or metric.direction not in ("lower", "higher", "target"):
        raise NotApplicable("only predictive metrics have a good and a bad forecast for sure")
    far = far_off()
    for name, good in subject.applicable(ordinary()).items():
        a, b = subject.value(good), subject.value(far[name])
        if math.isnan(a) or math.isnan(b):
            continue
        words = f"target {metric.target:g}" if metric.direction == "target" else f"{metric.direction} is better"
        require(
            not metric.better(b, a),
            f"a good forecast has {a:.4g} and one that is far off {b:.4g}, which counts as better ({words}); "
            "look at direction and target",
        )


def _finite(subject: MetricSubject) -> None:
    for name, forecast in subject.applicable(ordinary()).items():
        value = subject.value(forecast)
        require(math.isfinite(value), f"it is {value} on the forecast {name!r}, which has nothing unusual")


def _needs(subject: MetricSubject) -> None:
    _has_value(subject, bare(), "declare what it needs, or return NaN")


def _unusual(subject: MetricSubject) -> None:
    _has_value(subject, unusual(), "return NaN where the value is undefined")


def _has_value(subject: MetricSubject, forecasts: Mapping[str, Forecast], advice: str) -> None:
    for name, forecast in subject.applicable(forecasts).items():
        try:
            subject.value(forecast)
        except UserError as error:
            require(False, f"on the forecast {name!r}: {error}; {advice}")


def _pure(subject: MetricSubject) -> None:
    for name, forecast in subject.applicable(ordinary()).items():
        before = [array.copy() for array in _arrays(forecast)]
        first, second = subject.value(forecast), subject.value(forecast)
        require(_same(first, second, 0.0), f"computed twice on the forecast {name!r} it is {first!r} and {second!r}")
        unchanged = all(np.array_equal(a, b) for a, b in zip(before, _arrays(forecast), strict=True))
        require(unchanged, f"it changed the forecast {name!r}; work on copies")


def _row_order(subject: MetricSubject) -> None:
    order = np.random.default_rng(5).permutation(ROWS)
    for name, forecast in subject.applicable(ordinary()).items():
        one, other = subject.value(forecast), subject.value(_taken(forecast, order))
        advice = "sort by a score, not by position"
        require(_same(one, other, SAME), f"with the rows of {name!r} in another order {one!r} is {other!r}; {advice}")


def _global_randomness(subject: MetricSubject) -> None:
    forecasts = subject.applicable(ordinary())
    with global_generators_untouched("use np.random.default_rng(number) where a metric must draw numbers"):
        for forecast in forecasts.values():
            subject.value(forecast)


def _same(a: float, b: float, tolerance: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


def _arrays(forecast: Forecast) -> list[Any]:
    arrays = (forecast.observed, forecast.draws, forecast.draw_variance)
    return [array for array in arrays if array is not None]


def _taken(forecast: Forecast, rows: Any) -> Forecast:
    """Return the forecast for some of its rows."""
    stated = None if forecast.draw_variance is None else forecast.draw_variance[:, rows]
    rest = (stated, forecast.noise_variance, forecast.scale)
    return Forecast(forecast.task, forecast.observed[rows], forecast.draws[:, rows], *rest)


ROWS, DRAWS, CLASSES = 60, 8, 7


def _regression(shift: float = 0.0) -> dict[str, Any]:
    random = np.random.default_rng(11)
    truth = random.normal(1.0, 2.0, ROWS)
    spread = random.uniform(0.3, 1.5, ROWS)
    observed = truth + spread * random.normal(size=ROWS)
    draws = truth + shift + spread * random.normal(size=(DRAWS, ROWS))
    stated = random.uniform(0.1, 0.4, (DRAWS, ROWS))
    return {"observed": observed, "draws": draws, "stated": stated}


def _classification(*, right: bool = True) -> tuple[Any, Any]:
    random = np.random.default_rng(12)
    labels = np.arange(ROWS) % CLASSES
    logits = random.normal(size=(DRAWS, ROWS, CLASSES))
    logits[:, np.arange(ROWS), labels if right else (labels + 1) % CLASSES] += random.uniform(0.0, 4.0, ROWS)
    odds = np.exp(logits)
    return labels, odds / odds.sum(axis=2, keepdims=True)


def ordinary() -> dict[str, Forecast]:
    """Return forecasts that have everything and nothing unusual."""
    return _complete(_regression(), _classification())


def far_off() -> dict[str, Forecast]:
    """Return the same observations with forecasts that are far off."""
    return _complete(_regression(shift=25.0), _classification(right=False))


def _complete(one: dict[str, Any], classes: tuple[Any, Any]) -> dict[str, Forecast]:
    """Return forecasts of numbers, of numbers with stated variances, and of classes."""
    return {
        "regression": Forecast("regression", one["observed"], one["draws"], None, 0.5, SCALE),
        "stated-variance": Forecast("regression", one["observed"], one["draws"], one["stated"], 0.5, SCALE),
        "classification": Forecast("classification", *classes),
    }


def bare() -> dict[str, Forecast]:
    """Return forecasts that lack something: one draw, no noise, no scale."""
    one, (labels, chances) = _regression(), _classification()
    y, draws = one["observed"], one["draws"]
    return {
        "draws-alone": Forecast("regression", y, draws),
        "one-draw": Forecast("regression", y, draws[:1]),
        "one-draw-and-noise": Forecast("regression", y, draws[:1], None, 0.5),
        "one-draw-and-scale": Forecast("regression", y, draws[:1], None, None, SCALE),
        "one-draw-of-classes": Forecast("classification", labels, chances[:1]),
    }


def unusual() -> dict[str, Forecast]:
    """Return forecasts at the edge of what is defined."""
    one, (labels, chances) = _regression(), _classification()
    y, draws = one["observed"], one["draws"]
    sure = np.zeros_like(chances)
    sure[:, np.arange(ROWS), labels] = 1.0
    wrong = np.roll(sure, 1, axis=2)
    flat = TargetScale(mean=1.0, std=0.0, minimum=1.0, maximum=1.0)
    return {
        "one-row": Forecast("regression", y[:1], draws[:, :1], None, 0.5, SCALE),
        "no-variance": Forecast("regression", y, np.repeat(draws[:1], DRAWS, axis=0), None, 0.5, SCALE),
        "exact": Forecast("regression", y, np.repeat(y[None], DRAWS, axis=0), None, 0.0, SCALE),
        "constant-target": Forecast("regression", np.ones(ROWS), draws, None, 0.5, flat),
        "huge": Forecast("regression", y * 1e150, draws * 1e150, None, 1.0, SCALE),
        "one-row-of-classes": Forecast("classification", labels[:1], chances[:, :1]),
        "all-right": Forecast("classification", labels, sure),
        "all-wrong": Forecast("classification", labels, wrong),
        "one-class-observed": Forecast("classification", np.zeros(ROWS, dtype=int), chances),
    }
