"""Rank methods over the datasets of a suite by one metric."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from bench.counts import plural
from bench.errors import UserError, unknown_name
from bench.stats import rank_tests
from bench.stats.aggregate import (
    COMPARABLE,
    Estimate,
    comparable,
    improvement_probabilities,
    interquartile_mean_interval,
    standardised,
)
from bench.stats.cell_counts import CellCounts, Cells, States
from bench.stats.corrections import NAMES, adjust_p_values
from bench.stats.equal_draws import methods_with_equal_draws
from bench.stats.pairing import Direction, Grid, MetricLike, grids, pair_grid, require_better
from bench.stats.settings import Settings, Verdict
from bench.stats.tests import Array, signed_rank_sum, smallest_permutation_p, wilcoxon_test

FEWEST_DATASETS = 5  # with fewer, average ranks mean little
RESAMPLES = 2_000


@dataclass(frozen=True)
class MethodRank:
    """One method over all datasets."""

    method: str
    average_rank: float
    place: int | None  # 1 + the number of methods shown to be better (Nemenyi); None: too few datasets for a test
    groups: str  # letters: methods with a letter in common were not shown to differ
    score: Estimate  # interquartile mean of standardised losses: 0 is the average method, lower is better
    means: tuple[float, ...]  # of the metric, one per dataset


@dataclass(frozen=True)
class PairTest:
    """Two methods over the datasets, the better-ranked first: Wilcoxon's signed-rank test."""

    better: str
    worse: str
    rank_gap: float
    nemenyi_p: float
    p: float
    p_adjusted: float
    improvement: Estimate  # probability that a repeat of the first beats one of the second
    verdict: Verdict  # of the first


@dataclass(frozen=True)
class Ranking:
    """Average ranks by one metric, and which of them differ."""

    metric: str
    direction: Direction
    target: float | None
    settings: Settings
    datasets: tuple[str, ...]
    methods: tuple[MethodRank, ...]  # best first
    friedman: tuple[float, float]  # chi-squared corrected for ties, p
    friedman_demsar: tuple[float, float]  # the same without the correction, as in Demsar 2006
    iman_davenport: tuple[float, float]  # F of the tie-corrected statistic, p
    iman_davenport_demsar: tuple[float, float]
    critical_difference: float
    family: str
    pairs: tuple[PairTest, ...]
    messages: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """One row per method, the best first: average rank, groups not shown to differ, score with its interval."""
        rows = [
            {"metric": self.metric, "method": one.method, "average_rank": one.average_rank, "groups": one.groups}
            | {"score": one.score.value, "low": one.score.low, "high": one.score.high}
            for one in self.methods
        ]
        return pd.DataFrame(rows)


