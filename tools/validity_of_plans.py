"""The power of studies as large as the planner asks for after a pilot study, on simulated studies."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench.stats import tests
from bench.stats.planning import pairs_needed
from bench.stats.tests import Array
from tools.simulated_studies import NOISES, Noise, noise
from tools.validity_rates import ALPHA, SIZES, Rates

Draw = Callable[[tuple[int, ...]], Array]  # differences of mean 0 and variance 1
FAMILY = 10  # tests: the planner plans for the strictest level that Holm's correction may require


def planned_power(
    difference: float,
    pilot: int,
    studies: int,
    generator: np.random.Generator,
    target: float = 0.8,
    kind: Noise = "gaussian",
) -> tuple[float, float, float]:
    """Return the power of new studies of the size that the planner derives from a pilot study, and the median size.

    The third number is the power where the pilot's standard deviation is taken as known.
    """

    def draw(shape: tuple[int, ...]) -> Array:
        a, b = noise(kind, (2, *shape), generator)
        return np.asarray((a - b) / np.sqrt(2.0))

    planned, sizes = _delivered(draw, difference, pilot, studies, target, ALPHA, pilot)
    known, _ = _delivered(draw, difference, pilot, studies, target, ALPHA, None)
    return planned, float(np.median(sizes)), known


def plans_by_noise(effects: Sequence[float], studies: int, generator: np.random.Generator) -> Rates:
    """Return the power of planned studies, and that where the pilot's deviation is taken as known, at every effect."""
    rates: Rates = {}
    for pilot in SIZES:
        for kind in NOISES:
            found = [planned_power(effect, pilot, studies, generator, kind=kind) for effect in effects]
            rates[f"pilot of {pilot}, {kind}"] = [rate for one in found for rate in one[::2]]
    return rates


def plans_for_heavy_tails(effects: Sequence[float], studies: int, generator: np.random.Generator) -> Rates:
    """Return the power of planned studies whose differences are themselves Student t with 3 degrees of freedom."""

    def draw(shape: tuple[int, ...]) -> Array:
        return noise("heavy-tailed", shape, generator)

    rates: Rates = {}
    for alpha, words in ((ALPHA, "one test"), (ALPHA / FAMILY, f"{FAMILY} tests")):
        for pilot in SIZES:
            found = (_delivered(draw, effect, pilot, studies, 0.8, alpha, pilot) for effect in effects)
            rates[f"pilot of {pilot}, {words}"] = [power for power, _ in found]
    return rates


def _delivered(
    draw: Draw, difference: float, pilot: int, studies: int, target: float, alpha: float, estimated_from: int | None
) -> tuple[float, NDArray[np.int64]]:
    """Return the power of new studies after pilot studies, and their sizes."""
    # Two digits of the standard deviation are enough, and there are few of them to plan for.
    seen, which = np.unique(draw((studies, pilot)).std(axis=-1, ddof=1).round(2), return_inverse=True)
    options = {"target": target, "alpha": alpha}
    needed = (pairs_needed(difference, max(s, 0.01), estimated_from=estimated_from, **options) for s in seen)
    sizes = np.array([max(pairs or 10_000, 2) for pairs in needed])[which]
    hits = [
        (tests.t_test(difference + draw((int(count), int(size)))) < alpha).sum()
        for size, count in zip(*np.unique(sizes, return_counts=True), strict=True)
    ]
    return float(np.sum(hits)) / len(sizes), sizes
