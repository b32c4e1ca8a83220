"""Selective prediction: the risk when only the rows of least uncertainty are kept.

All functions take losses sorted by ascending uncertainty, with ties averaged: `sort_by_score(uncertainty, loss)`.
The selective risk at coverage k / N is the mean of the first k losses, or its root for squared errors (`root=True`,
so that risk is the RMSE, as in the paper). For tied rows, the mean loss is its expectation under random tie-breaking;
the RMSE is the root of that expectation.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics import uncertainty
from bench.metrics.arrays import FloatArray, float_array
from bench.metrics.forecast import Forecast
from bench.metrics.metric import PAPER, Metric, Template
from bench.metrics.sorting import sort_by_score


class RiskCoverage(NamedTuple):
    """Coverage k / N and the risk of the k rows kept, k = 1..N."""

    coverage: FloatArray
    risk: FloatArray


def risk_coverage_curve(sorted_losses: ArrayLike, root: bool = False) -> RiskCoverage:
    """Return the selective risk r_k of the k least uncertain rows, for every k = 1..N.

    El-Yaniv and Wiener, On the Foundations of Noise-free Selective Classification, JMLR 2010.
    """
    losses = _checked(sorted_losses)
    kept = np.arange(1, losses.size + 1)
    risk = np.cumsum(losses) / kept
    return RiskCoverage(kept / losses.size, np.sqrt(risk) if root else risk)


def area_under_risk_coverage(sorted_losses: ArrayLike, root: bool = False) -> float:
    """AURC = (1 / N) sum_k r_k, the mean of the selective risks; lower is better.

    Geifman, Uziel and El-Yaniv, Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers, ICLR 2019. Others
    integrate the curve by trapezoids. Without ties, with r_1 the first and r_N the last risk (and without the factor
    1000 by which FD-Shifts displays it):

    - over [1/N, 1] (metrics.py of FD-Shifts): AURC - (r_1 + r_N) / (2N),
    - the same divided by 1 - 1/N (torch-uncertainty),
    - over [0, 1] with r_1 held down to coverage 0 (rc_stats.py of FD-Shifts, the later one): AURC + (r_1 - r_N) / (2N).
    """
    return float(risk_coverage_curve(sorted_losses, root).risk.mean())


def excess_area_under_risk_coverage(sorted_losses: ArrayLike, losses: ArrayLike, root: bool = False) -> float:
    """E-AURC = AURC minus the AURC of the best possible order of the same `losses`; never below 0.

    Geifman, Uziel and El-Yaniv, ICLR 2019. The best order is that of the losses themselves on this very sample, not
    the large-sample formula r + (1 - r) log(1 - r). `losses` are the same losses in any order, before ties were
    averaged.
    """
    scored = _checked(sorted_losses)
    best = np.sort(_checked(losses))
    if best.size != scored.size:
        raise UserError(f"losses: expected as many as sorted_losses ({scored.size}), got {best.size}")
    # Rounding of two nearly equal areas may leave -1e-17.
    return max(area_under_risk_coverage(scored, root) - area_under_risk_coverage(best, root), 0.0)


def sparsification_error(sorted_losses: ArrayLike, losses: ArrayLike, root: bool = False) -> float:
    """AUSE: area between the sparsification curve and the oracle's, both divided by the risk of all rows.

    Ilg et al., Uncertainty Estimates and Multi-Hypotheses Networks for Optical Flow, ECCV 2018. Removing the k most
    uncertain rows leaves risk r_{N-k}; averaged over k = 0..N-1 the area is E-AURC / r_N. NaN where r_N is 0.
    """
    full = float(risk_coverage_curve(sorted_losses, root).risk[-1])
    return excess_area_under_risk_coverage(sorted_losses, losses, root) / full if full > 0 else math.nan


def area_under_generalised_risk(sorted_losses: ArrayLike) -> float:
    """AUGRC: area under (1 / N) sum_{i <= k} loss_i over coverage k / N, by trapezoids from (0, 0); lower is better.

    Traub et al., Overcoming Common Flaws in the Evaluation of Selective Classification Systems, NeurIPS 2024. For 0/1
    losses of error rate e it equals (1 - AUROC) e (1 - e) + e^2 / 2, the AUROC being that of uncertainty for errors.
    """
    losses = _checked(sorted_losses)
    joint = np.cumsum(losses) / losses.size
    return float((joint.sum() - 0.5 * joint[-1]) / losses.size)


def risk_at_coverage(sorted_losses: ArrayLike, coverage: float, root: bool = False) -> float:
    """Return the risk of the fewest least uncertain rows that make up at least `coverage` of all."""
    if not 0 < coverage <= 1:
        raise UserError(f"coverage: expected a share above 0 and up to 1, got {coverage}")
    risk = risk_coverage_curve(sorted_losses, root).risk
    # 0.07 * 100 is 7.000000000000001, which must not round up to 8 rows.
    kept = math.ceil(coverage * risk.size * (1 - 1e-12))
    return float(risk[kept - 1])


def coverage_at_risk(sorted_losses: ArrayLike, risk: float, root: bool = False) -> float:
    """Return the largest coverage whose selective risk is at most `risk`; 0 where there is none."""
    if not risk >= 0:
        raise UserError(f"risk: expected a number that is not negative, got {risk}")
    curve = risk_coverage_curve(sorted_losses, root)
    within = np.flatnonzero(curve.risk <= risk)
    return float(curve.coverage[within[-1]]) if within.size else 0.0


def _checked(sorted_losses: ArrayLike) -> FloatArray:
    losses = float_array(sorted_losses, "sorted_losses", (None,))
    if losses.min() < 0:
        raise UserError(f"sorted_losses: lowest loss is {losses.min():.6g}, losses are not negative")
    return losses


def _aurc_by(score: Callable[[Forecast], FloatArray]) -> Callable[[Forecast], float]:
    return lambda f: area_under_risk_coverage(sort_by_score(score(f), f.loss))


def _coverage_at_half_std(f: Forecast) -> float:
    if f.scale is None or f.scale.std == 0:
        return math.nan
    return coverage_at_risk(f.sorted_loss, 0.5 * f.scale.std, root=True)


_GEIFMAN, _TRAUB = "Geifman, Uziel and El-Yaniv, ICLR 2019", "Traub et al., NeurIPS 2024"
_ILG, _EL_YANIV = "Ilg et al., ECCV 2018", "El-Yaniv and Wiener, JMLR 2010"
_by_variance = Template("regression", "selective", "target unit", needs="variance")
_by_confidence = Template("classification", "selective", "probability", needs="probabilities")
_by_draws = replace(_by_confidence, needs="probabilities disagreement")
METRICS: tuple[Metric, ...] = (
    _by_variance("aurc_rmse", "mean_k RMSE of the k rows of least v_i, k = 1..N", _GEIFMAN).by(
        lambda f: area_under_risk_coverage(f.sorted_loss, root=True)
    ),
    _by_variance("e_aurc_rmse", "aurc_rmse minus that of rows sorted by their true error", _GEIFMAN).by(
        lambda f: excess_area_under_risk_coverage(f.sorted_loss, f.loss, root=True)
    ),
    _by_variance(
        "augrc_mse",
        "area under (1/N) sum_{i<=k} (y_i - m_i)^2 over k/N, rows by ascending v_i",
        _TRAUB,
        unit="target unit^2",
    ).by(lambda f: area_under_generalised_risk(f.sorted_loss)),
    _by_variance("ause_rmse", "e_aurc_rmse / RMSE of all rows", _ILG, unit="1").by(
        lambda f: sparsification_error(f.sorted_loss, f.loss, root=True)
    ),
    _by_variance("rmse_at_80", "RMSE of the 80 % of rows of least v_i", PAPER).by(
        lambda f: risk_at_coverage(f.sorted_loss, 0.8, root=True)
    ),
    Template("regression", "selective", "probability", "higher", needs="variance scale")(
        "coverage_at_half_std",
        "largest k/N at which the RMSE of the k rows of least v_i is at most half the train std",
        _EL_YANIV,
    ).by(_coverage_at_half_std),
    _by_confidence("aurc", "mean_k error rate of the k rows of least 1 - max_c p_c, k = 1..N", _GEIFMAN).by(
        lambda f: area_under_risk_coverage(f.sorted_loss)
    ),
    _by_confidence("aurc_entropy", "as aurc, rows sorted by predictive entropy", _GEIFMAN).by(
        _aurc_by(lambda f: uncertainty.entropy(f.mean))
    ),
    _by_draws(
        "aurc_mutual_information", "as aurc, rows sorted by the mutual information between draws and class", _GEIFMAN
    ).by(_aurc_by(uncertainty.model_information)),
    _by_draws("aurc_variance", "as aurc, rows sorted by the variance over draws, summed over classes", PAPER).by(
        _aurc_by(uncertainty.model_variance)
    ),
    _by_confidence("e_aurc", "aurc minus that of all right rows before all wrong ones", _GEIFMAN).by(
        lambda f: excess_area_under_risk_coverage(f.sorted_loss, f.loss)
    ),
    _by_confidence(
        "augrc", "area under (1/N) (number wrong among the first k) over k/N, rows by ascending 1 - max_c p_c", _TRAUB
    ).by(lambda f: area_under_generalised_risk(f.sorted_loss)),
    _by_confidence("ause", "e_aurc / error rate of all rows", _ILG, unit="1").by(
        lambda f: sparsification_error(f.sorted_loss, f.loss)
    ),
    _by_confidence("error_at_80", "error rate of the 80 % of rows of least 1 - max_c p_c", _EL_YANIV).by(
        lambda f: risk_at_coverage(f.sorted_loss, 0.8)
    ),
    replace(_by_confidence, direction="higher")(
        "coverage_at_5", "largest k/N at which the error rate of the first k rows is at most 5 %", _EL_YANIV
    ).by(lambda f: coverage_at_risk(f.sorted_loss, 0.05)),
)
