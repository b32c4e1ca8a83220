"""Metrics whose expectation depends on the number of draws T are compared at equal T only.

With few draws the mutual information of a forecast is estimated too low and a mixture's log score too low: a method
with 100 draws would be compared with an ensemble of 5 by their T as well as by their predictions.
"""

from collections import Counter
from collections.abc import Sequence

from bench.stats.cell_counts import CellCounts
from bench.stats.pairing import MetricLike


def draws_of(measure: MetricLike, dataset: str, method: str, counts: CellCounts) -> frozenset[int]:
    """Return the T behind a method's values on a dataset; empty where it is unknown or does not matter."""
    # A value under the condition T=5 is that of 5 draws, for every method that has it.
    same = not measure.biased_in_draws or measure.name.partition("@")[2].startswith("T=")
    return frozenset() if same else counts.draws(dataset, method)


def unequal_draws(measure: MetricLike, dataset: str, methods: Sequence[str], counts: CellCounts) -> str:
    """Return why methods cannot be compared by a metric on a dataset: their T differ; '' where they do not."""
    own = {method: draws_of(measure, dataset, method, counts) for method in methods}
    if len({draws for draws in own.values() if draws}) < 2:
        return ""
    listed = ", ".join(f"{method} has {_words(draws)}" for method, draws in own.items() if draws)
    return f"{measure.name} is biased in the number of draws and compared at equal T only: {listed}"


def methods_with_equal_draws(
    measure: MetricLike, datasets: Sequence[str], methods: Sequence[str], counts: CellCounts
) -> tuple[list[str], str]:
    """Return the methods that have the T of most methods on every dataset, and which are left out, in words."""
    left_out: dict[str, frozenset[int]] = {}
    usual: set[frozenset[int]] = set()
    for dataset in datasets:
        own = {method: draws_of(measure, dataset, method, counts) for method in methods}
        known = Counter(draws for draws in own.values() if draws)
        if len(known) > 1:
            # Of equally frequent ones the largest T.
            most = max(known, key=lambda draws: (known[draws], max(draws)))
            usual.add(most)
            left_out |= {method: draws for method, draws in own.items() if draws and draws != most}
    if not left_out:
        return list(methods), ""
    who = ", ".join(f"{method} ({_words(left_out[method])})" for method in methods if method in left_out)
    at = " and ".join(sorted({_words(draws) for draws in usual}))
    text = f"{measure.name} is biased in the number of draws and ranked at equal T only ({at}), so not ranked: {who}"
    return [method for method in methods if method not in left_out], text


def _words(draws: frozenset[int]) -> str:
    return f"T = {' or '.join(str(count) for count in sorted(draws))}"
