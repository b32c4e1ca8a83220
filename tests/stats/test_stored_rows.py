"""The test over seeds and rows from the arrays of cells."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.stats

from bench.stats import RowTest, StoredRows

RNG = np.random.default_rng(1)
OBSERVED = RNG.normal(size=40)
Cells = Mapping[str, Mapping[str, Any]]


def cells(method: str, errors: Any, observed: Any = OBSERVED) -> dict[str, dict[str, Any]]:
    """Return four repeats of a method with these errors at every row."""
    return {f"{method}{n}": {"observed": observed, "mean": observed + errors} for n in range(4)}


def keys(method: str) -> tuple[str, ...]:
    return tuple(f"{method}{n}" for n in range(4))


def test_seeds_that_agree_are_a_paired_test_over_rows() -> None:
    own, base = RNG.normal(size=40), 1.5 * RNG.normal(size=40)
    stored = StoredRows((cells("a", own) | cells("b", base)).get)
    for metric, losses in (("rmse", (own**2, base**2)), ("mae", (np.abs(own), np.abs(base)))):
        found = stored.test(metric, keys("a"), keys("b"))
        assert isinstance(found, RowTest)
        assert found.p == pytest.approx(scipy.stats.ttest_rel(*losses).pvalue)
        assert found.difference == pytest.approx(np.mean(losses[0] - losses[1]))


def test_cells_are_read_once_for_all_metrics_and_only_for_metrics_over_rows() -> None:
    known, reads = cells("a", RNG.normal(size=40)) | cells("b", 1.0) | cells("c", 2.0), Counter[str]()

    def read(key: str) -> Mapping[str, Any] | None:
        reads[key] += 1
        return known.get(key)

    stored = StoredRows(read)
    assert stored.test("ece", keys("a"), keys("b")) == "not a mean of losses that stored predictions give"
    assert not reads
    for metric in ("rmse", "mae"):
        for method in ("a", "c"):
            stored.test(metric, keys(method), keys("b"))
    assert reads == dict.fromkeys(known, 1)
    # One read shows that a method has no predictions.
    assert stored.test("rmse", keys("none"), keys("b")) == "predictions are not stored"
    assert reads["none0"] == 1
    assert "none1" not in reads


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (cells("a", 1.0, OBSERVED[::-1]), "test rows differ"),
        (cells("a", 1.0) | {"a3": {"observed": OBSERVED + 1, "mean": OBSERVED}}, "test rows differ"),
        (cells("a", 1.0) | {"a2": {"mean": OBSERVED}}, "predictions are not stored"),
        (cells("a", np.inf), "losses are not finite"),
        (cells("a", 1.0) | {"a2": {"observed": OBSERVED, "mean": np.array("text")}}, "stored predictions are damaged"),
    ],
)
def test_what_cannot_be_tested_has_a_reason(other: Cells, reason: str) -> None:
    stored = StoredRows({**cells("b", 0.5), **other}.get)
    assert stored.test("rmse", keys("a"), keys("b")) == reason


def test_one_repeat_is_not_tested() -> None:
    assert StoredRows(cells("a", 1.0).get).test("rmse", ("a0",), ("a1",)) == "fewer than 2 repeats or rows"