def rank(
    frame: pd.DataFrame,
    measure: MetricLike,
    *,
    methods: Sequence[str] | None = None,
    cells: Cells = None,
    settings: Settings = Settings(),
    pairwise: bool = True,
    intervals: bool = True,
) -> Ranking:
    """Rank methods over datasets by the mean of a metric over the repeats that all of them have.

    A method that diverged in a cell of a dataset, or has an infinite value there, is behind all that did not, and the
    further the more cells it lost; those are compared on all their repeats. A dataset on which a method has no value
    for another reason is left out, with a message. Without `pairwise` pairs are not tested, which takes longest;
    without `intervals` the ends of scores are NaN instead of bootstrapped. By a metric that is biased in the number of
    draws only the methods with the T of most are ranked.
    """
    require_better(measure)
    counts = CellCounts.of(cells)
    names, messages = _methods(frame, counts, measure, methods)
    names = _with_equal_draws(frame, measure, names, counts, messages)
    places = _datasets(frame, measure, names, counts, messages)
    if len(places) < 2:
        who = ", ".join(names) if len(names) < 4 else f"{len(names)} methods"
        raise UserError(
            f"{measure.name}: {plural(len(places), 'dataset')} with results of {who}; a ranking needs at least 2"
            f"{''.join('; ' + message for message in messages)}"
        )
    if len(places) < FEWEST_DATASETS:
        messages.append(
            f"{len(places)} datasets: too few to tell average ranks apart, at least {FEWEST_DATASETS} are needed"
        )
    couples = len(names) * (len(names) - 1) // 2
    smallest = smallest_permutation_p(len(places))
    if smallest * couples >= settings.alpha:
        enough = next(n for n in range(2, 100) if smallest_permutation_p(n) * couples < settings.alpha)
        messages.append(
            f"{len(places)} datasets: no signed-rank p below {smallest:.4g}; with {plural(couples, 'pair')} of "
            f"methods at least {enough} datasets are needed for a verdict on the first pair"
        )
    table = np.array([place.losses.mean(axis=1) for place in places])
    if not comparable([place.deviation for place in places]):
        messages.append(
            f"standard deviations over seeds differ by more than a factor of {COMPARABLE:g} between datasets: signed "
            "ranks use losses standardised on each dataset"
        )
        table = np.array([standardised(row[:, None])[:, 0] for row in table])
    plain, plain_p = rank_tests.friedman_demsar(table)
    tied, tied_p = rank_tests.friedman(table)
    size = (len(places), len(names))
    difference = rank_tests.critical_difference(*size, settings.alpha)
    generator = np.random.default_rng(settings.seed)
    pairs = _pairs(table, names, [place.losses for place in places], settings, generator) if pairwise else ()
    return Ranking(
        measure.name,
        measure.direction,
        measure.target,
        settings,
        tuple(place.dataset for place in places),
        _rank_methods(table, names, places, difference, settings, generator, RESAMPLES if intervals else 0),
        (float(tied), float(tied_p)),
        (float(plain), float(plain_p)),
        _floats(rank_tests.iman_davenport(tied, *size)),
        _floats(rank_tests.iman_davenport(plain, *size)),
        difference,
        f"{NAMES[settings.correction]} over {plural(len(pairs), 'pair')} of methods",
        pairs,
        tuple(messages),
    )


def _methods(
    frame: pd.DataFrame, counts: CellCounts, measure: MetricLike, chosen: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    valued = set(frame["method"].unique())
    known = valued | counts.methods()
    for name in chosen or ():
        if name not in known:
            raise unknown_name("method", name, known)
    wanted = list(dict.fromkeys(chosen or sorted(valued)))
    have = set(frame.loc[frame["metric"] == measure.name, "method"].unique())
    names = [name for name in wanted if name in have]
    if len(names) < 2:
        raise UserError(f"{measure.name}: {len(names)} of the methods {', '.join(wanted)} have it; a ranking needs 2")
    without = [name for name in wanted if name not in have]
    return names, [f"without a value, so not ranked: {', '.join(without)}"] if without else []


def _with_equal_draws(
    frame: pd.DataFrame, measure: MetricLike, names: list[str], counts: CellCounts, messages: list[str]
) -> list[str]:
    """Return the methods that can be ranked by a metric that is biased in T; `messages` gets the others."""
    if not measure.biased_in_draws:
        return names
    datasets = sorted(set(frame.loc[frame["metric"] == measure.name, "dataset"]))
    kept, message = methods_with_equal_draws(measure, datasets, names, counts)
    if len(kept) < 2:
        raise UserError(f"{message}; a ranking needs 2 methods of equal T")
    messages += [message] if message else []
    return kept


@dataclass(frozen=True)
class _Dataset:
    """One dataset of a ranking: losses `[methods, repeats]`, means of the metric, noise over seeds."""

    dataset: str
    losses: Array
    means: tuple[float, ...]
    deviation: float


def _datasets(
    frame: pd.DataFrame, measure: MetricLike, names: Sequence[str], counts: CellCounts, messages: list[str]
) -> list[_Dataset]:
    """Return the datasets that can be ranked; `messages` gets the reasons why others cannot."""
    places = []
    for grid in grids(frame, [measure.name], names):
        dataset, states = grid.dataset, counts.states(grid.dataset)
        gone = _lost_shares(grid, names, states)
        present = [name for name in names if name not in gone]
        if not present:
            messages.append(f"{dataset}: left out, every method diverged or became infinite in some cells")
            continue
        one = pair_grid(grid.of(present), counts)
        if one.values.shape[1] == 0:
            without = [m for m in present if not np.isfinite(grid.of([m]).values).any()]
            who = f" ({', '.join(without)} {'has' if len(without) == 1 else 'have'} none)" if without else ""
            messages += [f"{dataset}: {lost}" for lost in one.lost]
            messages.append(f"{dataset}: left out, no repeat has values of all methods{who}")
            continue
        messages += [f"{dataset}: {message}" for message in one.messages]
        messages += [f"{dataset}: {name} {_how_lost(share)} and is last" for name, share in gone.items()]
        known = one.losses(measure)
        # Worse than all others by their whole range: ranks use only the order, and no loss becomes infinite.
        last = {
            name: np.full(known.shape[1], known.max() + (1.0 + share) * (np.ptp(known) or 1.0))
            for name, share in gone.items()
        }
        rows = iter(known)
        means = dict(zip(present, one.over_splits(one.values).mean(axis=1).tolist(), strict=True))
        places.append(
            _Dataset(
                dataset,
                np.array([last[name] if name in gone else next(rows) for name in names]),
                tuple(means.get(name, np.nan) for name in names),
                float(known.std(axis=1, ddof=1).mean()) if known.shape[1] > 1 else 0.0,
            )
        )
    return places


def mean_losses(frame: pd.DataFrame, measure: MetricLike, names: Sequence[str], cells: Cells = None) -> Array:
    """Return what `rank` ranks: a row per dataset, a column per method, those that diverged in some cells last."""
    places = _datasets(frame, measure, names, CellCounts.of(cells), [])
    return np.array([place.losses.mean(axis=1) for place in places]).reshape(-1, len(names))


def _lost_shares(grid: Grid, names: Sequence[str], states: States) -> dict[str, float]:
    """Return the methods that diverged or became infinite in some cells, with the share of these."""
    infinite = np.isinf(grid.values).sum(axis=0)
    shares = {}
    for name, count in zip(names, infinite, strict=True):
        own = states.get(name, Counter())
        lost = own["diverged"] + int(count)
        if lost:
            shares[name] = lost / max(sum(own.values()), lost, 1)
    return shares


def _how_lost(share: float) -> str:
    return (
        "diverged in every cell" if share == 1.0 else f"diverged or became infinite in {100 * share:.0f} % of its cells"
    )


def _floats(pair: tuple[Array, Array]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])


