"""One sentence per group of metrics: who is better, by how much, at what cost, and what could not be seen."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bench.api import plural, stats
from bench.reports._costs import MethodCost, numbers_text, times_text
from bench.reports._headline import Headline
from bench.reports._page_tests import SETTINGS
from bench.reports._standings import Board, Estimate, Standing
from bench.reports._words import arrow, decimals, rounded

MOST_NAMED, MOST_OF_MANY = 4, 2  # methods of one sentence, and where there are many; the table has all
MANY = 12  # methods from which on sentences are short
FEWEST = 5  # repeats, below which nothing is tested
NOTABLE = 1.25  # times the baseline's cost, from which on a sentence tells it


def title(headline: Headline) -> str:
    """Return what a sentence is about: the group and its metric."""
    alone = ", draws alone" if headline.metric.draws_alone else ""
    return f"{headline.group.capitalize()}: {headline.metric.name} {arrow(headline.metric)}{alone}"


def no_column(baseline: str | None) -> str:
    """Return why a metric in units of several datasets has no column."""
    reason = f"{baseline}, the baseline, has no value of it" if baseline else "there is no baseline to compare with"
    return f'No column here: {reason}, and the units of several datasets have no mean. "Results by dataset" has it.'


def answer(board: Board, baseline: str | None, costs: Mapping[str, MethodCost], family: int) -> str:
    """Return the sentence of one metric; `family` is the number of tests that its verdicts are corrected for."""
    best = board.best()
    compared = {m: one for m, one in board.standings.items() if one.difference is not None}
    first = f"best mean {best}, {_value(board, best)}" if best and best != baseline else ""
    first = f"best mean {best}, the baseline" if best and best == baseline else first
    first = first or _best_of_common(board)
    if baseline is None or not compared:
        reason = f"{baseline}, the baseline, has no value" if baseline else "there is no baseline to compare with"
        return _sentence([first, f"not tested, as {reason}"])
    if not any(one.tested for one in compared.values()):
        pairs = max((row.pairs for one in compared.values() for row in one.on.values()), default=0)
        return _sentence([first, f"not tested: {plural(pairs, 'repeat')}, at least {FEWEST} are needed"])
    parts = []
    for word in ("better", "worse"):
        names = [m for m, one in compared.items() if one.count(word)]
        names.sort(key=lambda m: (-compared[m].count(word), -abs(compared[m].difference.value)))  # type: ignore[union-attr]  # as chosen above
        parts += [f"{word} than {baseline}: {_listed(board, names, word, compared, costs)}"] if names else []
    none = f"no method was shown to be better or worse than {baseline}"
    over = _over_datasets(board, baseline, compared, costs)
    parts = parts or [f"{none} on a single dataset" if over else none]
    parts += over
    return _sentence([*parts, first]) + _unseen(board, compared, family)


def _over_datasets(
    board: Board, baseline: str, compared: Mapping[str, Standing], costs: Mapping[str, MethodCost]
) -> list[str]:
    """Return who is better or worse over all datasets together, where no single dataset need show it."""
    parts = []
    for word in ("better", "worse"):
        names = [m for m, one in compared.items() if one.over == word]
        names.sort(key=lambda m: -abs(compared[m].difference.value))  # type: ignore[union-attr]  # as chosen by the caller
        if names:
            listed = _listed(board, names, "", compared, costs)
            parts.append(f"over the {len(board.datasets)} datasets together {word} than {baseline}: {listed}")
    return parts


def _best_of_common(board: Board) -> str:
    """Return who has the best mean over the repeats that all methods have, where nobody else has all repeats."""
    if board.common is None or sum(one.whole for one in board.standings.values()) > 1:
        return ""
    best, means = board.common.best(board.metric), board.common.means
    whole = [method for method, one in board.standings.items() if one.whole and method in means and method not in best]
    places = decimals([(one.value.high - one.value.low) / 2 for one in board.standings.values()], list(means.values()))
    told = ", ".join(f"{method} {rounded(means[method], places)}" for method in (*best, *whole))
    return f"no best mean, as methods have different repeats (best over the {board.common.repeats} common ones: {told})"


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}."


def _listed(
    board: Board, names: Sequence[str], word: str, compared: Mapping[str, Standing], costs: Mapping[str, MethodCost]
) -> str:
    told = []
    most = MOST_NAMED if len(board.standings) < MANY else MOST_OF_MANY
    for method in names[:most]:
        one, facts = compared[method], []
        if len(board.datasets) > 1 and word:
            facts.append(_where(board, one, word))
        facts.append(_change(board, one))
        facts += [_cost(costs.get(method))] if _cost(costs.get(method)) else []
        told.append(f"{method} ({', '.join(facts)})")
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(told) + more


def _where(board: Board, one: Standing, word: str) -> str:
    """Return on how many datasets there is that verdict; of a single one its name and the difference there."""
    rows = [row for row in one.on.values() if row.verdict == word]
    count = f"on {len(rows)} of {len(one.on)} datasets"
    if len(rows) != 1:
        return count
    row = rows[0]
    scale = 100 / abs(row.mean_b) if board.percent and row.mean_b else 1.0
    width = (row.interval.high - row.interval.low) / 2 * scale if row.interval else math.nan
    places = 1 if board.percent else decimals([width], [row.difference])
    return f"{count}: {_signed(row.difference * scale, places, ' %' * board.percent)} on {row.dataset}"


def _value(board: Board, method: str) -> str:
    value, every = board.standings[method].value, [one.value for one in board.standings.values()]
    places = decimals([(each.high - each.low) / 2 for each in every], [each.value for each in every])
    if board.percent:
        return f"{rounded(value.value, min(places, 1), sign=True)} %"
    ends = f" ({rounded(value.low, places)} to {rounded(value.high, places)})" if value.has_interval else ""
    return f"{rounded(value.value, places)}{ends}"


def _change(board: Board, one: Standing) -> str:
    """Return the difference to the baseline, and in per cent where that says something."""
    found: Estimate = one.difference  # type: ignore[assignment]  # only methods that have one are listed
    over = " on average" if len(board.datasets) > 1 else ""
    if board.percent:
        return f"{_signed(found.value, 1 if abs(found.value) < 1000 else 0, ' %')}{over}"
    text = _signed(found.value, decimals([(found.high - found.low) / 2], [found.value]), "")
    text += " in distance to the target" if board.metric.direction == "target" else ""
    text += over
    means = [row.mean_b for row in one.on.values()]
    plain = not board.metric.signed and board.metric.direction != "target" and len(means) == 1 and means[0] > 0
    return f"{text}, {rounded(100 * found.value / means[0], 0, sign=True)} %" if plain else text


def _signed(value: float, places: int, unit: str) -> str:
    """Return a difference with its sign; one that rounds to 0 is a bound, because 0 would be no difference."""
    text = rounded(value, places, sign=True)
    if value == 0 or not math.isfinite(value) or float(text) != 0:
        return f"{text}{unit}"
    return f"by less than {10.0**-places:.{places}f}{unit}"


def _cost(cost: MethodCost | None) -> str:
    """Return what of a method's cost is not that of the baseline."""
    if cost is None or math.isnan(cost.training) or 1 / NOTABLE < cost.training < NOTABLE:
        return ""
    return f"{times_text(cost.training)} the training, T = {numbers_text(cost.passes)}"


