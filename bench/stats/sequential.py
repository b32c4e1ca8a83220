"""Looking more than once: how a level is spent over looks at growing numbers of pairs.

A spending function says how much of the level alpha may be used up by the time a share t of all pairs is there: here
alpha * t^power (Kim and DeMets 1987). What is new at a look, f(t_k) - f(t_{k-1}), is the level of the tests at that
look. By Bonferroni's inequality all looks together are wrong with probability alpha at most, whatever the dependence
between looks and whatever decided that a comparison went on; boundaries that use the joint law of the looks (Lan and
DeMets 1983) would gain little at such small levels, and need known variances.
"""

from collections.abc import Sequence
from itertools import pairwise

from bench.errors import UserError


def spent(alpha: float, share: float, power: float = 1.0) -> float:
    """Return how much of alpha may be used up when `share` of the pairs is there."""
    if not 0.0 <= share <= 1.0:
        raise UserError(f"share {share:g}: expected a number from 0 to 1")
    return float(alpha * share**power)


def levels(alpha: float, looks: Sequence[int], power: float = 1.0) -> tuple[float, ...]:
    """Return the level of the tests at each look, given the pairs there are at each; they sum to alpha."""
    if not looks or any(b <= a for a, b in pairwise(looks)) or looks[0] < 1:
        raise UserError(f"looks {list(looks)}: expected growing numbers of pairs")
    used = [0.0, *(spent(alpha, n / looks[-1], power) for n in looks)]
    return tuple(b - a for a, b in pairwise(used))


def doubling(first: int, most: int) -> tuple[int, ...]:
    """Return the looks: `first` pairs, then twice as many each time, and at last all of them."""
    looks = [first]
    while looks[-1] * 2 < most:
        looks.append(looks[-1] * 2)
    return (*looks, most) if looks[-1] < most else (most,)
