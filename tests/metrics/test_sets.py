import numpy as np
import pytest

from bench.errors import UserError
from bench.metrics import Forecast, mean_set_size, score, set_coverage, singleton_share, size_stratified_coverage

SETS = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 1, 0]], dtype=bool)
LABELS = np.array([0, 2, 1, 2, 0])


def test_by_hand() -> None:
    assert mean_set_size(SETS) == pytest.approx((1 + 2 + 0 + 3 + 1) / 5)
    assert set_coverage(SETS, LABELS) == pytest.approx(2 / 5)
    assert singleton_share(SETS) == pytest.approx(2 / 5)
    assert size_stratified_coverage(SETS, LABELS) == 0.0  # the empty set, and {0, 1}
    assert size_stratified_coverage(SETS, LABELS, fewest=2) == 0.5  # of the two sets of one class
    assert np.isnan(size_stratified_coverage(SETS, LABELS, fewest=3))


def test_they_equal_a_plain_loop(rng: np.random.Generator) -> None:
    sets, labels = rng.random((400, 6)) < 0.4, rng.integers(0, 6, 400)
    members = [set(np.flatnonzero(row)) for row in sets]
    covered = [label in member for label, member in zip(labels, members, strict=True)]
    assert mean_set_size(sets) == pytest.approx(np.mean([len(member) for member in members]))
    assert set_coverage(sets, labels) == pytest.approx(np.mean(covered))
    by_size = {k: [c for c, m in zip(covered, members, strict=True) if len(m) == k] for k in range(7)}
    lowest = min(np.mean(own) for own in by_size.values() if len(own) >= 20)
    assert size_stratified_coverage(sets, labels, fewest=20) == pytest.approx(lowest)


def test_a_forecast_with_sets_has_their_metrics(rng: np.random.Generator) -> None:
    probabilities = rng.dirichlet(np.ones(3), size=(1, 5))
    values = score(Forecast("classification", LABELS, probabilities, sets=SETS))
    assert values["set_size"] == mean_set_size(SETS)
    assert values["set_coverage"] == set_coverage(SETS, LABELS)
    assert "set_coverage_by_size" not in values  # no size has 20 rows
    assert not any(name.startswith("set_") for name in score(Forecast("classification", LABELS, probabilities)))


def test_what_is_no_set_is_an_error(rng: np.random.Generator) -> None:
    probabilities = rng.dirichlet(np.ones(3), size=(1, 5))
    with pytest.raises(UserError, match="sets: expected booleans"):
        mean_set_size(SETS.astype(float))
    with pytest.raises(UserError, match=r"sets: expected shape \[5, 3\], got \[4, 3\]"):
        Forecast("classification", LABELS, probabilities, sets=SETS[:4])
    with pytest.raises(UserError, match="sets belong to classification"):
        Forecast("regression", np.zeros(5), np.zeros((2, 5)), sets=SETS)
    with pytest.raises(UserError, match="fewest"):
        size_stratified_coverage(SETS, LABELS, fewest=0)
