"""Claims about means over repeats: better, the same, higher under another condition, losses smaller than gains."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from bench.api import UserError, catalogue, plural, stats
from bench.reports._paper_claims_derived import DERIVED
from bench.reports._paper_claims_held import (
    FEWEST,
    SETTINGS,
    Claim,
    Evidence,
    Held,
    Judged,
    Statement,
    all_of,
    decided,
    not_run,
)
from bench.reports._words import decimals, probability, rounded

Rows = Sequence[stats.DatasetComparison]
Pair = tuple[str, str]
Compared = tuple[Rows, stats.OverallComparison | None]


def better(claim: Claim, held: Held) -> Judged:
    """Methods beat their rivals, by all of the claim's metrics jointly."""
    return _pairwise(claim, held, list(product(claim["method"], claim["over"])))


def same(claim: Claim, held: Held) -> Judged:
    """Methods are equivalent within a margin; or all variants of a method to the one with the reference's level."""
    if "levels" not in claim:
        return _pairwise(claim, held, list(product(claim["method"], claim["over"])))
    ((plugin, option),) = claim["levels"].items()
    variants = held.variants(plugin, option)
    missing = [level for level in claim["values"] if level not in variants.values()]
    if missing:
        return not_run(f"{plugin} with {option} {', '.join(f'{level:g}' for level in missing)}", held)
    labels = {level: label for label, level in variants.items()}
    reference = labels[claim["values"][0]]
    return _pairwise(claim, held, [(labels[level], reference) for level in claim["values"][1:]])


def better_over_datasets(claim: Claim, held: Held) -> Judged:
    """Methods beat their rivals over datasets, each of which counts once."""
    test = "Wilcoxon's signed-rank test over datasets"
    statements = []
    rows, missing = _compared(claim, held, list(product(claim["method"], claim["over"])))
    if missing:
        return not_run(missing, held)
    for (a, b), (found, across) in rows.items():
        if across is None:
            continue
        p = [across.p if sign * across.signed_ranks < 0 else 1.0 for sign in (1, -1)]
        equal = max((row.equivalence_p for row in found if not math.isnan(row.p)), default=math.nan)
        evidence = _without_failures(Evidence(p[0], p[1]), equal, across.more_failures)
        words = {w: getattr(across, w) for w in ("better", "worse", "equivalent", "inconclusive")}
        counts = ", ".join(f"{count} {word}" for word, count in words.items() if count)
        numbers = f"{a} against {b}: {counts} of {across.datasets}, p {probability(across.p)}"
        needed = across.datasets_needed
        needs = f"about {needed} datasets" if needed is not None else "more than 10,000 datasets"
        statements.append(Statement(a, b, "", evidence, numbers, needs))
    if not statements:
        return Judged("cannot be decided", test, "–", f"at least two datasets with {FEWEST} seeds each")
    return decided(claim, test, statements)


def rises(claim: Claim, held: Held) -> Judged:
    """A quantity of each method is higher under the second of two conditions."""
    low, high = claim["conditions"]
    frame = held.derived(claim, claim["method"], DERIVED[claim["derived"]])
    if missing := [method for method in claim["method"] if method not in set(frame["method"])]:
        return not_run(f"{claim['metric']} of {', '.join(missing)}", held)
    measure = stats.Measure(claim["metric"], "higher")
    statements, share = [], 0.0
    for method in claim["method"]:
        own, cells = frame[frame["method"] == method], held.cells[held.cells["method"] == method]
        # The conditions take the place of methods: pairs are still those of one split and seed.
        both = pd.concat([cells.assign(method=condition) for condition in (low, high)])
        for row in _compare(own.assign(method=own["condition"]), high, low, [measure], both, SETTINGS)[0]:
            evidence, share = _of_better(row), max(share, row.test_share)
            numbers = f"{method}, {high} against {low}: {_one(row)}"
            statements.append(Statement(method, "", row.dataset, evidence, numbers, _needs(row)))
    return decided(claim, _t_test(share), statements)


