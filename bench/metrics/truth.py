"""Metrics against the truth: only where a dataset states the exact law of its targets, and maybe a posterior.

No value here depends on the noise of the test targets: expectations are taken under the law itself.
"""

import math

import numpy as np

from bench.metrics.arrays import FloatArray
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Metric, Template
from bench.metrics.uncertainty import entropy, expected_entropy

LEVEL = 0.9  # of the central intervals
WORST_SHARE = 0.1  # of the rows, those with the lowest coverage
EXACT = 1e-9  # of the noise variance: errors of inputs in single precision
GNEITING = "Gneiting and Raftery, JASA 2007"


def root_ratio(stated: FloatArray, right: FloatArray) -> float:
    """Return the root of the ratio of two mean variances; NaN for 0 / 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sqrt(np.divide(stated.mean(), right.mean())))


def worst_coverage(coverage: FloatArray) -> float:
    """Return the mean coverage of the tenth of the rows that have the lowest."""
    count = max(1, math.ceil(WORST_SHARE * len(coverage)))
    return float(np.sort(coverage)[:count].mean())


def _knows_function(forecast: Forecast) -> bool:
    """Whether the predicted mean is the true function up to rounding: an oracle's."""
    known = forecast.against_law
    return bool(known.squared_error.mean() <= EXACT * known.noise.mean())


def _has_model(forecast: Forecast) -> bool:
    return bool(forecast.model_part.any()) and not _knows_function(forecast)


def _model_ratio(forecast: Forecast) -> float:
    """Return the stated model deviation over the error of the mean; undefined where there is no error."""
    if _knows_function(forecast):
        return math.nan
    return root_ratio(forecast.model_part, forecast.against_law.squared_error)


def _function_coverage(forecast: Forecast) -> float:
    """Return the share of rows whose true function lies in the central interval of the stated functions."""
    if not _has_model(forecast):
        return math.nan
    rank = forecast.against_law.function_rank
    return float(np.mean(np.abs(rank - 0.5) <= LEVEL / 2))


def _first_rank(forecast: Forecast) -> float:
    return float(forecast.against_law.function_rank[0]) if _has_model(forecast) else math.nan


def _posterior_distance(forecast: Forecast) -> float:
    """Return the Wasserstein distance of order 2 to the posterior, as normals, in its standard deviations."""
    mean, variance = forecast.against_law.posterior
    gap = np.square(forecast.mean - mean) + np.square(np.sqrt(forecast.model_part) - np.sqrt(variance))
    return float(np.sqrt(gap.mean() / variance.mean()))


def _expected_entropy(forecast: Forecast) -> float:
    if forecast.stated is not None and forecast.states_model:
        return float(forecast.stated.expected_entropy.mean())  # type: ignore[union-attr]  # of classes
    return float(expected_entropy(forecast.draws).mean())


def _confidence_gap(forecast: Forecast) -> FloatArray:
    """Return the confidence minus the true probability of the predicted class."""
    true = forecast.against_law.probabilities[np.arange(forecast.row_count), forecast.predicted]
    return forecast.confidence - true


def rows_against_law(forecast: Forecast) -> dict[str, FloatArray]:
    """Return what figures of a forecast against its law are drawn from, [N] each: `law/noise` and so on."""
    known = forecast.against_law
    if forecast.task == "classification":
        return {"law/regret": known.log_regret, "law/confidence_gap": _confidence_gap(forecast)}
    rows = {"law/noise": known.noise, "stated/noise": forecast.noise_part, "stated/model": forecast.model_part}
    if forecast.distribution is not None:
        rows["law/coverage"] = known.coverage
    if forecast.posterior is not None:
        rows |= {"law/posterior": known.posterior[1], "law/rank": known.function_rank}
    return rows