def _rank_methods(
    table: Array,
    names: Sequence[str],
    places: Sequence[_Dataset],
    difference: float,
    settings: Settings,
    generator: np.random.Generator,
    resamples: int,
) -> tuple[MethodRank, ...]:
    average = rank_tests.average_ranks(table)
    groups = rank_tests.rank_groups(average, difference)
    runs = [standardised(place.losses) for place in places]
    methods = []
    for i in np.argsort(average, kind="stable"):
        ahead = int((average[i] - average >= difference).sum())
        place = 1 + ahead if len(places) >= FEWEST_DATASETS else None
        letters = "".join(chr(ord("a") + g) for g, group in enumerate(groups) if i in group)
        own = [values[i] for values in runs]
        score = interquartile_mean_interval(own, generator, level=settings.level, resamples=resamples)
        means = tuple(place.means[i] for place in places)
        methods.append(MethodRank(names[i], float(average[i]), place, letters, score, means))
    return tuple(methods)


def _pairs(
    table: Array, names: Sequence[str], runs: Sequence[Array], settings: Settings, generator: np.random.Generator
) -> tuple[PairTest, ...]:
    average, nemenyi = rank_tests.average_ranks(table), rank_tests.nemenyi(table)
    order = [int(i) for i in np.argsort(average, kind="stable")]
    couples = list(combinations(order, 2))
    p = wilcoxon_test(np.stack([table[:, i] - table[:, j] for i, j in couples]))
    p_adjusted = adjust_p_values(p, settings.correction)
    improvements = improvement_probabilities(runs, couples, generator, level=settings.level)
    return tuple(
        PairTest(
            names[i],
            names[j],
            float(average[j] - average[i]),
            float(nemenyi[i, j]),
            float(p[n]),
            float(p_adjusted[n]),
            improvements[n],
            _verdict(table[:, i] - table[:, j], float(p_adjusted[n]), settings.alpha),
        )
        for n, (i, j) in enumerate(couples)
    )


def _verdict(differences: Array, p: float, alpha: float) -> Verdict:
    if p >= alpha:
        return "inconclusive"
    return "better" if float(signed_rank_sum(differences)) < 0.0 else "worse"
