"""Compare two methods on every dataset and metric, and over the datasets.

The verdict on a dataset is that of the paired t-test, corrected where splits overlap (Nadeau and Bengio) and for the
whole family of tests; docs/statistics.md shows by simulation that it keeps its level. All other numbers are evidence
beside it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pandas as pd

from bench.counts import plural
from bench.errors import UserError, unknown_name
from bench.stats.cell_counts import CellCounts, Cells
from bench.stats.compare_over_datasets import OverallComparison, compare_over_datasets
from bench.stats.corrections import NAMES, adjust_p_values
from bench.stats.dataset_comparison import FEWEST_PAIRS, DatasetComparison, Interval, compare_on_dataset, decide
from bench.stats.doubts import with_doubts
from bench.stats.equal_draws import unequal_draws
from bench.stats.pairing import MetricLike, Repeats, grids, pair_grid, pair_repeats, require_better
from bench.stats.settings import Settings

Group = tuple[MetricLike, Repeats]  # the pairs of one dataset, and the metric that they are compared by


@dataclass(frozen=True)
class Comparison:
    """All results of comparing A with B."""

    a: str
    b: str
    settings: Settings
    family: str  # which tests were corrected together, in words
    family_size: int
    rows: tuple[DatasetComparison, ...]
    across: tuple[OverallComparison, ...]  # one per metric with at least two datasets

    @property
    def frame(self) -> pd.DataFrame:
        """One row per dataset and metric: means, difference with its interval, p-values and the verdict on A."""
        names = ("dataset", "metric", "pairs", "mean_a", "mean_b", "difference", "p", "p_adjusted", "verdict")
        rows = [{name: getattr(row, name) for name in names} for row in self.rows]
        ends = [row.interval or Interval(math.nan, math.nan, "") for row in self.rows]
        return pd.DataFrame(rows, columns=names).assign(low=[end.low for end in ends], high=[end.high for end in ends])


def compare(
    frame: pd.DataFrame,
    a: str,
    b: str,
    measures: Sequence[MetricLike],
    *,
    cells: Cells = None,
    settings: Settings = Settings(),
) -> Comparison:
    """Compare A with B on every dataset by every metric.

    `frame` has one row per value (dataset, split, method, seed, metric, value). `cells` has one row per cell with its
    status; diverged, failed and missing cells are counted in it. A metric without a better raises UserError; one that
    is biased in the number of draws is not compared on datasets where the methods have different ones.
    """
    for measure in measures:
        require_better(measure)
    counts = CellCounts.of(cells)
    _check_names(frame, counts, a, b)
    groups = [
        (measure, _at_equal_draws(measure, repeated, [a, b], counts))
        for measure in measures
        for repeated in pair_repeats(frame, measure, [a, b], counts)
    ]
    if not groups:
        names = ", ".join(measure.name for measure in measures) or "none"
        raise UserError(f"{a} and {b} have no results in common by {names}; see 'uqbench list metrics'")
    return _compare_family({a: groups}, b, settings)[0]


def compare_each(
    frame: pd.DataFrame,
    methods: Sequence[str],
    b: str,
    measures: Sequence[MetricLike],
    *,
    cells: Cells = None,
    settings: Settings = Settings(),
) -> list[Comparison]:
    """Compare each of several methods with B: like `compare` on the cells of the two methods, all in one family.

    The frame is read once.
    """
    for measure in measures:
        require_better(measure)
    wanted = {measure.name: measure for measure in measures}
    counts, tables = CellCounts.of(cells), grids(frame, list(wanted), [*methods, b])
    family: dict[str, list[Group]] = {}
    for a in methods:
        own = counts.only([a, b])
        for grid in (grid.of([a, b]) for grid in tables):
            if len(grid.values):
                measure = wanted[grid.metric]
                group = (measure, _at_equal_draws(measure, pair_grid(grid, own), [a, b], own))
                family.setdefault(a, []).append(group)
    return _compare_family(family, b, settings)


def _at_equal_draws(measure: MetricLike, repeated: Repeats, methods: Sequence[str], counts: CellCounts) -> Repeats:
    """Return the repeats, without values where the metric needs equal numbers of draws and the methods have others."""
    reason = unequal_draws(measure, repeated.dataset, methods, counts)
    return repeated.without_values(reason) if reason else repeated


def _compare_family(members: Mapping[str, Sequence[Group]], b: str, settings: Settings) -> list[Comparison]:
    """Compare every member with B; all tests on datasets are one family, those over datasets another."""
    size = sum(repeated.count >= FEWEST_PAIRS for groups in members.values() for _, repeated in groups)
    rows = [
        compare_on_dataset(measure, repeated, settings, size)
        for groups in members.values()
        for measure, repeated in groups
    ]
    p, equivalence, signs, trimmed = (
        adjust_p_values([getattr(row, name) for row in rows], settings.correction)
        for name in ("p", "equivalence_p", "sign_p", "trimmed_p")
    )
    for i, row in enumerate(rows):
        beside = replace(row, sign_p_adjusted=_p(signs[i]), trimmed_p_adjusted=_p(trimmed[i]))
        rows[i] = with_doubts(beside)
    decided = iter([decide(row, float(p[i]), float(equivalence[i]), settings) for i, row in enumerate(rows)])
    by_member = {a: tuple(islice(decided, len(groups))) for a, groups in members.items()}
    across = compare_over_datasets([(by_member[a], groups) for a, groups in members.items()], settings)
    words = ", ".join(
        plural(count, name)
        for count, name in (
            (len(members), "method"),
            (len({row.dataset for row in rows}), "dataset"),
            (len({row.metric for row in rows}), "metric"),
        )
        if count > 1 or name != "method"
    )
    family = f"{NAMES[settings.correction]} over {plural(size, 'test')} ({words})"
    return [
        Comparison(a, b, settings, family, size, own, overall)
        for (a, own), overall in zip(by_member.items(), across, strict=True)
    ]


def _p(value: float) -> float:
    """Return a p-value; all that do not exist are the same NaN, so that equal comparisons are equal."""
    return math.nan if math.isnan(value) else float(value)


def _check_names(frame: pd.DataFrame, counts: CellCounts, a: str, b: str) -> None:
    if a == b:
        raise UserError(f"{a} is compared with itself; give two different methods")
    known = set(frame["method"].unique()) | counts.methods()
    for name in (a, b):
        if name not in known:
            raise unknown_name("method", name, known)
