"""Times of several ways to do the same, taken in turns until their ratios are known well enough.

Every round calls each way once, in a new random order, so that what the machine does meanwhile falls on all alike.
Processor time on one thread: other processes count only as far as they take memory and caches away.
"""

import time
from collections.abc import Callable, Mapping

import numpy as np

from bench.probes.latency.doubts import Times, ratio

FEWEST_ROUNDS, NARROW = 7, 0.05  # half of the width of an interval, relative to its ratio


def in_turns(ways: Mapping[str, Callable[[], object]], base: str, seconds: float = 20.0) -> dict[str, Times]:
    """Return the milliseconds of every round; rounds end when all ratios to `base` are narrow, or the time is up."""
    random = np.random.default_rng(0)
    rounds: dict[str, list[float]] = {name: [] for name in ways}
    names, used = list(ways), 0.0
    for way in ways.values():
        way()  # warms up
    while True:
        for place in random.permutation(len(names)):
            began = time.process_time()
            ways[names[place]]()
            rounds[names[place]].append((time.process_time() - began) * 1e3)
        used += sum(times[-1] for times in rounds.values()) / 1e3
        times = {name: np.array(values) for name, values in rounds.items()}
        if len(times[base]) >= FEWEST_ROUNDS and (used > seconds or _narrow(times, base, random)):
            return times


def _narrow(times: Mapping[str, Times], base: str, random: np.random.Generator) -> bool:
    found = [ratio(one, times[base], random) for name, one in times.items() if name != base]
    return all(high - low <= 2 * NARROW * value for value, low, high in found)


def faster(times: Mapping[str, Times], way: str, other: str) -> tuple[float, str]:
    """Return how many times as fast one way is as another, and the same with its 95 % interval as text."""
    value, low, high = ratio(times[other], times[way], np.random.default_rng(0))
    return value, f"{value:.2f}x ({low:.2f} to {high:.2f})"
