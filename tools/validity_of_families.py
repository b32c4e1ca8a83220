"""How often the families of tests that pages keep contain any false positive, on simulated studies of many methods."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.stats import rank_tests, tests
from bench.stats.corrections import holm
from bench.stats.joint_signs import joint_sign_test
from bench.stats.row_sampling import row_test
from bench.stats.tests import Array
from tools.simulated_studies import Noise, repeated_runs
from tools.validity_rates import ALPHA, SIZES, Rates

BOARDS = (5, 20)  # methods
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


def false_positives_of_boards(kind: Noise, studies: int, generator: np.random.Generator) -> Rates:
    """Return how often a board of methods that are alike has a method that differs from the baseline, or any pair."""
    rates: Rates = defaultdict(list)
    for methods in BOARDS:
        first, second = np.triu_indices(methods, 1)
        bar = rank_tests.critical_difference(DATASETS, methods, ALPHA)
        for pairs in SIZES:
            values = repeated_runs(kind, (studies, DATASETS, pairs), methods, generator)
            p = tests.t_test(values[1:, :, 0] - values[0, :, 0])
            rates[f"{methods} methods against the baseline, one dataset"].append(float(_any(p).mean()))
            p = tests.t_test(values[first][:, :, 0] - values[second][:, :, 0])
            rates[f"all pairs of {methods} methods, one dataset"].append(float(_any(p).mean()))
            means = np.moveaxis(values.mean(axis=-1), 0, -1)  # [study, dataset, method]
            found = [joint_sign_test(study[:, 1:] - study[:, :1], generator).min() < ALPHA for study in means]
            rates[f"{methods} methods against the baseline, 8 datasets"].append(float(np.mean(found)))
            apart = np.ptp(rank_tests.average_ranks(means), axis=-1) >= bar
            rates[f"all pairs of {methods} methods, 8 datasets (Nemenyi)"].append(float(apart.mean()))
    return rates


def power_of_boards(effects: Sequence[float], studies: int, generator: np.random.Generator, pairs: int = 10) -> Rates:
    """Return how often the one method that differs is told from the baseline over datasets, by standardised effect."""
    rates: Rates = defaultdict(list)
    for methods in BOARDS:
        bar = rank_tests.critical_difference(DATASETS, methods, ALPHA)
        for effect in effects:
            values = repeated_runs("gaussian", (studies, DATASETS, pairs), methods, generator)
            values[1] -= effect
            means = np.moveaxis(values.mean(axis=-1), 0, -1)
            gaps = means[:, :, 1:] - means[:, :, :1]
            joint = [joint_sign_test(study, generator)[0] < ALPHA for study in gaps]
            rates[f"{methods} methods, against the baseline"].append(float(np.mean(joint)))
            signed = holm(tests.wilcoxon_test(np.swapaxes(gaps, -1, -2)))[:, 0] < ALPHA
            rates[f"{methods} methods, Wilcoxon and Holm against the baseline"].append(float(signed.mean()))
            ranks = rank_tests.average_ranks(means)
            rates[f"{methods} methods, Nemenyi"].append(float((ranks[:, 0] - ranks[:, 1] >= bar).mean()))
    return rates


def false_positives_on_other_rows(studies: int, generator: np.random.Generator, rows: int = 200) -> Rates:
    """Return how often seeds on one test set show a difference that other rows do not have, by the noise of seeds.

    Differences in loss vary over rows with standard deviation 1 and between rows and seeds with 1.
    """
    rates: Rates = defaultdict(list)
    for size in (0.0, 0.1, 0.3):
        for seeds in SIZES:
            shape = (studies, seeds, rows)
            d = generator.normal(size=(studies, 1, rows)) + size * generator.normal(size=(studies, seeds, 1))
            d = d + generator.normal(size=shape)
            over_seeds = tests.t_test(d.mean(axis=-1)) < ALPHA
            rates[f"paired t over seeds (wrong here), seeds {size:g}"].append(float(over_seeds.mean()))
            crossed = [row_test(study).p < ALPHA for study in d]
            rates[f"seeds and rows crossed, seeds {size:g}"].append(float(np.mean(crossed)))
    return rates


def _flat(p: Array) -> Array:
    """Return p-values `[pair of methods, study, ...]` as `[study, test]`."""
    moved = np.moveaxis(p, 1, 0)
    return moved.reshape(len(moved), -1)


def _any(p: Array) -> NDArray[np.bool_]:
    """Return whether a study rejects any of its tests `[pair of methods, study, ...]` after Holm's correction."""
    return np.asarray(holm(_flat(p)).min(axis=-1) < ALPHA)