def _unseen(board: Board, compared: Mapping[str, Standing], family: int) -> str:
    """Return what was not shown, and below which size differences are likely to be missed."""
    rows = [row for one in compared.values() for row in one.on.values() if not math.isnan(row.p)]
    left = [row for row in rows if row.verdict not in ("better", "worse")]
    if not left:
        return ""
    alpha = SETTINGS.alpha / max(family, 1)
    sizes = [_detectable(row, alpha, board.percent) for row in left]
    sizes = [size for size in sizes if math.isfinite(size)]
    told = f" Not shown in {len(left)} of {plural(len(rows), 'comparison')}"
    typical = float(np.median(sizes)) if sizes else 0.0
    if typical == 0.0:
        return f"{told}."
    if not board.percent and typical > stats.widest_difference(board.metric):
        most = "" if len(left) == len(rows) else "in most of them "  # some were shown
        return f"{told}: {most}these repeats can show no difference that {board.metric.name} can have."
    size = f"{rounded(typical, decimals([typical], []))}{' %' if board.percent else ''}"
    return f"{told}: a difference below about {size} may well have been missed."


def more_repeats(own: Sequence[Board]) -> str:
    """Return what helps where more splits of the same rows cannot show a difference of half a deviation, or ''."""
    rows = [row for board in own for one in board.standings.values() for row in one.on.values()]
    left = [row for row in rows if not math.isnan(row.p) and row.verdict not in ("better", "worse")]
    stuck = [row for row in left if row.test_share and row.pairs_for_margin is None]
    if 2 * len(stuck) <= len(left):
        return ""
    return (
        "Splits of one table overlap: in most of these comparisons no number of seeds would show a difference of half "
        "a standard deviation over seeds. More rows or more datasets help, and so does a test of fewer pairs by fewer "
        "metrics (uqbench compare A B --metric NAME)."
    )


def _detectable(row: stats.DatasetComparison, alpha: float, percent: bool) -> float:
    """Return the smallest difference that so many pairs show with 80 % probability after the whole correction."""
    if not math.isfinite(row.deviation) or row.pairs < 2:
        return math.nan
    size = stats.detectable_difference(
        row.deviation, row.pairs, alpha=alpha, test_share=row.test_share, estimated_from=row.pairs
    )
    return size * 100 / abs(row.mean_b) if percent and row.mean_b else size
