"""A board: the methods on one dataset by one metric, with intervals, and which of them differ."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.counts import plural
from bench.leaderboard.against import Against, decide_on_dataset, doubts_on_dataset, needed_on_dataset
from bench.leaderboard.other_rows import OneTestSet, with_other_rows
from bench.leaderboard.rows import Row, protocol_notes
from bench.metrics import Metric
from bench.stats import (
    CellCounts,
    Repetition,
    Settings,
    StoredRows,
    adjust_p_values,
    bca_interval,
    cut_interval,
    hull,
    losses,
    repetition,
    smallest_permutation_p,
    t_interval,
    t_test,
)
from bench.stats.dataset_comparison import FEWEST_PAIRS
from bench.stats.shared_splits import are_shared, means_of_splits

NAN = float("nan")
Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Entry:
    """One method on a board."""

    method: str
    place: int | None  # 1 + the number of methods that are significantly better; None: it was not tested
    groups: str  # letters: methods with a letter in common were not shown to differ
    value: float  # the mean over repeats; on an overall board the average rank
    low: float  # 95 % interval; NaN where there is none
    high: float
    repeats: int  # finite values behind it; on an overall board datasets
    planned: int  # its own repeats, or all that methods of the board have, where these are more
    lost: str = ""  # what is not among them, in words
    behind: tuple[float, float, float] | None = None  # mean difference to the best on common repeats, and its interval
    against: Against | None = None  # the baseline; None: the baseline itself, or it was not tested
    score: float = NAN  # on an overall board: interquartile mean of standardised losses; low and high are its interval


@dataclass(frozen=True)
class Board:
    """Methods ranked by one metric, the best first."""

    suite: str
    task: str
    dataset: str | None  # None: over all datasets of the task
    metric: str
    device: str | None  # None: results of all devices together
    entries: tuple[Entry, ...]
    test: str  # which test decides who differs, in words
    notes: tuple[str, ...] = field(default=())
    datasets: tuple[str, ...] = ()  # of an overall board
    baseline: str | None = None  # that methods are tested against; None: the suite names none, or it was not tested
    decision: str = ""  # which test decides on the difference to the baseline, in words


@dataclass(frozen=True)
class Selection:
    """Rows to be ranked by one metric, with their values of it."""

    rows: Sequence[Row]
    values: pd.DataFrame  # columns dataset, method, split, seed, key, metric, value
    metric: Metric
    task: str
    device: str | None  # None: results of all devices together
    baseline: str | None = None  # of the suite
    entered: frozenset[str] = frozenset()  # methods that entered after the version that is continued
    version: str = ""  # which that is
    stored: StoredRows | None = None  # predictions, for datasets whose repeats are seeds on one test set


def dataset_board(chosen: Selection, settings: Settings, counts: CellCounts) -> Board:
    """Rank the methods on the one dataset of `chosen`.

    Methods are sorted by their means over the repeats that all of those with a place have. Every pair of methods is
    compared on the repeats that both have, by the paired t-test that docs/statistics.md describes (corrected where
    repeats are overlapping splits), with Holm's correction over the pairs of the board.

    A method has a place if it has a value in every planned repeat and there are enough of them for a test. Others are
    listed below without one: their repeats that went well are not the repeats of the others. Methods that entered after
    a frozen version have none either, so that they do not move those of the others.

    Beside that, every method is compared with the baseline, in a family of the methods without the baseline. Where
    repeats are seeds on one test set, these verdicts are also tested for other rows.
    """
    rows = chosen.rows
    methods = [row.method for row in rows]
    table = chosen.values.pivot(index=["split", "seed"], columns="method", values="value").reindex(columns=methods)
    numbers = table.to_numpy(dtype=np.float64).T
    splits = table.index.get_level_values("split").to_numpy()
    related = repetition(rows[0].dataset, splits, counts.only(methods)).overridden(settings.test_share)
    share = related.test_share
    finite = np.isfinite(numbers)
    loss = losses(numbers, chosen.metric)
    means, badness = _means(numbers, finite), _means(loss, finite)
    # Where several seeds share each split, only the means of splits are independent.
    shared = related.kind != "seeds" and are_shared(splits)
    units, unit_loss = (means_of_splits(x, splits) if shared else x for x in (numbers, loss))
    whole = np.isfinite(units)
    have_all = np.array([own.sum() >= row.planned for own, row in zip(finite, rows, strict=True)])
    placed = have_all & (whole.sum(axis=1) >= FEWEST_PAIRS)
    complete, later = placed.copy(), np.isin(methods, list(chosen.entered))
    placed &= ~later
    # A method that was run with fewer repeats than others is marked; methods that entered later mark nobody.
    due = np.maximum([row.planned for row in rows], finite[~later].any(axis=0).sum())
    if placed.sum() < 2:  # nobody to be tested against
        placed[:] = False
    better, tested = _better(unit_loss, whole & placed[:, None], share, settings)
    shared_repeats = finite[placed if placed.any() else have_all].all(axis=0)  # means over other repeats have no order
    by = _means(loss, finite & shared_repeats) if shared_repeats.any() else badness
    order = sorted(
        range(len(rows)), key=lambda i: (not placed[i], not have_all[i], np.isnan(by[i]), by[i], badness[i], methods[i])
    )
    # Positive is worse, whatever the direction of the metric; repeats that are hard for all methods do not widen it.
    gaps = np.where(whole & whole[order[0]], unit_loss - unit_loss[order[0]], np.nan)
    gaps[order[0]] = np.nan
    ends, gap_ends = np.split(_intervals(np.concatenate([units, gaps]), share, settings), 2)
    ends = cut_interval(ends, means, chosen.metric.value_range)
    mean_gaps = _means(gaps, np.isfinite(gaps))
    letters = lettered([group for group in tie_groups(better | better.T, placed) if len(group) > 1], order)
    entries = []
    for i in order:
        place = 1 + int(better[:, i].sum()) if placed[i] else None
        mean, low, high = map(float, (means[i], *ends[i]))
        repeats, lost = int(finite[i].sum()), _lost(rows[i], int(np.isinf(numbers[i]).sum()))
        gap, gap_low, gap_high = map(float, (mean_gaps[i], *gap_ends[i]))
        behind = None if math.isnan(gap) else (gap, gap_low, gap_high)
        entries.append(Entry(methods[i], place, letters[i], mean, low, high, repeats, int(due[i]), lost, behind))
    test = f"{related.test}, Holm over {plural(tested, 'pair')} of methods"
    notes = [
        *protocol_notes(rows),
        *_apart(rows, finite, whole.sum(axis=1), placed, shared=shared),
        *([related.note] if related.note else []),
        *_uneven(methods, finite, have_all, shared_repeats),
    ]
    if shared:
        notes.append(f"several seeds share each of {units.shape[1]} splits: tests and intervals are of their means")
    if _is_one_test_set(related, chosen.metric):
        notes.append("repeats are seeds on one test set: places, ties and verdicts are about its rows")
    if later.any():
        notes.append(entered_note([m for m, new in zip(methods, later, strict=True) if new], chosen.version))
    subject = (rows[0].suite, chosen.task, rows[0].dataset, chosen.metric.name, chosen.device)
    board = Board(*subject, tuple(entries), test, tuple(notes))
    existing = None if related.kind == "seeds" else counts.split_count(rows[0].dataset)
    return _against_baseline(board, chosen, np.where(complete[:, None], unit_loss, np.nan), related, existing, settings)


def _against_baseline(
    board: Board, chosen: Selection, loss: Array, related: Repetition, existing: int | None, settings: Settings
) -> Board:
    """Return the board with the verdicts against the baseline, given losses of the methods with all their repeats."""
    methods = [row.method for row in chosen.rows]
    base = methods.index(chosen.baseline) if chosen.baseline in methods else None
    if base is None or not np.isfinite(loss[base]).any():
        return board
    gaps, share = loss - loss[base], related.test_share
    gaps[base] = np.nan
    others = [i for i in range(len(methods)) if np.isfinite(gaps[i]).any()]
    # Two families: methods that entered after a frozen version do not change the verdicts on the others.
    families = [[i for i in others if (methods[i] in chosen.entered) is later] for later in (False, True)]
    found = decide_on_dataset(gaps, _intervals(gaps, share, settings), families, share, settings)
    against = {methods[i]: one for i, one in found.items()}
    if not against:
        return board
    size = sum(i in found for i in families[0])
    decision = f"{related.test}, Holm over {plural(size, 'method')}"
    needed = needed_on_dataset(found, str(chosen.baseline), gaps.shape[1], share, existing, settings)
    doubtful = doubts_on_dataset(found, gaps, methods, str(chosen.baseline))
    notes = (*board.notes, *(note for note in (doubtful, needed) if note))
    if chosen.stored is not None and _is_one_test_set(related, chosen.metric):
        tested = OneTestSet(chosen.values, chosen.stored, chosen.metric, str(chosen.baseline))
        names = [[methods[i] for i in family] for family in families]
        against, more = with_other_rows(against, names, tested, settings)
        notes = (*notes, *more)
    entries = tuple(replace(entry, against=against.get(entry.method)) for entry in board.entries)
    return replace(board, entries=entries, baseline=chosen.baseline, decision=decision, notes=notes)


def _is_one_test_set(related: Repetition, metric: Metric) -> bool:
    """Return whether values are about the rows of one test set; costs are not about rows."""
    return related.kind == "seeds" and metric.family != "cost"


def entered_note(methods: Sequence[str], version: str) -> str:
    """Return that methods have no place in a frozen version, in words."""
    return f"entered after version {version}, so without a place: {', '.join(methods)}"


def tie_groups(different: Mask, present: Mask) -> list[tuple[int, ...]]:
    """Return the largest sets of methods of which no two differ, so that two methods differ where no set has both.

    Insert and absorb (Piepho 2004, "An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons").
    """
    groups = [frozenset(int(i) for i in np.flatnonzero(present))]
    for i, j in combinations(range(len(different)), 2):
        if not different[i, j]:
            continue
        cut = [g for group in groups for g in ((group - {i}, group - {j}) if {i, j} <= group else (group,))]
        groups = [g for n, g in enumerate(cut) if not any(g < h or (g == h and m < n) for m, h in enumerate(cut))]
    return [tuple(sorted(group)) for group in groups if group]


def lettered(groups: Sequence[Sequence[int]], order: Sequence[int]) -> dict[int, str]:
    """Return the letters of every method: 'a' is the group that starts first in the order."""
    place = {method: n for n, method in enumerate(order)}
    ordered = sorted(groups, key=lambda group: sorted(place[i] for i in group))
    return {i: "".join(_letter(n) for n, group in enumerate(ordered) if i in group) for i in order}


def _letter(number: int) -> str:
    """Return a, b, ..., z, A, ..., Z, and signs beyond."""
    return chr(ord("a") + number) if number < 26 else chr(ord("A") + number - 26) if number < 52 else chr(200 + number)


def _means(values: Array, counted: Mask) -> Array:
    """Return the mean of every row over what is counted; NaN where nothing is."""
    sums = np.where(counted, values, 0.0).sum(axis=1)
    return np.where(counted.any(axis=1), sums / np.maximum(counted.sum(axis=1), 1), np.nan)


def _better(loss: Array, finite: Mask, share: float, settings: Settings) -> tuple[Mask, int]:
    """Return who is significantly better than whom `[methods, methods]`, and how many pairs were tested."""
    couples = list(combinations(range(len(loss)), 2))
    p = np.full(len(couples), np.nan)
    gap = np.zeros(len(couples))
    common: dict[bytes, list[int]] = {}
    for n, (i, j) in enumerate(couples):
        common.setdefault((finite[i] & finite[j]).tobytes(), []).append(n)
    for mask, which in common.items():
        kept = np.frombuffer(mask, dtype=np.bool_)
        if kept.sum() < FEWEST_PAIRS:
            continue
        first, second = ([couples[n][side] for n in which] for side in (0, 1))
        d = loss[first][:, kept] - loss[second][:, kept]
        gap[which] = d.mean(axis=-1)
        p[which] = _p(d, share)
    corrected = adjust_p_values(p, settings.correction)
    better = np.zeros((len(loss), len(loss)), dtype=np.bool_)
    for n, (i, j) in enumerate(couples):
        if corrected[n] < settings.alpha:
            better[(i, j) if gap[n] < 0 else (j, i)] = True
    return better, int(np.isfinite(p).sum())


def _p(d: Array, share: float) -> Array:
    p = t_test(d, share)
    # The same difference in every pair: no variance, so the permutation test decides.
    return np.where(np.isnan(p), smallest_permutation_p(d.shape[-1]), p)


def _intervals(numbers: Array, share: float, settings: Settings) -> Array:
    """Return intervals of the means `[rows, 2]`: the hull of t and BCa, t alone below five repeats."""
    ends = np.full((len(numbers), 2), np.nan)
    finite = np.isfinite(numbers)
    counts = finite.sum(axis=1)
    for count in set(counts.tolist()) - {0, 1}:
        which = np.flatnonzero(counts == count)
        x = np.array([numbers[i][finite[i]] for i in which])
        student = t_interval(x, settings.level, share)
        if count >= FEWEST_PAIRS:
            generator = np.random.default_rng(settings.seed)
            bootstrap = bca_interval(x, generator, level=settings.level, resamples=settings.resamples, test_share=share)
            student = hull(bootstrap, student)
        ends[which] = student
    return ends


def _apart(rows: Sequence[Row], finite: Mask, counts: NDArray[Any], placed: Mask, *, shared: bool) -> list[str]:
    """Return why methods have no place, in words; `counts` are of independent repeats (of splits, where shared)."""
    few = [
        row.method
        for row, own, count in zip(rows, finite, counts, strict=True)
        if own.sum() == row.planned and count < FEWEST_PAIRS
    ]
    lacking = [
        f"{row.method} ({int(own.sum())} of {row.planned})"
        for row, own in zip(rows, finite, strict=True)
        if own.sum() < row.planned
    ]
    notes = []
    if few:
        unit = "splits" if shared else "repeats"
        notes.append(f"no place: {', '.join(few)}; fewer than {FEWEST_PAIRS} {unit} cannot be tested")
    if lacking:
        notes.append(f"no place without a value in every repeat: {', '.join(lacking)}")
    if not few and not placed.any() and len(rows) - len(lacking) == 1:
        notes.append("no place: there is no other method to test against")
    return notes


def _uneven(methods: Sequence[str], finite: Mask, have_all: Mask, shared: Mask) -> list[str]:
    """Return that methods were run with different numbers of repeats, and by what they are sorted then, in words."""
    counts = {m: int(own.sum()) for m, own, all_ in zip(methods, finite, have_all, strict=True) if all_}
    if len(set(counts.values())) < 2:
        return []
    most = max(counts.values())
    fewer = ", ".join(f"{method} ({count} of {most})" for method, count in counts.items() if count < most)
    return [
        f"fewer repeats than others: {fewer}; their means are over other repeats, so methods are sorted by the "
        f"{plural(int(shared.sum()), 'repeat')} that all of them have"
    ]


def _lost(row: Row, infinite: int) -> str:
    counts = {state: row.states.get(state, 0) for state in ("diverged", "failed", "not run")} | {"not finite": infinite}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)
