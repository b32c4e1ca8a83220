"""Selective metrics against the other conventions, written here from their definitions as loops over rows."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.errors import UserError
from bench.metrics import (
    area_under_generalised_risk,
    area_under_risk_coverage,
    auroc,
    coverage_at_risk,
    excess_area_under_risk_coverage,
    risk_at_coverage,
    risk_coverage_curve,
    sort_by_score,
    sparsification_error,
)

Floats = NDArray[np.float64]


@pytest.fixture(params=["0/1 losses", "squared errors"])
def losses(request: pytest.FixtureRequest, rng: np.random.Generator) -> Floats:
    if request.param == "0/1 losses":
        return (rng.random(137) < 0.3).astype(float)
    return rng.gamma(0.5, size=137)


@pytest.fixture
def scores(losses: Floats, rng: np.random.Generator) -> Floats:
    return losses + rng.normal(0, 1, losses.size)


def _risks(scores: Floats, losses: Floats) -> list[float]:
    """Selective risks from one row kept to all, a row at a time."""
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    return [math.fsum(losses[i] for i in order[:k]) / k for k in range(1, len(order) + 1)]


def _fd_shifts_metrics(risks: list[float]) -> float:
    """Trapezoids between neighbouring coverages, from full coverage down to one row."""
    return math.fsum((a + b) / 2 / len(risks) for a, b in itertools.pairwise(risks))


def _fd_shifts_rc_stats(risks: list[float]) -> float:
    """As above, and a last trapezoid down to coverage 0 at the risk of one row."""
    return _fd_shifts_metrics(risks) + risks[0] / len(risks)


def _torch_uncertainty(oracle: Callable[[str], Any], risks: list[float]) -> float:
    """Trapezoidal area over coverages 1/N..1, normalised as if they spanned 0..1."""
    coverage = np.arange(1, len(risks) + 1) / len(risks)
    return float(oracle("sklearn.metrics").auc(coverage, risks)) / (1 - 1 / len(risks))


def test_aurc_has_exact_relations_to_the_other_conventions(
    oracle: Callable[[str], Any], scores: Floats, losses: Floats
) -> None:
    risks = _risks(scores, losses)
    n, first, last = len(risks), risks[0], risks[-1]
    ours = area_under_risk_coverage(sort_by_score(scores, losses))
    assert ours == pytest.approx(math.fsum(risks) / n, abs=1e-14)
    assert _fd_shifts_metrics(risks) == pytest.approx(ours - (first + last) / (2 * n), abs=1e-14)
    assert _fd_shifts_rc_stats(risks) == pytest.approx(ours + (first - last) / (2 * n), abs=1e-14)
    theirs = _torch_uncertainty(oracle, risks)
    assert theirs == pytest.approx(_fd_shifts_metrics(risks) / (1 - 1 / n), abs=1e-14)
    assert theirs == pytest.approx((ours - (first + last) / (2 * n)) / (1 - 1 / n), abs=1e-14)


def test_the_conventions_do_differ(oracle: Callable[[str], Any], rng: np.random.Generator) -> None:
    # Without this the relations above could hold for four equal numbers.
    scores, losses = rng.random(137), rng.gamma(0.5, size=137)
    risks = _risks(scores, losses)
    values = [
        area_under_risk_coverage(sort_by_score(scores, losses)),
        _fd_shifts_metrics(risks),
        _fd_shifts_rc_stats(risks),
        _torch_uncertainty(oracle, risks),
    ]
    assert min(abs(a - b) for a, b in itertools.combinations(values, 2)) > 1e-5


def test_curve_is_the_risk_of_the_rows_kept(scores: Floats, losses: Floats) -> None:
    curve = risk_coverage_curve(sort_by_score(scores, losses))
    np.testing.assert_allclose(curve.risk, _risks(scores, losses), rtol=1e-12)
    np.testing.assert_allclose(curve.coverage, np.arange(1, 138) / 137)
    np.testing.assert_allclose(risk_coverage_curve(sort_by_score(scores, losses), root=True).risk, np.sqrt(curve.risk))


def test_ties_give_the_expectation_under_random_tie_breaking() -> None:
    scores, losses = [0.0, 1.0, 1.0, 1.0, 2.0, 2.0], [0.5, 0.0, 1.0, 1.0, 3.0, 0.0]
    areas, joint_areas = [], []
    for middle in itertools.permutations([1, 2, 3]):
        for end in itertools.permutations([4, 5]):
            resolved = [losses[i] for i in (0, *middle, *end)]
            areas.append(area_under_risk_coverage(resolved))
            joint_areas.append(area_under_generalised_risk(resolved))
    assert area_under_risk_coverage(sort_by_score(scores, losses)) == pytest.approx(np.mean(areas), abs=1e-14)
    assert area_under_generalised_risk(sort_by_score(scores, losses)) == pytest.approx(np.mean(joint_areas), abs=1e-14)


def test_constant_scores_have_the_risk_of_all_rows_everywhere(losses: Floats) -> None:
    curve = risk_coverage_curve(sort_by_score(np.zeros(losses.size), losses))
    np.testing.assert_allclose(curve.risk, losses.mean(), rtol=1e-12)


def test_e_aurc_is_zero_for_the_best_order_and_approaches_its_formula(rng: np.random.Generator) -> None:
    losses = (rng.random(100_000) < 0.2).astype(float)
    assert excess_area_under_risk_coverage(sort_by_score(losses, losses), losses) == 0.0
    error = losses.mean()
    best = area_under_risk_coverage(sort_by_score(losses, losses))
    assert best == pytest.approx(error + (1 - error) * math.log(1 - error), abs=1e-4)
    constant = excess_area_under_risk_coverage(sort_by_score(np.zeros(losses.size), losses), losses)
    assert constant == pytest.approx(error - best, abs=1e-12)


def test_augrc_is_that_of_fd_shifts_and_its_formula_by_auroc(rng: np.random.Generator) -> None:
    wrong = rng.random(500) < 0.3
    scores = np.round(wrong + rng.normal(size=500), 1)
    ours = area_under_generalised_risk(sort_by_score(scores, wrong))
    # FD-Shifts: trapezoids over the coverages at which the score changes, and (0, 0).
    thresholds = np.unique(scores)
    coverage = [0.0, *(np.mean(scores <= t) for t in thresholds)]
    joint = [0.0, *(np.mean(wrong & (scores <= t)) for t in thresholds)]
    assert ours == pytest.approx(float(np.trapezoid(joint, coverage)), abs=1e-14)
    error = wrong.mean()
    separation = auroc(scores[~wrong], scores[wrong])
    assert ours == pytest.approx((1 - separation) * error * (1 - error) + error**2 / 2, abs=1e-14)


@pytest.mark.parametrize("root", [False, True])
def test_ause_is_the_area_between_normalised_sparsification_curves(root: bool, scores: Floats, losses: Floats) -> None:
    def curve(order: NDArray[np.int64]) -> Floats:
        kept = [losses[order[: len(order) - removed]].mean() for removed in range(len(order))]
        values = np.sqrt(kept) if root else np.asarray(kept)
        normalised: Floats = values / values[0]
        return normalised

    expected = np.mean(curve(np.argsort(scores)) - curve(np.argsort(losses)))
    assert sparsification_error(sort_by_score(scores, losses), losses, root) == pytest.approx(expected, abs=1e-12)


def test_ause_is_undefined_without_risk() -> None:
    assert math.isnan(sparsification_error([0.0, 0.0], [0.0, 0.0]))


def test_risk_at_coverage_and_coverage_at_risk() -> None:
    losses = [0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert risk_at_coverage(losses, 0.3) == 0.0
    assert risk_at_coverage(losses, 0.31) == 0.25
    assert risk_at_coverage(losses, 1.0) == 0.6
    assert coverage_at_risk(losses, 0.0) == 0.3
    assert coverage_at_risk(losses, 0.2) == 0.5
    assert coverage_at_risk(losses, 0.6) == 1.0
    assert coverage_at_risk([1.0, 0.0], 0.1) == 0.0
    assert risk_at_coverage(np.arange(100.0), 0.07) == 3.0
    assert risk_at_coverage([4.0, 4.0], 1.0, root=True) == 2.0


def test_bad_parameters_are_errors() -> None:
    for coverage in (0.0, 1.1, math.nan):
        with pytest.raises(UserError, match="coverage"):
            risk_at_coverage([1.0], coverage)
    for risk in (-0.1, math.nan):
        with pytest.raises(UserError, match="risk"):
            coverage_at_risk([1.0], risk)
    with pytest.raises(UserError, match="not negative"):
        area_under_risk_coverage([-1.0])
    with pytest.raises(UserError, match="as many as sorted_losses"):
        excess_area_under_risk_coverage([1.0, 2.0], [1.0])
