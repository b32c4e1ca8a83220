"""Comparisons and rankings as lines for a terminal of 100 columns."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import get_args

from bench.counts import plural
from bench.metrics import find_declaration
from bench.stats.compare import Comparison
from bench.stats.compare_over_datasets import OverallComparison
from bench.stats.corrections import NAMES
from bench.stats.dataset_comparison import DatasetComparison
from bench.stats.pairing import Direction
from bench.stats.rank import Ranking
from bench.stats.replication import datasets_by_test
from bench.stats.settings import Verdict
from bench.text_tables import cut

WIDTH = 100
NAME = 16  # columns for a dataset or a method


def comparison_answer(comparison: Comparison, suite: str) -> Iterator[str]:
    """Yield the verdicts on A in a sentence: over the datasets, or on the dataset where there is only one."""
    verdicts = {row.metric: row.verdict for row in reversed(comparison.rows)}  # of the first dataset
    verdicts |= {across.metric: across.verdict for across in comparison.across}
    found: dict[str, list[str]] = {verdict: [] for verdict in (*get_args(Verdict), "lower", "higher")}
    for metric in dict.fromkeys(row.metric for row in comparison.rows):
        found[_word(metric, verdicts[metric])].append(metric + _read_with(metric))
    text = "; ".join(f"{verdict} by {', '.join(metrics)}" for verdict, metrics in found.items() if metrics)
    datasets = list(dict.fromkeys(row.dataset for row in comparison.rows))
    where = f"{len(datasets)} datasets" if len(datasets) > 1 else " ".join(datasets)
    yield from _wrapped(f"suite {suite}, {where}: {comparison.a} against {comparison.b} is {text}")


def ranking_answer(rankings: Sequence[Ranking], suite: str) -> Iterator[str]:
    """Yield in a sentence which method leads by each metric, and how many were not shown to be behind it."""
    found: dict[tuple[str, str], list[str]] = {}
    for ranking in rankings:
        name = ranking.metric + _read_with(ranking.metric)
        found.setdefault((ranking.methods[0].method, _certainty(ranking)), []).append(name)
    leaders = [f"{method} leads by {', '.join(metrics)} ({rest})" for (method, rest), metrics in found.items()]
    yield from _wrapped(f"suite {suite}: {'; '.join(leaders)}")


def _word(metric: str, verdict: str) -> str:
    """Return a verdict as it is printed: a narrow interval is not better by itself, it is lower."""
    declared = find_declaration(metric)
    if declared is None or not declared.only_with or verdict not in ("better", "worse"):
        return verdict
    return "lower" if (verdict == "better") == (declared.direction == "lower") else "higher"


def _read_with(metric: str) -> str:
    """Return in brackets the metric without which this one means nothing; '' where it stands alone."""
    declared = find_declaration(metric)
    return f" (read with {declared.only_with})" if declared is not None and declared.only_with else ""


def _certainty(ranking: Ranking) -> str:
    first, *others = ranking.methods
    if first.place is None:
        return "too few datasets for a test"
    beside = sum(bool(set(first.groups) & set(other.groups)) for other in others)
    return f"{beside} of {plural(len(others), 'other')} not shown to be behind" if beside else "all others shown behind"


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the table of a comparison, the evidence for every verdict, and the assumptions."""
    yield from _wrapped(f"A = {comparison.a}, B = {comparison.b}. Verdicts are about A; n pairs share split and seed.")
    for metric in dict.fromkeys(row.metric for row in comparison.rows):
        rows = [row for row in comparison.rows if row.metric == metric]
        yield ""
        yield _heading(metric, rows[0].direction, rows[0].target)
        if rows[0].direction == "target":
            yield from _notes("A - B and its interval are of the distances to the target; A and B are plain means")
        yield (
            f"  {'dataset':<{NAME}}{'n':>4}{'A':>10}{'B':>10}{'A - B':>10}  "
            f"{_percent(comparison.settings.level) + ' interval':<19}{'p':>7}{'wins':>6}  verdict"
        )
        for row in rows:
            yield from _dataset_lines(row, comparison)
        for across in comparison.across:
            if across.metric == metric:
                yield from _across_lines(across, comparison)
    yield ""
    yield from _conditions(comparison)


def _dataset_lines(row: DatasetComparison, comparison: Comparison) -> Iterator[str]:
    ends = "–" if row.interval is None else f"{_short(row.interval.low)} .. {_short(row.interval.high)}"
    yield (
        f"  {_name(row.dataset)}{row.pairs:>4}{_number(row.mean_a):>10}{_number(row.mean_b):>10}"
        f"{_number(row.difference):>10}  {ends:<19}{_probability(row.p_adjusted):>7}"
        f"{_share(row.better_probability):>6}  {_word(row.metric, row.verdict)}"
    )
    if row.verdict == "inconclusive" and not math.isnan(row.detectable):
        smallest = "no possible difference" if math.isinf(row.detectable) else _number(row.detectable)
        yield from _notes(
            f"{_percent(comparison.settings.power)} power: {row.pairs} pairs can detect {smallest}; "
            f"the margin {_number(row.margin)} needs {_needed(row)}"
        )
    elif row.verdict == "equivalent":
        yield from _notes(f"within the margin {_number(row.margin)}, p {_probability(row.equivalence_p_adjusted)}")
    yield from _notes(*row.messages)


