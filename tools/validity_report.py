"""The simulations of `tools.validity` as tables: python -m tools.validity_report [FILE] [STUDIES].

Prints Markdown, or writes it between the marks of a file: `make validity` writes docs/statistics.md.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bench.stats.tests import Array
from bench.text_tables import markdown_table
from tools.simulation import NOISES, Noise, lopsided_differences, repeated_runs
from tools.validity import (
    SIZES,
    Rates,
    bayesian_claims,
    coverage,
    coverage_of_aggregates,
    false_equivalences,
    false_positives_of_ranks,
    false_positives_on_many_datasets,
    false_positives_on_one_dataset,
    false_positives_with_overlap,
    planned_power,
    power_curves,
    second_looks,
)

MARKS = ("<!-- validity: begin -->", "<!-- validity: end -->")


def report(studies: int) -> Iterable[str]:
    """Yield the whole simulation as Markdown, from one seed."""
    generator = np.random.default_rng(2026)
    few = max(studies // 5, 200)  # where a study is a loop in Python
    sizes = [f"{size} seeds" for size in SIZES]
    yield f"{studies:,} simulated studies a number ({few:,} where marked *), one seed for all; numbers in %."
    differences: dict[str, Callable[[int], Array]] = {
        **{kind: partial(_exchangeable, kind, studies, generator) for kind in NOISES},
        "lopsided": partial(_lopsided, studies, generator),
    }
    yield from _table(
        "False positives at 5 %, one dataset", sizes, _by_draw(false_positives_on_one_dataset, differences, generator)
    )
    for title, measure in (
        ("Any false positive in 8 datasets", false_positives_on_many_datasets),
        ("False positives of ranks, 5 methods, 8 datasets", false_positives_of_ranks),
        ("Overlapping splits: false positives at 5 %, and intervals that miss", false_positives_with_overlap),
        ("False equivalences at 5 %: the true difference is the margin", false_equivalences),
    ):
        yield from _table(title, sizes, _by_noise(measure, studies, generator))
    yield from _table(
        "Bayesian tests more than 95 % sure of a difference that is not there *",
        sizes,
        _by_noise(bayesian_claims, few, generator),
    )
    yield from _table(
        "Coverage of 95 % intervals of the mean difference", sizes, _by_draw(coverage, differences, generator)
    )
    yield from _table(
        "Coverage of 95 % intervals over 8 datasets *", sizes, _by_noise(coverage_of_aggregates, few, generator)
    )
    effects = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
    yield from _table(
        "Power of the paired t-test against the standardised effect",
        [f"{e:g}" for e in effects],
        power_curves(effects, studies, generator),
    )
    planned = {
        f"pilot of {pilot}, {kind}": [
            number
            for difference in (0.5, 1.0)
            for number in planned_power(difference, pilot, few, generator, kind=kind)[::2]
        ]
        for pilot in SIZES
        for kind in NOISES
    }
    yield from _table(
        "Power of new studies of the planned size, 80 % promised *",
        ["effect 0.5", "0.5, deviation believed", "effect 1", "1, deviation believed"],
        planned,
    )
    yield ""
    yield (
        "Looking at 5 seeds, adding 10 where nothing was found and testing again: "
        f"{100 * second_looks(studies, generator):.1f} % false positives."
    )


def _exchangeable(kind: Noise, studies: int, generator: np.random.Generator, pairs: int) -> Array:
    a, b = repeated_runs(kind, (studies, pairs), 2, generator)
    return np.asarray(a - b)


def _lopsided(studies: int, generator: np.random.Generator, pairs: int) -> Array:
    return lopsided_differences((studies, pairs), generator)


def _by_draw(
    measure: Callable[[Callable[[int], Array], np.random.Generator], Rates],
    draws: dict[str, Callable[[int], Array]],
    generator: np.random.Generator,
) -> Rates:
    return {f"{name}, {kind}": v for kind, draw in draws.items() for name, v in measure(draw, generator).items()}


def _by_noise(
    measure: Callable[[Noise, int, np.random.Generator], Rates], studies: int, generator: np.random.Generator
) -> Rates:
    return {f"{name}, {kind}": v for kind in NOISES for name, v in measure(kind, studies, generator).items()}


def _table(title: str, columns: Sequence[str], rates: Rates) -> Iterable[str]:
    yield from ("", f"**{title}**", "")
    rows = ([name, *(f"{100 * value:.1f}" for value in values)] for name, values in rates.items())
    yield from markdown_table(("", *columns), rows, numbers=range(1, len(columns) + 1))


def main(arguments: Sequence[str]) -> None:
    """Print the report, or write it between the marks of a file."""
    path = Path(arguments[0]) if arguments else None
    studies = int(arguments[1]) if len(arguments) > 1 else 10_000
    start = time.perf_counter()
    text = "\n".join(report(studies))
    if path is None:
        print(text)
    else:
        page = path.read_text("utf-8")
        before, after = page.partition(MARKS[0])[0], page.partition(MARKS[1])[2]
        path.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", "utf-8")
    print(f"{studies:,} studies in {time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
