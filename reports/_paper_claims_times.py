"""Claims about times, from the rounds in which they were measured.

Every round times each method and number of draws once, in random order, so that the state of the machine is the same
for all of them. A quotient is therefore formed within rounds; its interval is that of the mean of its logarithms.
Times that carry a warning (a loaded machine, a wide spread, a drift) decide nothing: their numbers are printed alone.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from bench.api import Array, lacking_timing_facts, plural, stats
from bench.reports._cell_warnings import warned_cells
from bench.reports._paper_claims_held import FEWEST, Claim, Evidence, Held, Judged, Statement, decided, not_run

SPANS = ("latency_total", "latency_transfer", "latency_forward")  # the most complete one that was timed


@dataclass(frozen=True)
class Quotient:
    """The quotient of two times, as logarithms of the rounds."""

    logs: Array

    @property
    def rounds(self) -> int:
        """How many rounds have both times."""
        return len(self.logs)

    def below(self, bound: float) -> float:
        """Return the one-sided p of the test that the quotient is below a bound."""
        excess = float(self.logs.mean()) - math.log(bound)
        error = float(self.logs.std(ddof=1)) / math.sqrt(self.rounds)
        return float(stats.t_tail(-excess / error, self.rounds - 1)) if error else float(excess >= 0)

    def __str__(self) -> str:
        low, high = np.exp(stats.t_interval(self.logs))
        return f"{math.exp(float(self.logs.mean())):.3f} ({low:.3f} to {high:.3f})"


def same_time(claim: Claim, held: Held) -> Judged:
    """The quotient of the times of two methods is within 1 / margin .. margin for every number of draws."""
    margin = float(claim["margin"])
    if unknown := _not_told(held, [*claim["method"], *claim["over"]], claim["draws"]):
        return unknown
    statements = []
    for draws, a, b in product(claim["draws"], claim["method"], claim["over"]):
        found = _rounds(held, a, draws), _rounds(held, b, draws)
        if not all(found):
            return not_run(f"times round by round of {a} and {b} at T = {draws}", held)
        for dataset in found[0].keys() & found[1].keys():
            quotient = _quotient(found[0][dataset], found[1][dataset])
            name = f"{a} / {b} at T = {draws}"
            if quotient is None or quotient.rounds < FEWEST:
                statements.append(_too_few(name, dataset))
                continue
            slower, faster = Quotient(-quotient.logs), quotient
            inside = max(faster.below(margin), slower.below(margin))
            outside = 2.0 * min(1.0 - faster.below(margin), 1.0 - slower.below(margin))
            text = f"{name}: {quotient}, {plural(quotient.rounds, 'round')}"
            statements.append(_statement(name, dataset, Evidence(inside, min(1.0, outside)), text, held, (a, b)))
    return decided(
        claim, f"quotient of paired rounds within {1 / margin:.3g} to {margin:.3g} (TOST) at every T", statements
    )


def time_ratio(claim: Claim, held: Held) -> Judged:
    """The quotient of a method's times at two numbers of draws is at most a bound."""
    most, few = claim["draws"]
    if unknown := _not_told(held, claim["method"], claim["draws"]):
        return unknown
    statements = []
    for method in claim["method"]:
        times = _rounds(held, method, most), _rounds(held, method, few)
        if not all(times):
            return not_run(f"times round by round of {method} at T = {few} and {most}", held)
        for dataset in times[0].keys() & times[1].keys():
            quotient = _quotient(times[0][dataset], times[1][dataset])
            if quotient is None or quotient.rounds < FEWEST:
                statements.append(_too_few(method, dataset))
                continue
            p = quotient.below(claim["most"])
            text = f"{method}: {quotient}, {plural(quotient.rounds, 'round')}"
            evidence = Evidence(*(min(1.0, 2.0 * side) for side in (p, 1.0 - p)))
            statements.append(_statement(method, dataset, evidence, text, held, (method,)))
    return decided(claim, f"quotient of paired rounds (t-test of its logarithm) at most {claim['most']}", statements)


def _statement(
    name: str, dataset: str, evidence: Evidence, text: str, held: Held, methods: Collection[str]
) -> Statement:
    """Return what the times of some methods say; no evidence where the run warned of them."""
    warned = warned_cells(held.results, dataset)
    doubts = [reason for reason, places in warned.items() if any(method in methods for _, method in places)]
    if doubts:
        needs = f"steady times: {doubts[0]}"
        return Statement(name, "", dataset, Evidence(1.0, 1.0), f"{text}, unsteady", needs)
    return Statement(name, "", dataset, evidence, text, "more repeats of the timing")


def _not_told(held: Held, methods: Sequence[str], draws: Sequence[int]) -> Judged | None:
    """Return that nothing can be decided where times do not say how they were measured; None: they do."""
    cells = held.cells[(held.cells["status"] == "ok") & held.cells["method"].isin(list(methods))]
    for method, key, training in zip(cells["method"], cells["key"], cells["training"], strict=True):
        arrays = held.results.arrays(key)
        timed = [f"T={t}" for t in draws if any(f"latency/{span}@T={t}" in arrays for span in SPANS)]
        if timed and (lacking := lacking_timing_facts(training, timed)):
            needs = f"times that say how they were measured; those of {method} lack {', '.join(lacking[:3])}"
            return Judged("cannot be decided", "none", "–", needs)
    return None


def _too_few(name: str, dataset: str) -> Statement:
    needs = f"at least {FEWEST} rounds that were timed in one run"
    return Statement(name, "", dataset, Evidence(1.0, 1.0), f"{name}: no paired rounds", needs)


def _rounds(held: Held, method: str, draws: int) -> dict[str, dict[int, tuple[Array, Array]]]:
    """Return the times of all rounds by dataset and seed, with those of the plain pass of the same rounds."""
    found: dict[str, dict[int, tuple[Array, Array]]] = {}
    cells = held.cells[(held.cells["status"] == "ok") & (held.cells["method"] == method)]
    for dataset, seed, key in zip(cells["dataset"], cells["seed"], cells["key"], strict=True):
        arrays = held.results.arrays(key)
        for span in SPANS:
            if (times := arrays.get(f"latency/{span}@T={draws}")) is not None:
                plain: Any = arrays.get("latency/plain", np.empty(0))
                found.setdefault(dataset, {})[seed] = (np.ravel(times), np.ravel(plain))
                break
    return found


def _quotient(a: dict[int, tuple[Array, Array]], b: dict[int, tuple[Array, Array]]) -> Quotient | None:
    """Return the quotient of times by paired rounds; None where nothing was timed in the same rounds.

    Cells of one run share their plain passes to the last bit; those of two runs cannot be paired.
    """
    logs = []
    for seed in sorted(a.keys() & b.keys()):
        (times, plain), (others, other_plain) = a[seed], b[seed]
        if np.array_equal(plain, other_plain) and len(times) == len(others):
            logs.append(np.log(times) - np.log(others))
    return Quotient(np.concatenate(logs)) if logs else None
