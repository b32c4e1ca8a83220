"""Findings on the number of draws: what more of them buy, and what they cost."""

import math
import statistics
from collections.abc import Sequence

import pandas as pd

from bench.api import declaration, stats
from bench.counts import plural
from bench.store.results import StoredResults
from bench.text_tables import markdown_table
from tools.findings import Exports, Finding, Means, number

DRAWN = ("mc-dropout", "mcni-fixed", "mcni-learned", "swag", "bayes-by-backprop")  # whose draws are new functions


def what_draws_buy(exports: Exports) -> Finding | None:
    """What more draws buy."""
    results = exports.results("equal-cost")
    if results is None:
        return None
    draws = (1, 5, 10, 20)
    scores = ("crps_mixture", "nll_categorical")  # of regression and of classification
    values = Means(results, [name for score in scores for name in (score, *(f"{score}@T={t}" for t in draws))])
    rows, losses = [], []
    for dataset, method in values.places:
        for score in scores:
            whole = values.value(dataset, method, score)
            parts = [values.value(dataset, method, f"{score}@T={count}") for count in draws]
            if method not in DRAWN or not all(map(math.isfinite, [whole, *parts])):
                continue
            rows.append([dataset, f"`{method}`", score, *map(number, [*parts, whole])])
            losses.append([(part - whole) / abs(whole) for part in parts])
    if not rows:
        return None
    typical = [statistics.median(column) for column in zip(*losses, strict=True)]
    told = ", ".join(f"{share:.1%} with {count}" for count, share in zip(draws, typical, strict=True))
    shown, repeats = worse_with_fewer(results, scores, draws), results.cells["seed"].nunique()
    counts = ", ".join(f"{shown[count]} with {count}" for count in draws) if any(shown.values()) else "none at any T"
    text = (
        "The first draws of the same networks, scored by themselves. Against all 100 draws the mean score is worse by "
        f"{told} (median over {plural(len(rows), 'pair')} of dataset and method). On how many of the pairs the first "
        f"draws were shown to be worse with {plural(repeats, 'repeat')}: {counts} (p by Holm over pairs and T)."
    )
    head = ["dataset", "method", "metric", *(f"T = {count}" for count in draws), "T = 100"]
    commands = ("uqbench run equal-cost", "uqbench report equal-cost --out report")
    return Finding("What does T buy?", text, "\n".join(markdown_table(head, rows)), commands)


def worse_with_fewer(results: StoredResults, scores: Sequence[str], draws: Sequence[int]) -> dict[int, int]:
    """Return on how many datasets the first draws of some method were shown to score worse than all of them.

    The first draws of a method stand beside it under a name of their own.
    """
    frame = results.frame[results.frame["method"].isin(DRAWN)]
    cells = results.cells[results.cells["method"].isin(DRAWN)]
    found: list[tuple[int, stats.DatasetComparison]] = []
    for count in draws:
        parts = {f"{score}@T={count}": score for score in scores}
        first = frame[frame["metric"].isin(list(parts))]
        first = first.assign(metric=first["metric"].map(parts), method=first["method"] + " first")
        both = pd.concat([frame, first])
        states = pd.concat([cells, cells.assign(method=cells["method"] + " first")])
        for method in cells["method"].unique():
            measures = [declaration(score) for score in scores]
            rows = stats.compare(both, f"{method} first", method, measures, cells=states).rows
            found += [(count, row) for row in rows if row.pairs]
    p = stats.adjust_p_values([row.p for _, row in found], "holm")
    alpha = stats.Settings().alpha
    shown = [count for (count, row), one in zip(found, p, strict=True) if one < alpha and row.difference > 0]
    return {count: shown.count(count) for count in draws}


def latency(exports: Exports) -> Finding | None:
    """What T draws cost."""
    results = exports.results("latency-tabular")
    if results is None:
        return None
    draws, modes = (1, 10, 50, 100), ("naive", "tuned")
    fixed = [f"latency_total@T={count}" for count in draws]
    others = [f"latency_total@T=100,mode={mode}" for mode in modes]
    values = Means(results, [*fixed, *others])
    rows, told = [], []
    for dataset, method in values.places:
        times = [values.value(dataset, method, name) for name in fixed]
        loop, tuned = (values.value(dataset, method, name) for name in others)
        ways = ["–" if math.isnan(loop / way) else f"{loop / way:.1f}x" for way in (times[-1], tuned)]
        rows.append([f"`{method}`", *map(number, [*times, loop]), *ways])
        if not math.isnan(times[-1]):
            told.append(f"`{method}` {times[-1] / times[0]:.0f} times")
    text = (
        f"100 draws take, against one draw of the same method: {', '.join(told)}. The table has microseconds for each "
        "row at the batch of the suite, what a loop over 100 draws takes, and how much faster the fixed and the tuned "
        "way of drawing are. [latency.md](../latency.md) has the machine and the spreads."
    )
    head = ["method", *(f"T = {count}" for count in draws), "loop, T = 100", "fixed way", "tuned way"]
    commands = ("uqbench run latency-tabular", "uqbench report latency-tabular --out report")
    return Finding("What do T draws cost?", text, "\n".join(markdown_table(head, rows)), commands)