def small_losses(claim: Claim, held: Held) -> Judged:
    """On every dataset a method's loss is smaller than its mean gain on the others (both may be gains)."""
    rows, missing = _compared(claim, held, list(product(claim["method"], claim["over"])))
    if missing:
        return not_run(missing, held)
    statements = []
    for (a, b), (found, _) in rows.items():
        tested = [row for row in found if not math.isnan(row.p)]
        gains = {row.dataset: _gain(row) for row in tested}
        errors = {row.dataset: _standard_error(row) for row in tested}
        evidence = []
        for row in tested:
            others = [other for other in gains if other != row.dataset]
            if not others:
                continue
            excess = gains[row.dataset] + float(np.mean([gains[other] for other in others]))
            # The repeats of datasets are independent of each other; the fewest of them give the degrees of freedom.
            error = math.hypot(errors[row.dataset], *(errors[other] / len(others) for other in others))
            freedom = min(other.pairs for other in tested) - 1
            p = 2.0 * float(stats.t_tail(abs(excess) / error, freedom)) if error else 0.0
            evidence.append(Evidence(p, 1.0) if excess > 0 else Evidence(1.0, p))
        if evidence:
            worst, best = min(gains, key=lambda d: gains[d]), max(gains, key=lambda d: gains[d])
            numbers = (
                f"{a} against {b}: mean gain {np.mean(list(gains.values())):.3g}, from {gains[worst]:+.3g} on {worst} "
                f"to {gains[best]:+.3g} on {best}"
            )
            statements.append(Statement(a, b, "", all_of(evidence), numbers))
    test = "t-test on every dataset: its gain and the mean gain on the others add up to more than 0"
    return decided(claim, test, statements, "more seeds, on at least two datasets")


def _pairwise(claim: Claim, held: Held, pairs: Sequence[Pair]) -> Judged:
    statements, test, missing = pair_statements(claim, held, pairs)
    return not_run(missing, held) if missing else decided(claim, test, statements)


def pair_statements(
    claim: Claim, held: Held, pairs: Sequence[Pair], *, count_repeats: bool = True
) -> tuple[list[Statement], str, str]:
    """Return a statement for each pair and dataset, by all of the claim's metrics jointly, and the test in words.

    The last text is what is missing for them, if something is.
    """
    rows, missing = _compared(claim, held, pairs)
    equal = claim["kind"] == "same"
    of_row = _of_same if equal else _of_better
    statements, share = [], 0.0
    metrics = _metrics(claim)
    for (a, b), (found, _) in rows.items():
        for dataset in dict.fromkeys(row.dataset for row in found):
            own = [row for row in found if row.dataset == dataset]
            evidence = all_of(of_row(row) for row in own)
            share = max(share, *(row.test_share for row in own))
            texts = [(f"{row.metric} " if len(metrics) > 1 else "") + _one(row, equal) for row in own]
            numbers = f"{a} against {b}: {', '.join(texts)}"
            if len(metrics) > 1 and not equal and count_repeats:
                numbers += _in_repeats(held, dataset, a, b, own)
            needs = "; ".join(dict.fromkeys(_needs(row) for row in own if of_row(row).verdict == "cannot be decided"))
            statements.append(Statement(a, b, dataset, evidence, numbers, needs))
    test = _t_test(share) + f" of {metrics[0]}" * (len(metrics) == 1) + ", equivalence within a margin (TOST)" * equal
    if len(metrics) > 1:
        test += f", by {' and '.join(metrics)} jointly (intersection-union)"
    return statements, test, missing


def _t_test(share: float) -> str:
    return "corrected resampled t-test" if share else "paired t-test"


def _metrics(claim: Claim) -> list[str]:
    return list(claim.get("metrics") or [claim["metric"]])


def _compared(claim: Claim, held: Held, pairs: Sequence[Pair]) -> tuple[dict[Pair, Compared], str]:
    """Return the comparisons of all pairs; or what is missing for them, in words."""
    methods = list(dict.fromkeys(name for pair in pairs for name in pair))
    measures = [_measure(claim, metric) for metric in _metrics(claim)]
    frame = (
        held.derived(claim, methods, DERIVED[claim["derived"]])
        if "derived" in claim
        else held.frame[held.frame["metric"].isin(_metrics(claim))]
    )
    for measure in measures:
        present = set(frame.loc[frame["metric"] == measure.name, "method"])
        if missing := [method for method in methods if method not in present]:
            return {}, f"{measure.name} of {', '.join(missing)}"
    settings = replace(SETTINGS, margin=stats.Margin.read(claim["margin"])) if "margin" in claim else SETTINGS
    return {pair: _compare(frame, *pair, measures, held.cells, settings) for pair in pairs}, ""


def _measure(claim: Claim, metric: str) -> stats.Measure:
    known = catalogue().get(metric)
    direction = "higher" if metric in claim.get("higher", ()) else known.direction if known else "lower"
    return stats.Measure(metric, direction, known.target if known and direction == "target" else None)


