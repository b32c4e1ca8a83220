"""How often histories without a change have a change point, how often a change of a time is found, and times in gates.

python -m tools.validity_of_histories [PAGE] [HISTORIES]

Prints Markdown, or writes it between the marks of a page: `make validity` updates docs/gate.md.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from bench.gate.verdicts import one_sided
from bench.history.changes import ALPHA, with_changes
from bench.history.series import Label, Series, Version
from bench.metrics import declaration
from bench.metrics.margins import margin_of
from bench.stats.tests import Array
from bench.text_tables import markdown_table
from tools.pages import print_or_replace_part

TIME, SCORE = "latency_total@T=10", "rmse"
SEEDS = 8
SHARED = (0.02, 0.1, 0.3)  # standard deviation of what the values of a run have in common
DESIGNS = ((3, 1), (10, 1), (4, 4))  # versions, and runs of each
STEP = 1.5  # how much slower the later half of the versions is


def histories(
    count: int, versions: int, runs: int, shared: float, generator: np.random.Generator, *, step: float = 1.0
) -> Array:
    """Return values `[count, versions, runs, seeds]` around 1, with noise of every seed and noise that a run shares.

    From the middle version on they are `step` times as large.
    """
    shape = (count, versions, runs, SEEDS)
    logs = 0.02 * generator.normal(size=shape) + shared * generator.normal(size=(*shape[:3], 1))
    steps = np.where(np.arange(versions) < versions // 2, 1.0, step)
    return np.asarray(np.exp(logs) * steps[:, None, None])


def changed(values: Array, metric: str) -> float:
    """Return the share of histories `[count, versions, runs, seeds]` that have a change point."""
    return float(np.mean([bool(with_changes([_series(one, metric)]).lines[0].changes) for one in values]))


def _series(values: Array, metric: str) -> Series:
    """Return a history as stores give it: of a seed that several runs have, the last value counts."""
    versions = tuple(Version(f"c{n}", "", float(n), float(n)) for n in range(len(values)))
    runs = tuple(tuple(own.tolist()) for own in values.mean(axis=-1))
    return Series(Label("s", "d", "m"), metric, versions, tuple(range(SEEDS)), values[:, -1], 1, runs)


def times_in_a_gate(count: int) -> Iterable[str]:
    """Yield how often one time of unchanged code is called regressed, by one run against one."""
    generator = np.random.default_rng([2026, 1])
    rows = []
    for shared in (0.0, *SHARED):
        before, after = np.moveaxis(histories(count, 2, 1, shared, generator)[:, :, 0], 1, 0)
        margin = margin_of(declaration(TIME), {})
        alarms = [one_sided(b - a, margin.of(float(a.mean()))) < ALPHA for a, b in zip(before, after, strict=True)]
        rows.append([f"{100 * shared:g} %{' (no promise)' * (shared > 0.02)}", f"{100 * float(np.mean(alarms)):.1f}"])
    yield from markdown_table(("noise that the seeds of a run share", "regressed, %"), rows, numbers=(1,))


def report(count: int) -> Iterable[str]:
    """Yield the table as Markdown."""
    generator = np.random.default_rng(2026)
    promise = f"{100 * ALPHA:g} % false change points are promised"
    yield f"{count:,} simulated histories per number, {SEEDS} seeds, in %; {promise}."
    yield ""
    rates: dict[str, list[float]] = {}
    for shared in SHARED:
        same = [histories(count, *design, shared, generator) for design in DESIGNS]
        slower = [histories(count, *design, shared, generator, step=STEP) for design in DESIGNS]
        noise = f"runs share noise of {100 * shared:g} %"
        rates[f"no change, {noise}: tested by runs"] = [changed(one, TIME) for one in same]
        rates[f"no change, {noise}: tested by seeds (wrong here)"] = [changed(one, SCORE) for one in same]
        rates[f"{STEP:g} times slower, {noise}: found by runs"] = [changed(one, TIME) for one in slower]
    alone = [histories(count, *design, 0.0, generator) for design in DESIGNS]
    rates["no change, nothing shared: other metrics, tested by seeds"] = [changed(one, SCORE) for one in alone]
    columns = [f"{versions} versions, {runs} run{'s' * (runs > 1)} each" for versions, runs in DESIGNS]
    rows = ([name, *(f"{100 * rate:.1f}" for rate in own)] for name, own in rates.items())
    yield from markdown_table(("", *columns), rows, numbers=range(1, len(columns) + 1))


def main(arguments: Sequence[str]) -> None:
    """Print the table, or write it between the marks of a page."""
    count = int(arguments[1]) if len(arguments) > 1 else 2_000
    page = Path(arguments[0]) if arguments else None
    print_or_replace_part(page, "history", "\n".join(report(count)))
    print_or_replace_part(page, "times", "\n".join(times_in_a_gate(count)))


if __name__ == "__main__":
    main(sys.argv[1:])
