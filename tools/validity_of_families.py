"""How often the families of tests that pages keep contain any false positive, on simulated studies of many methods."""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from bench.stats import rank_tests, tests
from bench.stats.corrections import holm
from bench.stats.tests import Array
from tools.simulated_studies import Noise, repeated_runs
from tools.validity_rates import ALPHA, SIZES, Rates

METHODS, DATASETS, METRICS = 5, 8, 3  # the first method is the baseline, the first metric the leading one


def false_positives_of_a_page(kind: Noise, studies: int, generator: np.random.Generator) -> Rates:
    """Return how often a report of methods that are alike has a false positive, by family and on the whole page."""
    rates: Rates = defaultdict(list)
    first, second = np.triu_indices(METHODS, 1)
    with_base = first == 0
    for pairs in SIZES:
        values = repeated_runs(kind, (studies, METRICS, DATASETS, pairs), METHODS, generator)
        gaps = values[first] - values[second]  # [pair of methods, study, metric, dataset, pair]
        p = tests.t_test(gaps)
        verdicts = _any(p[with_base][:, :, 0])
        further = _any(np.concatenate([_flat(p[with_base][:, :, 1:]), _flat(p[~with_base][:, :, 0])], axis=-1)[None])
        over = _any(tests.wilcoxon_test(gaps[with_base][:, :, 0].mean(axis=-1)))
        bar = rank_tests.critical_difference(DATASETS, METHODS, ALPHA / METRICS)
        means = np.moveaxis(values.mean(axis=-1), 0, -1)
        ranks = (np.ptp(rank_tests.average_ranks(means), axis=-1) >= bar).any(axis=-1)
        for name, found in (
            ("verdicts", verdicts),
            ("over datasets", over),
            ("other tests on datasets", further),
            ("average ranks", ranks),
            ("whole page, 20 promised", verdicts | over | further | ranks),
        ):
            rates[name].append(float(found.mean()))
    return rates


def _flat(p: Array) -> Array:
    """Return p-values `[pair of methods, study, ...]` as `[study, test]`."""
    moved = np.moveaxis(p, 1, 0)
    return moved.reshape(len(moved), -1)


def _any(p: Array) -> NDArray[np.bool_]:
    """Return whether a study rejects any of its tests `[pair of methods, study, ...]` after Holm's correction."""
    return np.asarray(holm(_flat(p)).min(axis=-1) < ALPHA)
