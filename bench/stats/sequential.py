"""Sequential testing: how a level is spent over looks at growing numbers of pairs.

A spending function says how much of the level alpha may be used when a share t of all pairs is available: here
alpha * t^power (Kim and DeMets 1987). The increment at a look, f(t_k) - f(t_{k-1}), is the level of its tests. By
Bonferroni's inequality the error probability of all looks together is at most alpha, whatever the dependence between
looks and whatever made a comparison go on. Boundaries from the joint distribution of the looks (Lan and DeMets 1983)
would gain little at such small levels, and need known variances.
"""

from collections.abc import Sequence
from itertools import pairwise

from bench.errors import UserError


def spent(alpha: float, share: float, power: float = 1.0) -> float:
    """Return how much of alpha may be used when `share` of the pairs is available."""
    if not 0.0 <= share <= 1.0:
        raise UserError(f"share {share:g}: expected a number from 0 to 1")
    return float(alpha * share**power)


def levels(alpha: float, looks: Sequence[int], power: float = 1.0) -> tuple[float, ...]:
    """Return the level of the tests at each look, given the number of pairs at each; the levels sum to alpha."""
    if not looks or any(b <= a for a, b in pairwise(looks)) or looks[0] < 1:
        raise UserError(f"looks {list(looks)}: expected growing numbers of pairs")
    used = [0.0, *(spent(alpha, n / looks[-1], power) for n in looks)]
    return tuple(b - a for a, b in pairwise(used))


def doubling(first: int, most: int) -> tuple[int, ...]:
    """Return the looks: `first` pairs, then twice as many each time, and finally all of them."""
    looks = [first]
    while looks[-1] * 2 < most:
        looks.append(looks[-1] * 2)
    return (*looks, most) if looks[-1] < most else (most,)
