"""False alarms and detections of a gate, measured on real runs of suite smoke.

    uqbench run smoke --seeds 600 --store runs/gate.db
    python -m tools.gate_validity --store runs/gate.db --again 60 docs/gate.md

The store is a pool of runs at many seeds. A gate takes ten random seeds for its baseline and ten others for the run, so
nothing has changed and the pairs are unrelated. For detection, one metric of one method on one dataset is made worse by
one standard deviation of the pool, and the pairs are related: the change adds a little noise to every number, or the
runs have the same splits and all other random numbers are new.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from bench.errors import UserError
from bench.gate.baseline import Baseline
from bench.gate.decide import gate
from bench.gate.measure import rules_of
from bench.gate.values import Measured, Place, gated_metrics, measured
from bench.gate.verdicts import Rules
from bench.metrics import declaration
from bench.metrics.margins import margin_of
from bench.plan.cells import Refused, plan
from bench.plan.suite import Suite, load_suite
from bench.plugins.registry import Registry
from bench.run.job import Job
from bench.run.jobs import outcomes
from bench.stats.pairing import losses
from bench.stats.sequential import doubling
from bench.stats.tests import Array
from bench.store.results import StoredResults
from bench.store.store import Store
from bench.text_tables import markdown_table
from tools.pages import print_or_replace_part

SUITE = "smoke"
OTHER_SEEDS = 1_000_000  # added to a seed whose split stays
SHARES = (0.1, 0.25, 0.4, 0.5, 1.0)


@dataclass(frozen=True)
class Pool:
    """Real runs at many seeds."""

    runs: Measured
    again: Measured  # the first seeds once more: the same splits, all other random numbers new

    def take(self, seeds: NDArray[np.int64], side: Measured | None = None) -> Measured:
        """Return the runs at some seeds."""
        side = side or self.runs
        values = {place: {m: row[seeds] for m, row in rows.items()} for place, rows in side.values.items()}
        return Measured(tuple(range(len(seeds))), values, environment=side.environment, codes={"": 0})


def again(suite: Suite, seeds: int, metrics: Sequence[str]) -> Measured:
    """Run a suite with its splits as they are and all other random numbers new."""
    values: dict[Place, dict[str, Array]] = {}
    for task in plan(suite.model_copy(update={"seeds": seeds}), Registry()):
        if isinstance(task, Refused):
            raise UserError(f"{task.dataset} {task.method}: {task.reason}")
        jobs = [Job(task.plugin, task.protocol, split, OTHER_SEEDS + n) for n, split in enumerate(task.splits)]
        rows = values[task.dataset, task.method] = {}
        for number, outcome in outcomes(jobs):
            for name in {*outcome.metrics} & {*metrics}:
                rows.setdefault(name, np.full(seeds, np.nan))[number] = outcome.metrics[name]
    return Measured(tuple(range(seeds)), values)


def _against(then: Measured, now: Measured, rules: Rules, looks: Sequence[int] = ()) -> dict[tuple[Place, str], str]:
    made = gate(Baseline(SUITE, {}, then, ()), lambda seeds, places: now.first(seeds), rules, looks)
    return {(row.place, row.metric): row.verdict for row in made.rows}


def false_alarms(
    pool: Pool, rules: Rules, gates: int, seeds: int, generator: np.random.Generator, looks: Sequence[int] = ()
) -> float:
    """Return the share of gates that fail when nothing has changed."""
    return _failing(lambda: _runs(pool, "seeds", seeds, generator), rules, gates, looks)


def alarms_of_divergence(
    pool: Pool, rules: Rules, gates: int, seeds: int, share: float, generator: np.random.Generator
) -> float:
    """Return the same where the cells of one method on one dataset diverge by chance, before as after."""
    places = sorted(pool.runs.values)

    def runs() -> tuple[Measured, Measured]:
        then, now = _runs(pool, "seeds", seeds, generator)
        place = places[generator.integers(len(places))]
        return _diverging(then, place, share, generator), _diverging(now, place, share, generator)

    return _failing(runs, rules, gates)


def _diverging(side: Measured, place: Place, share: float, generator: np.random.Generator) -> Measured:
    gone = generator.random(len(side.seeds)) < share
    rows = {metric: np.where(gone, np.nan, row) for metric, row in side.values[place].items()}
    lost = {place: {"diverged": tuple(int(seed) for seed in np.flatnonzero(gone))}}
    return replace(side, values={**side.values, place: rows}, lost=lost)


def _failing(
    runs: Callable[[], tuple[Measured, Measured]], rules: Rules, gates: int, looks: Sequence[int] = ()
) -> float:
    found = (_against(*runs(), rules, looks).values() for _ in range(gates))
    return sum(any(verdict in ("regressed", "missing") for verdict in verdicts) for verdicts in found) / gates


def _runs(pool: Pool, kind: float | str, seeds: int, generator: np.random.Generator) -> tuple[Measured, Measured]:
    """Return a baseline and a run without a change: `kind` is "seeds", "splits", or a share of noise."""
    if kind == "seeds":
        order = generator.permutation(len(pool.runs.seeds))[: 2 * seeds]
        return pool.take(order[:seeds]), pool.take(order[seeds:])
    if kind == "splits":
        order = generator.permutation(len(pool.again.seeds))[:seeds]
        return pool.take(order), pool.take(order, pool.again)
    then = pool.take(generator.permutation(len(pool.runs.seeds))[:seeds])
    values: dict[Place, dict[str, Array]] = {}
    for place, rows in then.values.items():
        for metric, row in rows.items():
            noise = float(kind) * _deviation(pool, place, metric) * generator.normal(size=seeds)
            values.setdefault(place, {})[metric] = row + noise
    return then, replace(then, values=values)


def _deviation(pool: Pool, place: Place, metric: str) -> float:
    return float(np.nanstd(pool.runs.values[place][metric], ddof=1))


def detection(
    pool: Pool, rules: Rules, gates: int, seeds: int, kind: float | str, generator: np.random.Generator
) -> float:
    """Return the share of gates that name the one metric that is worse by a standard deviation over seeds."""
    targets = [(place, metric) for place, rows in sorted(pool.runs.values.items()) for metric in sorted(rows)]
    caught = 0
    for _ in range(gates):
        then, now = _runs(pool, kind, seeds, generator)
        place, metric = targets[generator.integers(len(targets))]
        values = {where: dict(rows) for where, rows in now.values.items()}
        values[place][metric] = values[place][metric] + _worse(metric) * _deviation(pool, place, metric)
        found = _against(then, replace(now, values=values), rules)
        caught += found[place, metric] == "regressed"
    return caught / gates


def within_margin(
    pool: Pool, rules: Rules, gates: int, seeds: int, share: float, generator: np.random.Generator
) -> float:
    """Return the share of gates that fail when one metric is worse by a share of its margin, at the same seeds."""
    targets = [(place, metric) for place, rows in sorted(pool.runs.values.items()) for metric in sorted(rows)]

    def runs() -> tuple[Measured, Measured]:
        then = pool.take(generator.permutation(len(pool.runs.seeds))[:seeds])
        place, metric = targets[generator.integers(len(targets))]
        declared, row = declaration(metric), then.values[place][metric]
        centre = losses(row, declared) if declared.direction == "target" else row
        margin = margin_of(declared, rules.margins).of(float(centre.mean()))
        moved = row + _worse(metric) * margin * (share + 0.5 * generator.normal(size=seeds))
        return then, replace(then, values={**then.values, place: {**then.values[place], metric: moved}})

    return _failing(runs, rules, gates)


def _worse(metric: str) -> float:
    """Return the sign of a worse value; the coverages of smoke lie below their targets."""
    return 1.0 if declaration(metric).direction == "lower" else -1.0


def correlation(pool: Pool) -> float:
    """Return the median correlation of a number with itself when only the split is the same."""
    count = len(pool.again.seeds)
    found = [
        np.corrcoef(pool.runs.values[place][metric][:count], row)[0, 1]
        for place, rows in pool.again.values.items()
        for metric, row in rows.items()
    ]
    return float(np.median(found))


def report(pool: Pool, rules: Rules, gates: int, generator: np.random.Generator) -> Iterator[str]:
    """Yield the tables of docs/gate.md."""
    comparisons = sum(len(rows) for rows in pool.runs.values.values())
    many = f"{len(pool.runs.seeds)} seeds of suite {SUITE}, {comparisons} comparisons a gate"
    yield f"{many}, {gates} gates a number, in %."
    yield ""
    rates = {f"{seeds} seeds": false_alarms(pool, rules, gates, seeds, generator) for seeds in (5, 10)}
    looks = doubling(3, 10)
    sequential = f"sequential, looks at {', '.join(map(str, looks))} seeds"
    rates[sequential] = false_alarms(pool, rules, gates, 10, generator, looks)
    for seeds in (3, 4):
        few = f"{seeds} seeds: too few for a test, the rule of three ranges decides (no promise)"
        rates[few] = false_alarms(pool, rules, gates, seeds, generator)
    for share in (0.01, 0.05):
        lost = f"10 seeds; one method on one dataset diverges in {share:.0%} of its cells, before as after (no promise)"
        rates[lost] = alarms_of_divergence(pool, rules, gates, 10, share, generator)
    yield from _table("re-seeded runs without a change", "gates that fail", rates)
    yield ""
    rates = {f"{share:g} margins": within_margin(pool, rules, gates, 10, share, generator) for share in (0.5, 0.9, 1.0)}
    condition = "one metric worse by so many margins, same seeds, noise of half a margin, 10 seeds"
    yield from _table(condition, "gates that fail", rates)
    yield ""
    rates = {}
    for size in SHARES:
        also = f"the change also moves every number by noise of {size:g} standard deviations"
        rates[f"same seeds; {also}"] = detection(pool, rules, gates, 10, size, generator)
    again = f"median correlation of pairs {correlation(pool):.2f}, {len(pool.again.seeds)} seeds"
    again = f"same splits, all other random numbers new ({again})"
    rates[again] = detection(pool, rules, gates, 10, "splits", generator)
    rates["other seeds: nothing ties the pairs"] = detection(pool, rules, gates, 10, "seeds", generator)
    level = scipy.stats.norm.isf(rules.alpha / comparisons)
    most = float(scipy.stats.norm.sf(level - np.sqrt(10 / 2)))
    rates["other seeds: the most that a test could catch (known variance, Bonferroni)"] = most
    yield from _table("one metric worse by one standard deviation over seeds, 10 seeds", "caught", rates)


def _table(condition: str, outcome: str, rates: dict[str, float]) -> list[str]:
    return markdown_table((condition, outcome), ((name, f"{100 * rate:.1f}") for name, rate in rates.items()), [1])


def main() -> None:
    """Print the tables, or write them between the marks of a page."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("page", nargs="?", type=Path)
    reader.add_argument("--store", required=True)
    reader.add_argument("--gates", type=int, default=200)
    reader.add_argument("--again", type=int, default=100, help="seeds that are run once more at the same splits")
    given = reader.parse_args()
    suite = load_suite(SUITE)
    metrics = gated_metrics(suite)
    with closing(Store(given.store, create=False, writable=False)) as store:
        results = StoredResults(store, SUITE)
        runs = measured(results, metrics, sorted(set(results.cells["seed"])))
    pool = Pool(runs, again(suite, given.again, metrics))
    lines = report(pool, rules_of(suite), given.gates, np.random.default_rng(0))
    print_or_replace_part(given.page, "gate", "\n".join(lines))


if __name__ == "__main__":
    main()
