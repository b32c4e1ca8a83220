"""Differences over seeds and test rows."""

import numpy as np
import pytest
import scipy.stats

from bench.stats.row_sampling import row_test

RNG = np.random.default_rng(0)


def test_the_error_is_that_of_the_mean_over_seeds_and_rows() -> None:
    """Its square is the variance of means of fresh seeds and rows, on average."""
    found, means = [], []
    for _ in range(1_500):
        d = 0.5 * RNG.normal(size=40) + 0.3 * RNG.normal(size=(12, 1)) + RNG.normal(size=(12, 40))
        found.append(row_test(d).error ** 2)
        means.append(d.mean())
    truth = 0.25 / 40 + 0.09 / 12 + 1.0 / 480
    assert np.mean(found) == pytest.approx(truth, rel=0.1)
    assert np.var(means) == pytest.approx(truth, rel=0.15)


def test_it_is_the_analysis_of_variance_by_hand() -> None:
    d = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]])
    rows, seeds = d.mean(axis=0), d.mean(axis=1)
    rest = sum((d[s, r] - rows[r] - seeds[s] + d.mean()) ** 2 for s in range(2) for r in range(3)) / 2
    parts = (2 * rows.var(ddof=1), 3 * seeds.var(ddof=1), rest)
    total = max(parts[0] + parts[1] - parts[2], parts[0], parts[1])
    found = row_test(d)
    assert found.error == pytest.approx(np.sqrt(total / 6))
    assert found.freedom == pytest.approx(total**2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 1 + parts[2] ** 2 / 2))
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(abs(d.mean()) / found.error, found.freedom))


def test_many_alike_seeds_are_a_test_over_rows() -> None:
    """Classifiers that differ between seeds in nothing: 0/1 losses, so the rows on which they disagree decide."""
    d = np.repeat(RNG.choice([-1.0, 0.0, 1.0], p=[0.05, 0.8, 0.15], size=300)[None], 10, axis=0)
    over_rows = scipy.stats.ttest_1samp(d[0], 0.0)
    assert row_test(d).p == pytest.approx(over_rows.pvalue)
    discordant = (int((d[0] > 0).sum()), int((d[0] < 0).sum()))
    mcnemar = scipy.stats.chi2.sf((discordant[0] - discordant[1]) ** 2 / sum(discordant), 1)
    assert row_test(d).p == pytest.approx(mcnemar, rel=0.5)


def test_without_variance() -> None:
    assert row_test(np.zeros((3, 4))).p == 1.0
    assert row_test(np.ones((3, 4))).p == 0.0
