from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.errors import UserError
from bench.metrics import auroc, average_precision, false_positive_rate

Sets = tuple[NDArray[np.float64], NDArray[np.float64]]


@pytest.fixture(params=["distinct", "tied"])
def sets(request: pytest.FixtureRequest, rng: np.random.Generator) -> Sets:
    negatives, positives = rng.normal(0, 1, 700), rng.normal(1, 1.5, 300)
    if request.param == "tied":
        return np.round(negatives, 1), np.round(positives, 1)
    return negatives, positives


def _labelled(sets: Sets) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.repeat([0.0, 1.0], [s.size for s in sets]), np.concatenate(sets)


def test_auroc_and_average_precision_equal_scikit_learn(oracle: Callable[[str], Any], sets: Sets) -> None:
    metrics = oracle("sklearn.metrics")
    assert auroc(*sets) == pytest.approx(metrics.roc_auc_score(*_labelled(sets)), abs=1e-12)
    assert average_precision(*sets) == pytest.approx(metrics.average_precision_score(*_labelled(sets)), abs=1e-12)


def test_auroc_equals_scipys_rank_statistic(oracle: Callable[[str], Any], sets: Sets) -> None:
    wins = oracle("scipy.stats").mannwhitneyu(sets[1], sets[0]).statistic
    assert auroc(*sets) == pytest.approx(wins / (700 * 300), abs=1e-12)


@pytest.mark.parametrize("recall", [0.5, 0.95, 1.0])
def test_false_positive_rate_equals_the_roc_curve_of_scikit_learn(
    recall: float, oracle: Callable[[str], Any], sets: Sets
) -> None:
    fpr, tpr, _ = oracle("sklearn.metrics").roc_curve(*_labelled(sets), drop_intermediate=False)
    assert false_positive_rate(*sets, recall=recall) == pytest.approx(fpr[np.argmax(tpr >= recall)], abs=1e-12)


def test_extremes_and_no_information() -> None:
    low, high = [0.0, 1.0], [2.0, 3.0, 4.0]
    assert (auroc(low, high), average_precision(low, high), false_positive_rate(low, high)) == (1.0, 1.0, 0.0)
    assert (auroc(high, low), false_positive_rate(high, low)) == (0.0, 1.0)
    assert auroc([1.0, 1.0], [1.0]) == 0.5
    assert average_precision([1.0, 1.0, 1.0], [1.0]) == 0.25
    assert auroc([0.0], [1.0]) == 1.0


def test_an_empty_set_is_an_error() -> None:
    for measure in (auroc, average_precision, false_positive_rate):
        with pytest.raises(UserError, match="positives: empty"):
            measure([1.0], [])
        with pytest.raises(UserError, match="negatives: empty"):
            measure([], [1.0])


def test_a_recall_outside_0_and_1_is_an_error() -> None:
    with pytest.raises(UserError, match="recall"):
        false_positive_rate([0.0], [1.0], recall=0.0)
