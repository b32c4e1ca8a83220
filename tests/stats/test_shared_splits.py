"""Several seeds on each split: tests are of the means of splits, and the two variances are told apart."""

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.stats import Measure, Settings, compare, compare_all_pairs, rank
from bench.stats.shared_splits import are_shared, means_of_splits, variance_components
from bench.stats.tests import Array
from bench.stats.text import comparison_lines

Results = Callable[..., tuple[pd.DataFrame, pd.DataFrame]]
Oracle = Callable[[str], Any]
RMSE = Measure("rmse")
SPLITS, SEEDS = 6, 4
RNG = np.random.default_rng(5)
OF_SPLITS = RNG.normal(size=SPLITS)
NUMBERS = np.arange(SPLITS * SEEDS) % SPLITS
A = 0.3 + OF_SPLITS[NUMBERS] + 0.5 * RNG.normal(size=len(NUMBERS))
B = np.zeros(len(NUMBERS))


def shared(
    results: Results, repeats: tuple[str, float] = ("independent", 0.1), **more: list[float | None]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return frames in which the seeds share six splits, as a suite with `splits = 6` makes them."""
    values = {("d", method): own for method, own in {"a": list(A), "b": list(B), **more}.items()}
    frame, cells = results(values, same_rows=False, repeats=repeats)
    return frame.assign(split=frame["seed"] % SPLITS), cells.assign(split=cells["seed"] % SPLITS)


def of_splits(d: Array) -> Array:
    return np.array([d[number == NUMBERS].mean() for number in range(SPLITS)])


def test_means_of_splits() -> None:
    splits = np.array([7, 2, 2, 7, 5, 2])
    values = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [np.nan, 1.0, 1.0, 1.0, 2.0, 4.0]])
    expected = np.array([[row[splits == number].mean() for number in (2, 5, 7)] for row in values])
    np.testing.assert_allclose(means_of_splits(values, splits), expected)
    assert np.isnan(means_of_splits(values, splits)).sum() == 1  # what one split lacks is not lacking in others
    assert are_shared(splits)
    assert not are_shared(np.arange(6))
    assert not are_shared(np.zeros(6))


def test_the_variance_components_are_those_of_a_mixed_model(oracle: Oracle) -> None:
    """REML of statsmodels, which the analysis of variance equals where splits have the same number of seeds."""
    found = variance_components(A, NUMBERS)
    model = oracle("statsmodels.api").MixedLM(A, np.ones(len(A)), groups=NUMBERS).fit(reml=True)
    assert found.between_seeds == pytest.approx(np.sqrt(model.scale), rel=1e-3)
    assert found.between_splits == pytest.approx(np.sqrt(model.cov_re.item()), rel=1e-3)
    assert (found.splits, found.seeds) == (SPLITS, SEEDS)


def test_unequal_numbers_of_seeds_leave_the_components_unbiased() -> None:
    generator = np.random.default_rng(0)
    splits = np.repeat(np.arange(8), [1, 2, 3, 4, 5, 6, 7, 8])
    found = [
        variance_components(2.0 * generator.normal(size=8)[splits] + generator.normal(size=len(splits)), splits)
        for _ in range(2_000)
    ]
    assert np.mean([one.between_seeds**2 for one in found]) == pytest.approx(1.0, rel=0.03)
    assert np.mean([one.between_splits**2 for one in found]) == pytest.approx(4.0, rel=0.06)


def test_splits_that_do_not_differ_have_no_variance_of_their_own() -> None:
    assert variance_components(np.tile([1.0, -1.0], 4), np.repeat(np.arange(4), 2)).between_splits == 0.0


def test_independent_splits_are_tested_by_their_means(results: Results) -> None:
    frame, cells = shared(results)
    (row,) = compare(frame, "a", "b", [RMSE], cells=cells).rows
    means = of_splits(A - B)
    assert row.pairs == SPLITS
    assert row.p == pytest.approx(scipy.stats.ttest_1samp(means, 0.0).pvalue)
    assert row.wilcoxon_p == pytest.approx(scipy.stats.wilcoxon(means).pvalue)
    assert row.difference == pytest.approx(means.mean())
    assert row.deviation == pytest.approx(means.std(ddof=1))
    assert row.components is not None
    assert astuple(row.components) == pytest.approx(astuple(variance_components(A - B, NUMBERS)))


def test_overlapping_splits_are_corrected_besides(results: Results) -> None:
    frame, cells = shared(results, ("splits", 0.25))
    (row,) = compare(frame, "a", "b", [RMSE], cells=cells).rows
    means = of_splits(A - B)
    t = means.mean() / (means.std(ddof=1) * np.sqrt(1 / SPLITS + 0.25 / 0.75))
    assert row.p == pytest.approx(2 * scipy.stats.t.sf(abs(t), SPLITS - 1))


def test_the_margin_stays_that_of_runs(results: Results) -> None:
    """Averaging over seeds makes the test more precise; it does not change which difference matters."""
    frame, cells = shared(results)
    (row,) = compare(frame, "a", "b", [RMSE], cells=cells, settings=Settings()).rows
    assert row.margin == pytest.approx(0.5 * variance_components(A - B, NUMBERS).between_seeds / np.sqrt(2))


def test_the_distance_to_a_target_is_averaged_not_the_value(results: Results) -> None:
    """A method that misses the target by 1 on both sides alike misses it by 1."""
    frame, cells = shared(results)
    frame.loc[frame["method"] == "b", "value"] = np.where(np.arange(len(B)) // SPLITS % 2, 1.0, -1.0)
    (row,) = compare(frame, "a", "b", [Measure("rmse", "target", 0.0)], cells=cells).rows
    assert row.mean_b == 0.0
    assert row.difference == pytest.approx(of_splits(np.abs(A)).mean() - 1.0)


def test_all_pairs_give_the_same_p_also_where_a_value_is_missing(results: Results) -> None:
    frame, cells = shared(results, c=[None, *RNG.normal(size=len(A) - 1)])
    (table,) = compare_all_pairs(frame, [RMSE], cells=cells)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        (row,) = compare(frame, "abc"[i], "abc"[j], [RMSE], cells=cells).rows
        assert table.p[i, j] == pytest.approx(row.p)
        assert table.pairs[i, j] == row.pairs == SPLITS


def test_seeds_on_one_split_are_seeds_whatever_the_dataset_declares(results: Results) -> None:
    frame, cells = shared(results, ("splits", 0.1))
    frame["split"] = cells["split"] = 0
    (row,) = compare(frame, "a", "b", [RMSE], cells=cells).rows
    assert (row.repetition.kind, row.pairs, row.test_share) == ("seeds", len(A), 0.0)
    assert row.components is None


def test_the_same_rows_under_several_numbers_are_not_averaged(results: Results) -> None:
    frame, cells = shared(results, ("seeds", 0.1))
    (row,) = compare(frame, "a", "b", [RMSE], cells=cells).rows
    assert row.pairs == len(A)


def test_four_splits_are_too_few_whatever_the_number_of_seeds(results: Results) -> None:
    frame, cells = shared(results)
    kept = frame["split"] < 4
    (row,) = compare(frame[kept], "a", "b", [RMSE], cells=cells).rows
    assert np.isnan(row.p)
    assert row.messages[-1] == "4 splits: too few for a verdict, at least 5 are needed"


def test_the_two_variances_are_printed(results: Results) -> None:
    frame, cells = shared(results)
    text = " ".join(" ".join(comparison_lines(compare(frame, "a", "b", [RMSE], cells=cells))).split())
    one = variance_components(A - B, NUMBERS)
    assert "6 splits with 4 seeds each: A - B has a standard deviation of" in text
    assert f"{one.between_splits:.3g} over splits and of {one.between_seeds:.3g} over the seeds of a split" in text


def test_ranks_are_of_means_of_splits(results: Results) -> None:
    """One split has ten seeds on which b is better: by all runs b is first, by splits a is."""
    runs = [1.0] * 5 + [-1.0] * 10
    values = {(d, m): [r * s for r in runs] for d in "de" for m, s in (("a", -0.5), ("b", 0.5))}
    frame, cells = results(values, same_rows=False, repeats=("independent", 0.1))
    for each in (frame, cells):
        each["split"] = np.minimum(each["seed"], 5)
    found = rank(frame, RMSE, cells=cells)
    assert [one.method for one in found.methods] == ["a", "b"]
    assert found.methods[0].means[0] == pytest.approx(-0.5 * 4 / 6)
