"""Statistics of repeated times, ratios with their uncertainty, and reasons to doubt them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.counts import plural

Times = NDArray[np.float64]

LEVEL = 0.95
SPREAD = 0.1  # half of the repeats should lie within this share of their median
DRIFT = 0.1  # by which the last rounds may be slower than the first
LOAD_PER_CORE = 0.5
OTHERS = 0.1  # of the processors
RESAMPLES = 2000
FEW = 3  # repeats, below which a spread cannot be estimated


@dataclass(frozen=True)
class Statistics:
    """One series of repeats, outliers included: robust figures stand beside the mean."""

    mean: float
    mean_low: float
    mean_high: float
    median: float
    p90: float
    p99: float
    minimum: float
    maximum: float
    repeats: int

    def to_json(self) -> dict[str, float | None]:
        """Return the figures by name; JSON has no NaN."""
        return {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}


def statistics(times: Sequence[float] | Times) -> Statistics:
    """Return the figures of a series; the interval of the mean is Student's, at 95 %, cut at zero: no time is less."""
    from scipy import stats

    values = np.asarray(times, dtype=np.float64)
    n, mean = len(values), float(values.mean())
    low = high = math.nan
    if n > 1:
        half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) / math.sqrt(n))
        low, high = max(0.0, mean - half), mean + half
    median, p90, p99 = (float(q) for q in np.quantile(values, [0.5, 0.9, 0.99]))
    return Statistics(mean, low, high, median, p90, p99, float(values.min()), float(values.max()), n)


def ratio(times: Times, base: Times, random: np.random.Generator) -> tuple[float, float, float]:
    """Return the ratio of two medians and its 95 % bootstrap interval.

    The repeats of one round were timed close to each other, so rounds are resampled, not single repeats.
    """
    n = min(len(times), len(base))
    a, b = np.asarray(times[:n], dtype=np.float64), np.asarray(base[:n], dtype=np.float64)
    chosen = random.integers(0, n, (RESAMPLES, n))
    drawn = np.median(a[chosen], axis=1) / np.median(b[chosen], axis=1)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(np.median(a) / np.median(b)), float(low), float(high)


def spread(times: Times) -> float:
    """Return the distance between the quartiles, relative to the median."""
    low, middle, high = np.quantile(times, [0.25, 0.5, 0.75])
    return float((high - low) / middle)


def drift(rounds: Sequence[Times]) -> float:
    """Return how much slower the last third of the rounds was than the first: 0.1 is ten per cent.

    `rounds` holds one array per series with one value per round. Each series counts relative to its own median.
    """
    relative = np.mean([times / np.median(times) for times in rounds], axis=0)
    third = max(1, len(relative) // 3)
    return float(np.median(relative[-third:]) / np.median(relative[:third]) - 1)


def doubts_of_series(times: Mapping[str, Times], unstable: Sequence[str] = ()) -> list[str]:
    """Return the doubts about some series of a cell; the series are named by their condition."""
    wide = {name: spread(values) for name, values in times.items() if len(values) >= FEW and spread(values) > SPREAD}
    doubts = []
    if wide:
        worst = max(wide, key=lambda name: wide[name])
        doubts.append(
            f"the middle half of the repeats spreads over more than {SPREAD:.0%} of the median in {len(wide)} of "
            f"{len(times)} series, most in {worst} ({wide[worst]:.0%})"
        )
    if unstable:
        doubts.append(f"the warm-up ended before the times of {' and '.join(unstable)} were stable")
    return doubts


def doubts_of_gpu(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the doubts about a GPU by its state before the first round and after the last; none without a state."""
    doubts = []
    if others := sorted({*(before.get("other_processes") or []), *(after.get("other_processes") or [])}):
        listed = ", ".join(str(pid) for pid in others[:5])
        doubts.append(f"other processes were on the GPU ({listed})")
    first, last = (state.get("clock_mhz") for state in (before, after))
    if first is not None and last is not None and last < (1 - DRIFT) * first:
        doubts.append(f"the GPU's clock fell from {first:.0f} to {last:.0f} MHz")
    return doubts


def doubts_of_machine(
    load: float | None, cores: int, others: float | None, rounds: Sequence[Times], throttled: str = ""
) -> list[str]:
    """Return the doubts about everything that was measured."""
    doubts = []
    if load is not None and load > LOAD_PER_CORE * cores:
        doubts.append(f"the machine was loaded: {load:.1f} processes on {plural(cores, 'core')} in the minute before")
    if others is not None and others > OTHERS:
        doubts.append(f"other processes used {others:.0%} of the processors meanwhile")
    if rounds and len(rounds[0]) >= FEW and drift(rounds) > DRIFT:
        doubts.append(f"the machine became {drift(rounds):.0%} slower while it was measured (throttled or loaded)")
    if throttled:
        doubts.append(throttled)
    return doubts
