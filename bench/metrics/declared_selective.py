"""Declarations: selective prediction in both tasks, and detection of wrong predictions."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from bench.metrics import detection, selective, uncertainty
from bench.metrics.arrays import FloatArray
from bench.metrics.forecast import Forecast
from bench.metrics.metric import Direction, Family, Metric
from bench.metrics.ranking import ranked

GEIFMAN = "Geifman, Uziel and El-Yaniv, ICLR 2019"
TRAUB = "Traub et al., NeurIPS 2024"
ILG = "Ilg et al., ECCV 2018"
PAPER = "Yuan, Li and Kuruoglu, MCNI"


def _regression(
    *,
    name: str,
    direction: Direction,
    unit: str,
    formula: str,
    source: str,
    compute: Callable[[Forecast], float],
    scale: bool = False,
) -> Metric:
    needs = frozenset({"draws", "scale"} if scale else {"draws"})
    return Metric(name, "regression", "selective", direction, None, unit, needs, formula, source, compute)


def _classification(
    *,
    name: str,
    direction: Direction,
    unit: str,
    formula: str,
    source: str,
    compute: Callable[[Forecast], float],
    family: Family = "selective",
    draws: bool = False,
) -> Metric:
    needs = frozenset({"probabilities", "draws"} if draws else {"probabilities"})
    return Metric(name, "classification", family, direction, None, unit, needs, formula, source, compute)


def _aurc_by(score: Callable[[Forecast], FloatArray]) -> Callable[[Forecast], float]:
    return lambda f: selective.area_under_risk_coverage(ranked(score(f), f.loss))


def _coverage_at_half_std(forecast: Forecast) -> float:
    if forecast.scale is None or forecast.scale.std == 0:
        return math.nan
    return selective.coverage_at_risk(forecast.ranked_loss, 0.5 * forecast.scale.std, root=True)


def _between_right_and_wrong(measure: Callable[[ArrayLike, ArrayLike], float]) -> Callable[[Forecast], float]:
    """Return the measure of how uncertainty tells wrong from right predictions; NaN unless there are both."""

    def compute(forecast: Forecast) -> float:
        right = forecast.correct
        if np.all(right) or not np.any(right):
            return math.nan
        return measure(forecast.uncertainty[right], forecast.uncertainty[~right])

    return compute


METRICS: tuple[Metric, ...] = (
    _regression(
        name="aurc_rmse",
        direction="lower",
        unit="target unit",
        formula="mean_k RMSE of the k rows of least variance, k = 1..N",
        source=GEIFMAN,
        compute=lambda f: selective.area_under_risk_coverage(f.ranked_loss, root=True),
    ),
    _regression(
        name="e_aurc_rmse",
        direction="lower",
        unit="target unit",
        formula="aurc_rmse minus that of rows sorted by their true error",
        source=GEIFMAN,
        compute=lambda f: selective.excess_area_under_risk_coverage(f.ranked_loss, f.loss, root=True),
    ),
    _regression(
        name="augrc_mse",
        direction="lower",
        unit="target unit^2",
        formula="area under (1/N) sum_{i<=k} (y_i - m_i)^2 over k/N, rows by ascending variance",
        source=TRAUB,
        compute=lambda f: selective.area_under_generalised_risk(f.ranked_loss),
    ),
    _regression(
        name="ause_rmse",
        direction="lower",
        unit="1",
        formula="e_aurc_rmse / RMSE of all rows",
        source=ILG,
        compute=lambda f: selective.sparsification_error(f.ranked_loss, f.loss, root=True),
    ),
    _regression(
        name="rmse_at_80",
        direction="lower",
        unit="target unit",
        formula="RMSE of the 80 % of rows of least variance",
        source=PAPER,
        compute=lambda f: selective.risk_at_coverage(f.ranked_loss, 0.8, root=True),
    ),
    _regression(
        name="coverage_at_half_std",
        direction="higher",
        unit="probability",
        formula="largest k/N at which the RMSE of the k rows of least variance is at most half the train std",
        source="El-Yaniv and Wiener, JMLR 2010",
        compute=_coverage_at_half_std,
        scale=True,
    ),
    _classification(
        name="aurc",
        direction="lower",
        unit="probability",
        formula="mean_k error rate of the k rows of least 1 - max_c p_c, k = 1..N",
        source=GEIFMAN,
        compute=lambda f: selective.area_under_risk_coverage(f.ranked_loss),
    ),
    _classification(
        name="aurc_entropy",
        direction="lower",
        unit="probability",
        formula="as aurc, rows sorted by predictive entropy",
        source=GEIFMAN,
        compute=_aurc_by(lambda f: uncertainty.entropy(f.mean)),
    ),
    _classification(
        name="aurc_mutual_information",
        direction="lower",
        unit="probability",
        formula="as aurc, rows sorted by the mutual information between draws and class",
        source=GEIFMAN,
        compute=_aurc_by(lambda f: uncertainty.mutual_information(f.draws)),
        draws=True,
    ),
    _classification(
        name="aurc_variance",
        direction="lower",
        unit="probability",
        formula="as aurc, rows sorted by the variance over draws, summed over classes",
        source=PAPER,
        compute=_aurc_by(lambda f: uncertainty.total_variance(f.draws)),
        draws=True,
    ),
    _classification(
        name="e_aurc",
        direction="lower",
        unit="probability",
        formula="aurc minus that of all right rows before all wrong ones",
        source=GEIFMAN,
        compute=lambda f: selective.excess_area_under_risk_coverage(f.ranked_loss, f.loss),
    ),
    _classification(
        name="augrc",
        direction="lower",
        unit="probability",
        formula="area under (1/N) (number wrong among the first k) over k/N, rows by ascending 1 - max_c p_c",
        source=TRAUB,
        compute=lambda f: selective.area_under_generalised_risk(f.ranked_loss),
    ),
    _classification(
        name="ause",
        direction="lower",
        unit="1",
        formula="e_aurc / error rate of all rows",
        source=ILG,
        compute=lambda f: selective.sparsification_error(f.ranked_loss, f.loss),
    ),
    _classification(
        name="error_at_80",
        direction="lower",
        unit="probability",
        formula="error rate of the 80 % of rows of least 1 - max_c p_c",
        source="El-Yaniv and Wiener, JMLR 2010",
        compute=lambda f: selective.risk_at_coverage(f.ranked_loss, 0.8),
    ),
    _classification(
        name="coverage_at_5",
        direction="higher",
        unit="probability",
        formula="largest k/N at which the error rate of the first k rows is at most 5 %",
        source="El-Yaniv and Wiener, JMLR 2010",
        compute=lambda f: selective.coverage_at_risk(f.ranked_loss, 0.05),
    ),
    _classification(
        name="error_auroc",
        direction="higher",
        unit="probability",
        formula="P(1 - max_c p_c of a wrong row > that of a right row), ties one half",
        source="Hendrycks and Gimpel, ICLR 2017",
        compute=_between_right_and_wrong(detection.auroc),
        family="detection",
    ),
    _classification(
        name="error_aupr",
        direction="higher",
        unit="probability",
        formula="average precision of 1 - max_c p_c for wrong rows",
        source="Hendrycks and Gimpel, ICLR 2017",
        compute=_between_right_and_wrong(detection.average_precision),
        family="detection",
    ),
    _classification(
        name="error_fpr95",
        direction="lower",
        unit="probability",
        formula="share of right rows flagged when 95 % of the wrong ones are, by 1 - max_c p_c",
        source="Liang, Li and Srikant, ICLR 2018",
        compute=_between_right_and_wrong(detection.false_positive_rate),
        family="detection",
    ),
)
