"""Why a test of means may not hold its level on a dataset, and tests of other estimands beside it."""

import math
from dataclasses import replace

from bench.counts import plural
from bench.stats.dataset_comparison import DatasetComparison
from bench.stats.tests import FEWEST_TRIMMED, TRIM


def with_doubts(row: DatasetComparison) -> DatasetComparison:
    """Add skew, outliers and failures as doubts and to the messages, with tests of the median and the trimmed mean."""
    failures = f"{_runs(row.failures)} diverged or became infinite: not in the mean, but losses in these tests"
    if math.isnan(row.p):  # too few pairs for a test of the mean; failures may still decide
        return row if math.isnan(row.sign_p) else _note(row, f"{failures}: {_signs(row)}")
    reasons = [] if row.shape is None or row.deviation == 0.0 else row.shape.problems
    reasons += [failures] if row.failures else []
    if crashed := sum(one.failed for one in row.lost):
        reasons.append(f"{_runs(crashed)} failed with an error: not among the pairs")
    if not reasons:
        return row
    tests = "; ".join([_signs(row), *_trimmed(row)])
    note = f"{'; '.join(reasons)}. The test of the mean may not hold its level. Beside it: {tests}"
    return _note(replace(row, doubts=tuple(reasons)), note)


def _note(row: DatasetComparison, message: str) -> DatasetComparison:
    return replace(row, messages=(*row.messages, message))


def _runs(count: int) -> str:
    return plural(count, "run")


def _signs(row: DatasetComparison) -> str:
    if row.test_share:
        return "no sign test, as pairs of overlapping splits are not independent"
    if math.isnan(row.sign_p):
        return "too few pairs for a sign test"
    return (
        f"sign test of the median: A is better in {100 * row.better_probability:.0f} % of the pairs, "
        f"p = {row.sign_p_adjusted:.3g} after the same correction"
    )


def _trimmed(row: DatasetComparison) -> list[str]:
    """Return the test of the trimmed mean in words, with what it does not promise; nothing where there is none."""
    if math.isnan(row.trimmed_p):
        few = row.pairs < FEWEST_TRIMMED
        return [f"Yuen's test of the trimmed mean needs {FEWEST_TRIMMED} pairs"] if few else []
    skewed = row.shape is not None and abs(row.shape.skewness) > row.shape.skewness_cut
    doubt = " (no promise under such skew: up to 8 % false positives)" if skewed else ""
    return [
        f"Yuen's test of the {100 * TRIM:g} % trimmed mean: A - B = {row.trimmed_difference:.4g}, "
        f"p = {row.trimmed_p_adjusted:.3g} after the same correction{doubt}"
    ]
