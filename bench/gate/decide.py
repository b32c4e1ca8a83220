"""A gate: measure, compare with the baseline, decide; at all seeds, or at few first and at more where needed."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from bench.counts import plural
from bench.gate.baseline import Baseline
from bench.gate.environment_diff import differences, form_differences, plugin_differences, same_machine
from bench.gate.values import Measured, Place
from bench.gate.verdicts import FAILING, FEWEST_PAIRS, RUNS, MetricComparison, Rules, Verdict, compare, decide
from bench.stats.sequential import levels

# Measure the first so many seeds of these places (None: of all there are).
Measure = Callable[[int, Collection[Place] | None], Measured]


@dataclass(frozen=True)
class Work:
    """How many cells a sequential gate needed."""

    looks: tuple[int, ...]  # seeds
    cells: int
    all_cells: int

    def text(self) -> str:
        """Return how much was saved, in words."""
        saved = 100.0 * (1.0 - self.cells / self.all_cells) if self.all_cells else 0.0
        looks = ", ".join(map(str, self.looks))
        needed = f"{self.cells} of {plural(self.all_cells, 'cell')} needed, {saved:.0f} % saved"
        return f"sequential: looked at {looks} seeds; {needed}"


@dataclass(frozen=True)
class Gate:
    """The result of a gate."""

    suite: str
    rows: tuple[MetricComparison, ...]
    rules: Rules
    seeds: int
    values: int  # numbers that were compared
    baseline_code: str
    codes: tuple[str, ...]
    environment: tuple[str, ...]  # what differs
    plugins: tuple[str, ...]  # those that differ
    notes: tuple[str, ...] = ()
    work: Work | None = None

    @property
    def identical(self) -> bool:
        """Is every number the baseline's, to the last bit, and nothing missing?"""
        return all(row.verdict in ("identical", "new") for row in self.rows)

    def counts(self) -> Counter[Verdict]:
        """Return how often each verdict was given."""
        return Counter(row.verdict for row in self.rows)

    def failing(self, *, strict: bool = False) -> list[MetricComparison]:
        """Return the rows that make the gate fail."""
        bad = (*FAILING, "inconclusive") if strict else FAILING
        return [row for row in self.rows if row.verdict in bad]


def gate(baseline: Baseline, measure: Measure, rules: Rules, looks: Sequence[int] = ()) -> Gate:
    """Compare what is measured now with a baseline; several `looks` (numbers of seeds, growing) make it sequential."""
    seeds = len(baseline.measured.seeds)
    planned = tuple(looks) or (seeds,)
    alphas, equivalence = _spent(rules.alpha, planned), _spent(rules.equivalence_alpha, planned)
    settled: list[MetricComparison] = []
    open_places: set[Place] | None = None
    cells = 0  # that were needed so far
    first: Measured | None = None
    rows: list[MetricComparison] = []
    used = 0
    for number, (look, alpha, alpha_equivalent) in enumerate(zip(planned, alphas, equivalence, strict=True)):
        used = number + 1
        now = measure(look, open_places)
        then = baseline.measured.first(look)
        cells = sum(now.codes.values())
        if first is None:
            first = now
            rules = replace(rules, cost=same_machine(then.environment, now.environment))
        if open_places is not None:
            then, now = then.only(open_places), now.only(open_places)
        names = {(row.place, row.metric) for row in settled}
        last = look == planned[-1]
        every = compare(then, now, replace(rules, last_look=last))
        found = [row for row in every if (row.place, row.metric) not in names]
        rows = decide(found, alpha, alpha_equivalent, settled)
        undecided = [row for row in rows if row.verdict == "inconclusive"]
        if last or not undecided:
            break
        settled += [row for row in rows if row.verdict != "inconclusive"]
        open_places = {row.place for row in undecided}
    assert first is not None
    found = sorted([*settled, *rows], key=lambda row: (row.place, row.metric))
    compared = sum(row.pairs for row in found if row.metric != RUNS)
    everything = seeds * len({row.place for row in found} & first.values.keys())
    work = Work(planned[:used], cells, everything) if len(planned) > 1 else None
    then, now = baseline.measured, first
    changed = (*differences(then.environment, now.environment), *form_differences(then.forms, now.forms))
    codes = (baseline.code, tuple(first.codes))
    plugins = tuple(plugin_differences(baseline.measured.plugins, first.plugins or {}))
    return Gate(baseline.suite, tuple(found), rules, seeds, compared, *codes, changed, plugins, (), work)


def _spent(alpha: float, looks: tuple[int, ...]) -> tuple[float, ...]:
    """Return the level of each look; one with too few seeds for a test spends none."""
    blind = sum(look < FEWEST_PAIRS for look in looks)
    return (0.0,) * blind + (levels(alpha, looks[blind:]) if looks[blind:] else ())
