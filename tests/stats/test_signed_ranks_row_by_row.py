"""Every signed-rank p that comparisons and rankings print is scipy's of its own values, whatever the other rows are."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.stats import Measure, compare, rank
from bench.stats.rank_tests import wilcoxon_holm

Results = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]
RMSE = Measure("rmse")
RNG = np.random.default_rng(2)
PAIRS = 16  # too many for permutations: with ties or zeros the normal approximation, without them exact


def test_rows_of_a_comparison(results: Results) -> None:
    a = {name: RNG.normal(size=PAIRS) for name in ("plain", "ties", "zeros")}
    b = {name: values + RNG.normal(0.5, size=PAIRS) for name, values in a.items()}
    b["ties"][:4] = a["ties"][:4] + 0.25
    b["zeros"][:3] = a["zeros"][:3]
    values = {(name, method): list(own[name]) for name in a for method, own in (("a", a), ("b", b))}
    frame, cells = results(values)
    for row in compare(frame, "a", "b", [RMSE], cells=cells).rows:
        expected = scipy.stats.wilcoxon(a[row.dataset] - b[row.dataset]).pvalue
        assert row.wilcoxon_p == pytest.approx(expected), row.dataset


@pytest.mark.parametrize("datasets", [8, PAIRS])
def test_pairs_of_a_ranking(results: Results, datasets: int) -> None:
    """a and b are equal on two datasets, a and c differ by the same amount on two: the pair of b and c has neither."""
    table = RNG.integers(0, 10**6, size=(datasets, 3)) / 2.0**20  # exact in binary: ties stay ties
    table[:2, 1] = table[:2, 0]
    table[2:4, 2] = table[2:4, 0] + 0.5
    values = {
        (f"d{i:02}", method): [float(row[j])] * 2 for i, row in enumerate(table) for j, method in enumerate("abc")
    }
    frame, cells = results(values)
    found = {frozenset((one.better, one.worse)): one.p for one in rank(frame, RMSE, cells=cells).pairs}
    holm = wilcoxon_holm(table)
    for i, j in combinations(range(3), 2):
        expected = scipy.stats.wilcoxon(table[:, i] - table[:, j]).pvalue
        assert found[frozenset(("abc"[i], "abc"[j]))] == pytest.approx(expected)
        assert holm[i, j][0] == pytest.approx(expected)
