"""Bayesian comparisons with a region of practical equivalence (ROPE): -rope .. rope counts as no difference.

Benavoli, Corani, Demsar and Zaffalon 2017, "Time for a Change". These give probabilities, not error rates: they promise
no false-positive rate, and no verdict is based on them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bench.stats.distributions import t_tail
from bench.stats.shared_resamples import draw_cached
from bench.stats.tests import Array, is_constant, standard_error


@dataclass(frozen=True)
class Posterior:
    """Probabilities that the difference lies below -rope, within the ROPE, above rope."""

    below: float
    within: float
    above: float


def correlated_t_test(differences: ArrayLike, rope: float, test_share: float = 0.0) -> Posterior:
    """Return the Bayesian correlated t-test (Corani and Benavoli 2015) of one study.

    The mean difference is Student t with n - 1 degrees of freedom around the observed mean; its scale is the standard
    error of the corrected resampled t-test, with `test_share` as the correlation of overlapping splits.
    """
    d = np.asarray(differences, dtype=np.float64)
    mean = float(d.mean())
    if bool(is_constant(d)):
        return Posterior(float(mean < -rope), float(abs(mean) <= rope), float(mean > rope))
    freedom, error = len(d) - 1, float(standard_error(d, test_share))
    below, above = (float(t_tail((rope - side) / error, freedom)) for side in (-mean, mean))
    return Posterior(below, 1.0 - below - above, above)


def signed_rank(
    differences: ArrayLike, rope: float, generator: np.random.Generator, *, prior: float = 0.5, samples: int = 20_000
) -> Posterior:
    """Return the Bayesian signed-rank test of one difference per dataset.

    A Dirichlet process with a prior of strength `prior` at zero, inside the ROPE. For every sample of weights w,
    sum_ij w_i w_j is split by (d_i + d_j) / 2 into below, within and above the ROPE; each probability is how often that
    part is the largest.
    """
    d = np.concatenate([[0.0], np.asarray(differences, dtype=np.float64)])

    def draw(generator: np.random.Generator) -> Array:
        return generator.dirichlet(np.concatenate([[prior], np.ones(len(d) - 1)]), size=samples)

    weights = draw_cached(generator, ("Dirichlet weights", len(d), prior, samples), draw)
    middle = (d[:, None] + d[None, :]) / 2.0
    wins = np.zeros(3, dtype=np.int64)
    for start in range(0, samples, 2_000):  # such small products stay on one thread: 5 times faster on a busy machine
        part = weights[start : start + 2_000]
        below = ((part @ (middle < -rope)) * part).sum(axis=-1)
        above = ((part @ (middle > rope)) * part).sum(axis=-1)
        winner = np.argmax(np.stack([1.0 - below - above, below, above]), axis=0)
        wins += np.bincount(winner, minlength=3)
    share = wins / samples
    return Posterior(below=float(share[1]), within=float(share[0]), above=float(share[2]))
