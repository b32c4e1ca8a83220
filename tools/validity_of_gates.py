"""How often a gate fails between two unrelated runs of unchanged code, by the distribution of values over seeds.

python -m tools.validity_of_gates [PAGE] [GATES]

Prints Markdown, or writes it between the marks of a page: `make validity` updates docs/gate.md.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from bench.gate.values import Measured
from bench.gate.verdicts import FAILING, Rules, compare, decide
from bench.stats.tests import Array
from bench.text_tables import markdown_table
from tools.pages import print_or_replace_part

SEEDS = 10
COMPARISONS = 69  # of a gate: as many as suite smoke has

Draw = Callable[[np.random.Generator, tuple[int, int]], Array]
# Shifted where values would come near zero, so that the margin is small beside the noise, as it is in real suites.
NOISE: dict[str, Draw] = {
    "gaussian": lambda generator, size: 10.0 + generator.normal(size=size),
    "skewed (exponential)": lambda generator, size: 10.0 + generator.exponential(size=size),
    "heavy-tailed (Student t, 3 degrees of freedom; no promise)": lambda g, size: 100.0 + g.standard_t(3, size),
    "very skewed (lognormal, sigma 1; no promise)": lambda generator, size: generator.lognormal(0.0, 1.0, size),
    "lognormal, sigma 2 (no promise)": lambda generator, size: generator.lognormal(0.0, 2.0, size),
}


def false_alarms(
    draw: Draw, gates: int, generator: np.random.Generator, comparisons: int = COMPARISONS
) -> tuple[float, float]:
    """Return the share of gates that fail, and of those that fail by a verdict of a test."""
    rules, failed, by_test = Rules(), 0, 0
    for _ in range(gates):
        then, now = (_measured(draw(generator, (comparisons, SEEDS))) for _ in range(2))
        rows = decide(compare(then, now, rules), rules.alpha, rules.equivalence_alpha)
        bad = [row for row in rows if row.verdict in FAILING]
        failed += bool(bad)
        by_test += any("outlier" not in row.note for row in bad)
    return failed / gates, by_test / gates


def _measured(values: Array) -> Measured:
    return Measured(tuple(range(SEEDS)), {(f"set {n}", "method"): {"rmse": row} for n, row in enumerate(values)})


def report(gates: int) -> Iterable[str]:
    """Yield the table as Markdown."""
    generator = np.random.default_rng([2026, 2])
    error = 100.0 * np.sqrt(0.01 * 0.99 / gates)
    promise = f"1 % is promised (standard error {error:.1f})"
    yield f"{gates} simulated gates of {COMPARISONS} comparisons per number, {SEEDS} seeds, in %; {promise}."
    yield ""
    rates = {name: false_alarms(draw, gates, generator) for name, draw in NOISE.items()}
    rows = ([name, *(f"{100.0 * rate:.1f}" for rate in own)] for name, own in rates.items())
    yield from markdown_table(("values over seeds", "gates that fail", "by a test, not by an outlier"), rows, [1, 2])


def main(arguments: Sequence[str]) -> None:
    """Print the table, or write it between the marks of a page."""
    gates = int(arguments[1]) if len(arguments) > 1 else 400
    print_or_replace_part(Path(arguments[0]) if arguments else None, "noise", "\n".join(report(gates)))


if __name__ == "__main__":
    main(sys.argv[1:])
