"""Declarations: predictive and calibration metrics of classification forecasts, from the mean probabilities."""

import math

from bench.metrics import calibration, classification
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric

PROBABILITIES = frozenset({"probabilities"})


def _top_five(forecast: Forecast) -> float:
    if forecast.mean.shape[1] <= 5:
        # Every label is among the first five of five classes: that says nothing about the method.
        return math.nan
    return classification.top_k_accuracy(forecast.mean, forecast.observed, k=5)


METRICS: tuple[Metric, ...] = (
    Metric(
        name="accuracy",
        task="classification",
        family="predictive",
        direction="higher",
        target=None,
        unit="probability",
        needs=PROBABILITIES,
        formula="mean_i [argmax_c p_ic = y_i], the first class of equal ones",
        source="Yuan, Li and Kuruoglu, MCNI",
        compute=lambda f: float(f.correct.mean()),
    ),
    Metric(
        name="accuracy_top5",
        task="classification",
        family="predictive",
        direction="higher",
        target=None,
        unit="probability",
        needs=PROBABILITIES,
        formula="mean_i [y_i among the 5 highest p_ic], with more than 5 classes",
        source="Russakovsky et al., IJCV 2015",
        compute=_top_five,
    ),
    Metric(
        name="nll_categorical",
        task="classification",
        family="calibration",
        direction="lower",
        target=None,
        unit="nat",
        needs=PROBABILITIES,
        formula="mean_i -log p_i(y_i)",
        source="Good, Rational Decisions, JRSS-B 1952",
        compute=lambda f: classification.categorical_nll(f.mean, f.observed),
    ),
    Metric(
        name="brier",
        task="classification",
        family="calibration",
        direction="lower",
        target=None,
        unit="1",
        needs=PROBABILITIES,
        formula="mean_i sum_c (p_ic - [y_i = c])^2, between 0 and 2",
        source="Brier, Monthly Weather Review 1950",
        compute=lambda f: classification.brier_score(f.mean, f.observed),
    ),
    Metric(
        name="ece",
        task="classification",
        family="calibration",
        direction="lower",
        target=None,
        unit="probability",
        needs=PROBABILITIES,
        formula="sum_b (n_b / N) abs(accuracy_b - confidence_b), 15 equal bins of the top probability",
        source="Guo et al., ICML 2017",
        compute=lambda f: calibration.expected_calibration_error(f.confidence, f.correct),
    ),
    Metric(
        name="ece_adaptive",
        task="classification",
        family="calibration",
        direction="lower",
        target=None,
        unit="probability",
        needs=PROBABILITIES,
        formula="as ece, over 15 bins of equally many rows",
        source="Mukhoti et al., NeurIPS 2020",
        compute=lambda f: calibration.adaptive_calibration_error(f.confidence, f.correct),
    ),
    Metric(
        name="ece_classwise",
        task="classification",
        family="calibration",
        direction="lower",
        target=None,
        unit="probability",
        needs=PROBABILITIES,
        formula="mean over classes c of sum_b (n_b / N) abs(frequency_b of c - mean p_c in b), 15 equal bins of p_c",
        source="Kull et al., NeurIPS 2019",
        compute=lambda f: classification.class_wise_calibration_error(f.mean, f.observed),
    ),
    Metric(
        name="mce",
        task="classification",
        family="calibration",
        direction="lower",
        target=None,
        unit="probability",
        needs=PROBABILITIES,
        formula="max_b abs(accuracy_b - confidence_b), the bins of ece that hold a row",
        source="Naeini, Cooper and Hauskrecht, AAAI 2015",
        compute=lambda f: calibration.maximum_calibration_error(f.confidence, f.correct),
    ),
)
