"""A hierarchical Bayesian model of the differences between two methods on several datasets.

d_j ~ N(delta_j, s_j^2),  delta_j ~ N(mu, tau^2),  flat priors on mu and tau (Gelman 2006, "Prior distributions for
variance parameters in hierarchical models"). s_j is the standard error on dataset j and is taken as known, also where
few repeats estimate it. Given tau everything is normal, so the posterior is a sum over a grid of tau (Gelman et al.,
Bayesian Data Analysis, section 5.4). It gives probabilities, not error rates: no verdict is based on it.
"""

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from bench.stats.bayes import Posterior

FEWEST_DATASETS = 3  # with fewer the posterior of tau is improper
GRID = 400


def next_dataset(means: ArrayLike, errors: ArrayLike, rope: float) -> Posterior:
    """Return the probabilities that the difference on another dataset is below -rope, within the ROPE, above rope.

    `means` and `errors` are the mean difference on each dataset and its standard error.
    """
    d, s = np.asarray(means, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    spread = float(d.std() + s.mean()) or 1.0
    s = np.maximum(s, 1e-6 * spread)
    tau = np.linspace(0.0, 10.0 * spread, GRID)[:, None]
    variance = s**2 + tau**2
    precision = (1.0 / variance).sum(axis=1)
    centre = (d / variance).sum(axis=1) / precision
    log_weight = -0.5 * (np.log(precision) + np.log(variance).sum(axis=1))
    log_weight -= 0.5 * (np.square(d - centre[:, None]) / variance).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight[0] /= 2.0  # trapezoidal rule; the other end has no weight to speak of
    weight /= weight.sum()
    width = np.sqrt(1.0 / precision + tau[:, 0] ** 2)
    below = float(weight @ scipy.special.ndtr((-rope - centre) / width))
    above = float(weight @ scipy.special.ndtr((centre - rope) / width))
    return Posterior(below, 1.0 - below - above, above)