def _compare(
    frame: pd.DataFrame,
    a: str,
    b: str,
    measures: Sequence[stats.Measure],
    cells: pd.DataFrame,
    settings: stats.Settings,
) -> Compared:
    both, own = frame[frame["method"].isin([a, b])], cells[cells["method"].isin([a, b])]
    try:
        found = stats.compare(both, a, b, measures, cells=own, settings=settings)
    except UserError:
        return (), None  # nothing in common
    return found.rows, found.across[0] if found.across else None


def _gain(row: stats.DatasetComparison) -> float:
    return row.difference if row.direction == "higher" else -row.difference


def _standard_error(row: stats.DatasetComparison) -> float:
    return row.deviation * math.sqrt(stats.variance_factor(row.pairs, row.test_share))


def _of_better(row: stats.DatasetComparison) -> Evidence:
    """Superiority is refuted by inferiority and by equivalence."""
    gain = _gain(row)
    evidence = Evidence(row.p if gain > 0 else 1.0, row.p if gain < 0 else 1.0)
    return _without_failures(evidence, row.equivalence_p, row.more_failures)


def _without_failures(evidence: Evidence, equal: float, more_failures: int) -> Evidence:
    """No verdict favours the method that diverged more often: the runs that ended are not a fair sample."""
    p = math.nan if more_failures > 0 else evidence.p
    worse = math.nan if more_failures < 0 else evidence.contrary
    return Evidence(p, float(np.fmin(worse, math.nan if more_failures else equal)))


def _of_same(row: stats.DatasetComparison) -> Evidence:
    """Equality within the margin is refuted by a difference beyond the margin, not by one inside it."""
    if math.isnan(row.p):
        return Evidence(math.nan, math.nan)
    return Evidence(math.nan if row.more_failures else row.equivalence_p, _beyond(row))


def _beyond(row: stats.DatasetComparison) -> float:
    """Return p of the test that the difference is larger than the margin, in either direction."""
    excess = abs(row.difference) - row.margin
    if row.deviation == 0.0:
        return stats.smallest_permutation_p(row.pairs) if excess > 0 else 1.0
    return min(1.0, 2.0 * float(stats.t_tail(excess / _standard_error(row), row.pairs - 1)))


def _in_repeats(held: Held, dataset: str, a: str, b: str, rows: Rows) -> str:
    """Return in how many repeats the method is better by all metrics at once, with the exact interval of the share."""
    frame = held.frame[(held.frame["dataset"] == dataset) & held.frame["method"].isin([a, b])]
    wins: pd.Series | None = None
    for row in rows:
        own = frame[frame["metric"] == row.metric].pivot(index=["split", "seed"], columns="method", values="value")
        own = own.dropna()
        measure = stats.Measure(row.metric, row.direction, row.target)
        won = pd.Series(stats.losses(own[a], measure) < stats.losses(own[b], measure), own.index)
        wins = won if wins is None else wins & won
    if wins is None or not len(wins):
        return ""
    from scipy.stats import binomtest

    count, total = int(wins.sum()), len(wins)
    ends = binomtest(count, total).proportion_ci(0.95)
    return f"; by all of them in {count} of {total} repeats ({100 * ends.low:.0f} to {100 * ends.high:.0f} %)"


def _one(row: stats.DatasetComparison, margin: bool = False) -> str:
    width = (row.interval.high - row.interval.low) / 2 if row.interval else math.nan
    places = decimals([width], [row.difference])  # two digits of the half-width, in all numbers
    a, b = (rounded(mean, places) for mean in (row.mean_a, row.mean_b))
    difference = rounded(row.difference, places, sign=True)
    if row.interval:
        low, high = (rounded(end, places, sign=True) for end in (row.interval.low, row.interval.high))
        difference += f" [{low}, {high}]"
    p = "" if math.isnan(row.p) else f", p {probability(row.p)}"
    within = f", margin {row.margin:.3g}" if margin and not math.isnan(row.margin) else ""
    if not margin and row.p >= SETTINGS.alpha > row.equivalence_p:
        within = f", equivalent within {row.margin:.3g}"
    return f"{a} and {b}, difference {difference}{p}{within}, n {row.pairs}"


def _needs(row: stats.DatasetComparison) -> str:
    """Return how many repeats a difference as large as the margin would take."""
    if row.pairs < FEWEST:
        return f"at least {FEWEST} seeds"
    if not row.plan_is_possible or row.pairs_for_margin is None:
        return "more than these splits can show"
    return f"{plural(row.pairs_for_margin, 'seed')} for a difference as large as the margin"
