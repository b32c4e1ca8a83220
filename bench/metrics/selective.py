"""Selective prediction: what the risk becomes when only the rows of least uncertainty are kept.

All functions take `ranked` losses: `ranked(uncertainty, loss)`, the losses by ascending uncertainty with ties averaged.
The selective risk at coverage k / N is the mean of the first k losses, or its root for squared errors (`root=True`,
so that risk is the RMSE, as in the paper). For tied rows, the mean loss is its expectation under random tie-breaking;
the RMSE is the root of that expectation.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bench.errors import UserError
from bench.metrics.arrays import FloatArray, float_array


class RiskCoverage(NamedTuple):
    """Coverage k / N and the risk of the k rows kept, k = 1..N."""

    coverage: FloatArray
    risk: FloatArray


def risk_coverage_curve(ranked: ArrayLike, root: bool = False) -> RiskCoverage:
    """Return the selective risk r_k of the k least uncertain rows, for every k = 1..N.

    El-Yaniv and Wiener, On the Foundations of Noise-free Selective Classification, JMLR 2010.
    """
    losses = _checked(ranked)
    kept = np.arange(1, losses.size + 1)
    risk = np.cumsum(losses) / kept
    return RiskCoverage(kept / losses.size, np.sqrt(risk) if root else risk)


def area_under_risk_coverage(ranked: ArrayLike, root: bool = False) -> float:
    """AURC = (1 / N) sum_k r_k, the mean of the selective risks; lower is better.

    Geifman, Uziel and El-Yaniv, Bias-Reduced Uncertainty Estimation for Deep Neural Classifiers, ICLR 2019. Others
    integrate the curve by trapezoids. Without ties, with r_1 the first and r_N the last risk (and without the factor
    1000 by which FD-Shifts displays it):

    - over [1/N, 1] (metrics.py of FD-Shifts): AURC - (r_1 + r_N) / (2N),
    - the same divided by 1 - 1/N (torch-uncertainty),
    - over [0, 1] with r_1 held down to coverage 0 (rc_stats.py of FD-Shifts, the later one): AURC + (r_1 - r_N) / (2N).
    """
    return float(risk_coverage_curve(ranked, root).risk.mean())


def excess_area_under_risk_coverage(ranked: ArrayLike, losses: ArrayLike, root: bool = False) -> float:
    """E-AURC = AURC minus the AURC of the best possible order of the same `losses`; never below 0.

    Geifman, Uziel and El-Yaniv, ICLR 2019. The best order is that of the losses themselves on this very sample, not
    the large-sample formula r + (1 - r) log(1 - r). `losses` are those behind `ranked`, in any order, before ties
    were averaged.
    """
    scored = _checked(ranked)
    best = np.sort(_checked(losses))
    if best.size != scored.size:
        raise UserError(f"losses: expected as many as ranked ({scored.size}), got {best.size}")
    # Rounding of two nearly equal areas may leave -1e-17.
    return max(area_under_risk_coverage(scored, root) - area_under_risk_coverage(best, root), 0.0)


def sparsification_error(ranked: ArrayLike, losses: ArrayLike, root: bool = False) -> float:
    """AUSE: area between the sparsification curve and the oracle's, both divided by the risk of all rows.

    Ilg et al., Uncertainty Estimates and Multi-Hypotheses Networks for Optical Flow, ECCV 2018. Removing the k most
    uncertain rows leaves risk r_{N-k}; averaged over k = 0..N-1 the area is E-AURC / r_N. NaN where r_N is 0.
    """
    full = float(risk_coverage_curve(ranked, root).risk[-1])
    return excess_area_under_risk_coverage(ranked, losses, root) / full if full > 0 else math.nan


def area_under_generalised_risk(ranked: ArrayLike) -> float:
    """AUGRC: area under (1 / N) sum_{i <= k} loss_i over coverage k / N, by trapezoids from (0, 0); lower is better.

    Traub et al., Overcoming Common Flaws in the Evaluation of Selective Classification Systems, NeurIPS 2024. For 0/1
    losses of error rate e it equals (1 - AUROC) e (1 - e) + e^2 / 2, the AUROC being that of uncertainty for errors.
    """
    losses = _checked(ranked)
    joint = np.cumsum(losses) / losses.size
    return float((joint.sum() - 0.5 * joint[-1]) / losses.size)


def risk_at_coverage(ranked: ArrayLike, coverage: float, root: bool = False) -> float:
    """Return the risk of the fewest least uncertain rows that make up at least `coverage` of all."""
    if not 0 < coverage <= 1:
        raise UserError(f"coverage: expected a share above 0 and up to 1, got {coverage}")
    risk = risk_coverage_curve(ranked, root).risk
    # 0.07 * 100 is 7.000000000000001, which must not round up to 8 rows.
    kept = math.ceil(coverage * risk.size * (1 - 1e-12))
    return float(risk[kept - 1])


def coverage_at_risk(ranked: ArrayLike, risk: float, root: bool = False) -> float:
    """Return the largest coverage whose selective risk is at most `risk`; 0 where there is none."""
    if not risk >= 0:
        raise UserError(f"risk: expected a number that is not negative, got {risk}")
    curve = risk_coverage_curve(ranked, root)
    within = np.flatnonzero(curve.risk <= risk)
    return float(curve.coverage[within[-1]]) if within.size else 0.0


def _checked(ranked: ArrayLike) -> FloatArray:
    losses = float_array(ranked, "ranked", (None,))
    if losses.min() < 0:
        raise UserError(f"ranked: lowest loss is {losses.min():.6g}, losses are not negative")
    return losses
