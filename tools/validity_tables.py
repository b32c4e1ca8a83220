"""The tables of docs/statistics.md, from the simulations of `tools.validity_rates`.

python -m tools.validity_tables [PAGE] [STUDIES]

Prints Markdown, or writes it between the marks of a page: `make validity` updates docs/statistics.md.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bench.stats.tests import Array
from bench.text_tables import markdown_table
from tools import validity_rates as simulate
from tools.pages import print_or_replace_part
from tools.simulated_studies import NOISES, Noise, lopsided_differences, repeated_runs
from tools.validity_of_estimands import false_positives_of_estimands
from tools.validity_of_families import (
    false_positives_of_a_page,
    false_positives_of_boards,
    false_positives_on_other_rows,
    power_of_boards,
)
from tools.validity_of_plans import plans_by_noise, plans_for_heavy_tails
from tools.validity_rates import SIZES, Rates

Differences = Callable[[int], Array]  # of so many pairs
SEEDS = [f"{size} seeds" for size in SIZES]
DESIGNS = ((5, 4), (10, 2), (10, 10), (20, 4))  # splits, and seeds on each
SHARES = (0.1, 0.2, 0.33)  # of test rows
EFFECTS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
PLANNED = (0.25, 0.5, 1.0)


def report(studies: int) -> Iterable[str]:
    """Yield all tables as Markdown; one generator serves all simulations, in this order."""
    generator = np.random.default_rng(2026)
    few = max(studies // 5, 200)  # where every study is a loop in Python
    yield f"{studies:,} simulated studies per number ({few:,} where marked *), one seed for all; numbers in %."
    differences: dict[str, Differences] = {kind: partial(_exchangeable, kind, studies, generator) for kind in NOISES}
    differences["lopsided (no promise)"] = lambda pairs: lopsided_differences((studies, pairs), generator)
    rates = _by_differences(simulate.false_positives_on_one_dataset, differences, generator)
    yield from _table("False positives at 5 %, one dataset", rates)
    for title, measure, count in (
        ("Any false positive in 8 datasets", simulate.false_positives_on_many_datasets, studies),
        ("False positives of ranks, 5 methods, 8 datasets", simulate.false_positives_of_ranks, studies),
        (
            "Overlapping splits: false positives at 5 %, and intervals that miss",
            simulate.false_positives_with_overlap,
            studies,
        ),
        ("False equivalences at 5 %: the true difference is the margin", simulate.false_equivalences, studies),
    ):
        yield from _table(title, _by_noise(measure, count, generator))
    rates = _by_noise(simulate.bayesian_claims, few, generator)
    rates |= _by_noise(simulate.hierarchical_claims, few, np.random.default_rng([2026, 8]))
    yield from _table("Bayesian answers more than 95 % sure of a difference that does not exist *", rates)
    rates = _by_differences(simulate.coverage, differences, generator)
    yield from _table("Coverage of 95 % intervals of the mean difference", rates)
    rates = _by_noise(simulate.coverage_of_aggregates, few, generator)
    yield from _table("Coverage of 95 % intervals over 8 datasets *", rates)
    rates = simulate.power_curves(EFFECTS, studies, generator)
    yield from _table("Power of the paired t-test by standardised effect", rates, [f"{effect:g}" for effect in EFFECTS])
    yield from _plans(studies, few)
    repeated = 100 * simulate.second_looks(studies, np.random.default_rng([2026, 3]))
    yield ""
    again = "Testing 5 seeds, adding 10 where nothing was found and testing again (no promise)"
    yield f"{again}: {repeated:.1f} % false positives."
    rates = simulate.rates_under_skew(studies, np.random.default_rng(2026))
    yield from _table("Skewed differences and rare failures: false positives at 5 %, and notes", rates)
    # A generator of its own: a share more or less changes no other table.
    rates = simulate.false_positives_by_share(SHARES, studies, np.random.default_rng([2026, 1]))
    yield from _table("Overlapping splits: false positives at 5 % by the share of test rows", rates)
    rates = simulate.false_positives_with_shared_splits(DESIGNS, studies, np.random.default_rng([2026, 2]))
    columns = [f"{splits} splits x {seeds} seeds" for splits, seeds in DESIGNS]
    yield from _table("Several seeds on each split: false positives at 5 %", rates, columns)
    rates = false_positives_of_estimands(studies, np.random.default_rng([2026, 4]))
    yield from _table("Tests beside that of the mean: false positives at 5 % (Yuen's test: from 10 pairs)", rates)
    yield from _families(few)


def _families(studies: int) -> Iterable[str]:
    """Yield the tables of families of tests; a generator of their own, so that they change no other table."""
    rates = _by_noise(false_positives_of_a_page, studies, np.random.default_rng([2026, 4]))
    yield from _table("Any false positive on a page: 5 methods, 8 datasets, 3 metrics *", rates)
    rates = _by_noise(false_positives_of_boards, studies, np.random.default_rng([2026, 5]))
    yield from _table("Any false positive on a board *", rates)
    rates = power_of_boards(EFFECTS[:5], studies, np.random.default_rng([2026, 6]))
    title = "Boards over 8 datasets, 10 seeds: how often the one method that differs is told from the baseline *"
    yield from _table(title, rates, [f"{effect:g}" for effect in EFFECTS[:5]])
    rates = false_positives_on_other_rows(studies, np.random.default_rng([2026, 7]))
    yield from _table("Seeds on one test set of 200 rows: differences that other rows do not have *", rates)


def _plans(studies: int, few: int) -> Iterable[str]:
    """Yield the tables of the planner; a generator of their own, so that they change no other table."""
    generator = np.random.default_rng([2026, 2])
    rates = plans_by_noise((0.5, 1.0), few, generator)
    columns = ["effect 0.5", "0.5, deviation taken as known", "effect 1", "1, deviation taken as known"]
    yield from _table("Power of new studies of the planned size, 80 % promised *", rates, columns)
    rates = plans_for_heavy_tails(PLANNED, studies, generator)
    title = "The same where differences are Student t with 3 degrees of freedom, alone and in a family"
    yield from _table(title, rates, [f"effect {effect:g}" for effect in PLANNED])


def _exchangeable(kind: Noise, studies: int, generator: np.random.Generator, pairs: int) -> Array:
    a, b = repeated_runs(kind, (studies, pairs), 2, generator)
    return np.asarray(a - b)


def _by_differences(
    measure: Callable[[Differences, np.random.Generator], Rates],
    kinds: dict[str, Differences],
    generator: np.random.Generator,
) -> Rates:
    return {f"{name}, {kind}": v for kind, draw in kinds.items() for name, v in measure(draw, generator).items()}


def _by_noise(
    measure: Callable[[Noise, int, np.random.Generator], Rates], studies: int, generator: np.random.Generator
) -> Rates:
    return {f"{name}, {kind}": v for kind in NOISES for name, v in measure(kind, studies, generator).items()}


def _table(title: str, rates: Rates, columns: Sequence[str] = SEEDS) -> Iterable[str]:
    yield from ("", f"**{title}**", "")
    rows = ([name, *(f"{100 * value:.1f}" for value in values)] for name, values in rates.items())
    yield from markdown_table(("", *columns), rows, numbers=range(1, len(columns) + 1))


def main(arguments: Sequence[str]) -> None:
    """Print the tables, or write them between the marks of a page."""
    studies = int(arguments[1]) if len(arguments) > 1 else 10_000
    start = time.perf_counter()
    print_or_replace_part(Path(arguments[0]) if arguments else None, "validity", "\n".join(report(studies)))
    print(f"{studies:,} studies in {time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
