"""Seeds on one test set: whether a difference would also show on other rows of the same kind.

d_sr = mu + a_r + b_s + e_sr is the difference in loss of two methods at test row r with seed s. A test over seeds
treats the rows as all there are. Here rows are a sample, too: the variance of the mean has a part of each, by the
analysis of variance of a crossed design, with Satterthwaite's degrees of freedom (Searle, Casella and McCulloch 1992).
Where all seeds agree and losses are 0 and 1, the rows that only one method gets right decide, as in McNemar's test.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bench.stats.distributions import t_tail


@dataclass(frozen=True)
class RowTest:
    """The mean difference over seeds and test rows, its standard error and the p-value of no difference."""

    difference: float
    error: float
    freedom: float
    p: float


def row_test(differences: ArrayLike) -> RowTest:
    """Return the test of the mean of differences `[seed, row]` for other seeds and other rows; at least 2 of each."""
    d = np.asarray(differences, dtype=np.float64)
    seeds, rows = d.shape
    mean, of_rows, of_seeds = d.mean(), d.mean(axis=0), d.mean(axis=1)
    between_rows = seeds * float(of_rows.var(ddof=1))
    between_seeds = rows * float(of_seeds.var(ddof=1))
    rest = float(np.square(d - of_rows - of_seeds[:, None] + mean).sum()) / ((seeds - 1) * (rows - 1))
    # An estimate below one of its parts is an accident of few seeds.
    total = max(between_rows + between_seeds - rest, between_rows, between_seeds)
    if total == 0.0:
        return RowTest(float(mean), 0.0, float("inf"), float(mean == 0.0))
    parts = between_rows**2 / (rows - 1) + between_seeds**2 / (seeds - 1) + rest**2 / ((seeds - 1) * (rows - 1))
    freedom, error = total**2 / parts, float(np.sqrt(total / (seeds * rows)))
    p = 2.0 * t_tail(abs(mean) / error, freedom)
    return RowTest(float(mean), error, float(freedom), float(p))