_nat = Template("regression", "truth", "nat", needs="law")
_target = Template("regression", "truth", "target unit", needs="law distribution")
_one = Template("regression", "truth", "1", "target", "law", target=1.0)
_covers = Template("regression", "truth", "probability", "target", "law distribution", target=LEVEL)
_class = Template("classification", "truth", "probability", needs="law")
OURS = "uqbench"
METRICS: tuple[Metric, ...] = (
    _nat(
        "law_regret",
        "mean_i E[log p_i(Y) - log q_i(Y)], Y ~ p_i the law, q_i the forecast",
        GNEITING,
        needs="law density",
    ).by(lambda f: float(f.against_law.log_regret.mean())),
    _target(
        "crps_regret", "mean_i of the integral of (F_i - G_i)^2, G_i the law: expected CRPS above the law's", GNEITING
    ).by(lambda f: float(f.against_law.distances[0].mean())),
    _target(
        "law_wasserstein", "mean_i of the integral of |F_i - G_i|, G_i the law", "Villani, Optimal Transport, 2009"
    ).by(lambda f: float(f.against_law.distances[1].mean())),
    _nat(
        "mean_cost",
        "mean_i 1/2 log(1 + h_i / n_i), n_i true noise variance, h_i mean squared error of the mean against the true "
        "function among rows of like model variance (10 bins)",
        OURS,
    ).by(lambda f: float(f.against_law.mean_cost.mean())),
    _nat(
        "variance_cost",
        "mean_i g((a_i + b_i) / (n_i + h_i)), g(r) = 1/2 (log r + 1/r - 1), a_i stated noise and b_i model variance",
        OURS,
    ).by(lambda f: float(f.against_law.variance_cost.mean())),
    _nat("noise_cost", "mean_i g((a_i + h_i) / (n_i + h_i)): the noise variance wrong by itself", OURS).by(
        lambda f: float(f.against_law.noise_cost.mean())
    ),
    _nat("model_cost", "mean_i g((n_i + b_i) / (n_i + h_i)): the model variance wrong by itself", OURS).by(
        lambda f: float(f.against_law.model_cost.mean())
    ),
    Template("regression", "truth", "noise std", "target", "law", signed=True, target=0.0)(
        "mean_shift", "mean_i (m_i - f_i) / sqrt(mean_i n_i), f_i the true function: the mean is too high or low", OURS
    ).by(lambda f: float((f.mean - f.against_law.mean).mean() / np.sqrt(f.against_law.noise.mean()))),
    _one("noise_ratio", "sqrt(mean_i a_i / mean_i n_i): stated noise over true noise", OURS).by(
        lambda f: root_ratio(f.noise_part, f.against_law.noise)
    ),
    _one(
        "model_ratio", "sqrt(mean_i b_i / mean_i (m_i - f_i)^2): stated model deviation over error of the mean", OURS
    ).by(_model_ratio),
    _target(
        "conditional_coverage_error",
        "mean_i |G_i(q_i(0.95)) - G_i(q_i(0.05)) - 0.9|, G_i the law, q_i(p) the forecast's quantiles",
        "Gneiting et al., JRSS B 2007",
        unit="probability",
    ).by(lambda f: float(np.abs(f.against_law.coverage - LEVEL).mean())),
    _covers(
        "worst_coverage",
        "mean of G_i(q_i(0.95)) - G_i(q_i(0.05)), G_i the law, over the tenth of the rows where it is lowest",
        "Cauchois, Gupta and Duchi, JMLR 2021",
    ).by(lambda f: worst_coverage(f.against_law.coverage)),
    _covers(
        "function_coverage",
        "share of rows whose true function lies in m_i +- 1.645 sqrt(b_i); none where no model variance is stated",
        "Talts et al., Simulation-Based Calibration, 2018",
        needs="law",
    ).by(_function_coverage),
    _one(
        "posterior_ratio",
        "sqrt(mean_i b_i / mean_i s_i^2), s_i^2 the variance of the exact posterior of the function",
        OURS,
        needs="law posterior",
    ).by(lambda f: root_ratio(f.model_part, f.against_law.posterior[1])),
    _nat(
        "posterior_distance",
        "sqrt(mean_i ((m_i - e_i)^2 + (sqrt(b_i) - s_i)^2) / mean_i s_i^2), e_i and s_i of the exact posterior",
        "Villani, Optimal Transport, 2009",
        unit="1",
        needs="law posterior",
    ).by(_posterior_distance),
    Template("regression", "descriptive", "probability", "none", "law posterior")(
        "function_rank",
        "Phi((f - m) / sqrt(b)) at the first test row: uniform over splits for an exact posterior",
        "Talts et al., Simulation-Based Calibration, 2018",
    ).by(_first_rank),
    _class("class_regret", "mean_i sum_c p_ic log(p_ic / q_ic), p_i the true probabilities", GNEITING, unit="nat").by(
        lambda f: float(f.against_law.log_regret.mean())
    ),
    _class("brier_regret", "mean_i sum_c (p_ic - q_ic)^2: expected Brier score above the law's", GNEITING, unit="1")
    .up_to(2.0)
    .by(lambda f: float(np.square(f.mean - f.against_law.probabilities).sum(axis=1).mean())),
    _class("class_distance", "mean_i 1/2 sum_c |p_ic - q_ic|: total variation", "Villani, Optimal Transport, 2009").by(
        lambda f: float(0.5 * np.abs(f.mean - f.against_law.probabilities).sum(axis=1).mean())
    ),
    _class(
        "confidence_error", "mean_i |q_i - p_i| at the predicted class: confidence against its true probability", OURS
    ).by(lambda f: float(np.abs(_confidence_gap(f)).mean())),
    Template("classification", "truth", "1", "target", "law", signed=True, target=0.0)(
        "confidence_gap", "mean_i (q_i - p_i) at the predicted class: above 0 is too confident", OURS
    )
    .up_to(1.0)
    .by(lambda f: float(_confidence_gap(f).mean())),
    Template("classification", "truth", "1", "target", "law", target=1.0)(
        "noise_entropy_ratio", "mean_i mean_t H[q_it] / mean_i H[p_i]: stated noise over the true one", OURS
    ).by(lambda f: _expected_entropy(f) / float(entropy(f.against_law.probabilities).mean())),
)