def _across_lines(across: OverallComparison, comparison: Comparison) -> Iterator[str]:
    counts = [(getattr(across, verdict), _word(across.metric, verdict)) for verdict in get_args(Verdict)]
    unit = "deviations over seeds, as their scales differ" if across.standardised else "the metric's unit"
    improvement, posterior = across.improvement, across.posterior
    family = len(comparison.across)
    yield f"  over {across.datasets} datasets: {_word(across.metric, across.verdict)}"
    yield from _notes(
        f"{', '.join(f'{count} {verdict}' for count, verdict in counts if count)}; signed-rank p "
        f"{_probability(across.p_adjusted)} ({NAMES[comparison.settings.correction]} over {plural(family, 'metric')})",
        f"mean difference as losses {_number(across.difference)} ({unit}); a run of A beats any run of B "
        f"on the dataset, paired or not (A12): {_share(improvement.value)} "
        f"({_share(improvement.low)} .. {_share(improvement.high)}); Bayesian signed-rank: better "
        f"{_share(posterior.below)}, within the margin {_share(posterior.within)}, worse {_share(posterior.above)}; "
        "neither promises an error rate (docs/statistics.md)",
    )
    if across.verdict == "inconclusive" and not math.isinf(across.detectable):
        needed = "over 10,000" if across.datasets_needed is None else f"about {across.datasets_needed}"
        yield from _notes(
            f"{_percent(comparison.settings.power)} power: {across.datasets} datasets can detect about "
            f"{_number(across.detectable)}; the mean margin {_number(across.margin)} needs {needed}"
        )
    yield from _notes(*across.messages)


def _conditions(comparison: Comparison) -> Iterator[str]:
    settings = comparison.settings
    tests = datasets_by_test((row.dataset, row.repetition) for row in comparison.rows)
    yield from _wrapped(f"Tests: {tests}.")
    yield from _wrapped(
        f"p: {comparison.family}; a verdict needs p < {settings.alpha:g}. "
        "Wins: the share of pairs in which A is better; ties count half, a run that diverged loses. "
        f"Margin: {settings.margin}; equivalent means within it by two one-sided t-tests. "
        f"Intervals: the hull of the BCa bootstrap and the t interval, each {_percent(settings.level)} by itself. "
        f"Power: at level {settings.alpha:g} / {max(comparison.family_size, 1)}. "
        "Testing again after adding pairs has 9 % false positives instead of 5 %."
    )


def ranking_lines(ranking: Ranking) -> Iterator[str]:
    """Yield the table of a ranking, the tests behind it, and every pair of methods."""
    settings = ranking.settings
    yield _heading(ranking.metric, ranking.direction, ranking.target)
    level = _percent(settings.level)
    yield f"  {'method':<{NAME}}{'rank':>7}  {'group':<7}{'score':>8}  {level} interval"
    for one in ranking.methods:
        ends = f"{_short(one.score.low)} .. {_short(one.score.high)}"
        yield f"  {_name(one.method)}{one.average_rank:>7.2f}  {one.groups or '–':<7}{one.score.value:>8.2f}  {ends}"
    yield from _notes(
        f"{len(ranking.datasets)} datasets: {', '.join(ranking.datasets)}",
        f"Friedman: chi2 {_number(ranking.friedman[0])}, p {_probability(ranking.friedman[1])} (corrected for ties); "
        f"chi2 {_number(ranking.friedman_demsar[0])}, p {_probability(ranking.friedman_demsar[1])} (Demsar's form); "
        f"Iman-Davenport: F {_number(ranking.iman_davenport[0])}, p {_probability(ranking.iman_davenport[1])}",
        f"Nemenyi: ranks that differ by less than {ranking.critical_difference:.2f} (with a letter in common) were not "
        "shown to differ",
        "score: interquartile mean of losses standardised on each dataset, 0 is the average method, lower is better; "
        "its 95 % interval covers 90 % with 5 seeds and 94 % with 20 (docs/statistics.md)",
        *ranking.messages,
    )
    yield f"  Wilcoxon signed-rank, {ranking.family}"
    yield f"  {'method':<{NAME}}{'against':<{NAME}}{'gap':>6}{'p':>8}{'adjusted':>10}{'wins':>7}  verdict"
    for pair in ranking.pairs:
        yield (
            f"  {_name(pair.better)}{_name(pair.worse)}{pair.rank_gap:>6.2f}{_probability(pair.p):>8}"
            f"{_probability(pair.p_adjusted):>10}{_share(pair.improvement.value):>7}  "
            f"{_word(ranking.metric, pair.verdict)}"
        )


def _heading(metric: str, direction: Direction, target: float | None) -> str:
    if direction == "target":
        return f"{metric} (the distance to {target:g} counts, lower is better)"
    declared = find_declaration(metric)
    other = declared.only_with if declared is not None else ""
    return f"{metric} ({direction} is {f'good only with {other}' if other else 'better'})"


def _notes(*texts: str) -> Iterator[str]:
    for text in texts:
        yield from textwrap.wrap(
            text, WIDTH, initial_indent="    - ", subsequent_indent="      ", break_on_hyphens=False
        )


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def _name(name: str) -> str:
    return f"{cut(name, NAME - 1):<{NAME}}"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"


def _short(value: float) -> str:
    return f"{value:.3g}"


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _probability(p: float) -> str:
    return "–" if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def _needed(row: DatasetComparison) -> str:
    pairs, existing = row.pairs_for_margin, row.split_count
    if row.plan_is_possible:
        unknown = ", if the dataset has as many" if existing is None else f" of the {existing} that the dataset has"
        return f"{pairs} different splits{unknown}" if row.test_share else str(pairs)
    many = "more than overlapping splits can give" if row.test_share else "over 10,000"
    if existing is None:
        return many
    reach = "" if math.isnan(row.detectable_at_most) else f", which can detect {_number(row.detectable_at_most)}"
    return f"{many if pairs is None else f'{pairs} splits'}; the dataset has {existing}{reach}"
