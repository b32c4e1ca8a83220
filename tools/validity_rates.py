"""Error rates of the tests and intervals of bench.stats on simulated studies, at 5, 10 and 20 seeds."""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from bench.stats import rank_tests, tests
from bench.stats.aggregate import improvement_probability, interquartile_mean, interquartile_mean_interval
from bench.stats.bayes import Posterior, correlated_t_test, signed_rank
from bench.stats.bootstrap import bca_interval, hull
from bench.stats.corrections import benjamini_hochberg, holm
from bench.stats.effects import pooled_deviation, unshared_deviation
from bench.stats.hierarchical import next_dataset
from bench.stats.planning import power
from bench.stats.shape import shape
from bench.stats.shared_splits import means_of_splits
from bench.stats.tests import Array
from tools.simulated_studies import (
    NOISES,
    Noise,
    noise,
    overlapping_splits,
    repeated_runs,
    shared_splits,
    unusual_differences,
)

SIZES = (5, 10, 20)
ALPHA, LEVEL = 0.05, 0.95
Rates = dict[str, list[float]]


def false_positives_on_one_dataset(draw: Callable[[int], Array], generator: np.random.Generator) -> Rates:
    """Return how often each test on one dataset rejects; `draw(pairs)` gives differences `[studies, pairs]`."""
    rates: Rates = defaultdict(list)
    for pairs in SIZES:
        d = draw(pairs)
        rates["paired t"].append(_rate(tests.t_test(d)))
        rates["permutation"].append(_rate(tests.permutation_test(d, generator)))
        rates["Wilcoxon"].append(_rate(tests.wilcoxon_test(d)))
    return rates


def false_positives_on_many_datasets(
    kind: Noise, studies: int, generator: np.random.Generator, datasets: int = 8
) -> Rates:
    """Return how often a study of several datasets has any false positive, after the correction of its family."""
    rates: Rates = defaultdict(list)
    for pairs in SIZES:
        a, b = repeated_runs(kind, (studies, datasets, pairs), 2, generator)
        t = tests.t_test(a - b)
        rates["paired t, Holm"].append(_rate(holm(t).min(axis=-1)))
        rates["permutation, Holm"].append(_rate(holm(tests.permutation_test(a - b, generator)).min(axis=-1)))
        rates["Wilcoxon, Holm"].append(_rate(holm(tests.wilcoxon_test(a - b)).min(axis=-1)))
        rates["paired t, Benjamini-Hochberg"].append(_rate(benjamini_hochberg(t).min(axis=-1)))
        rates["Wilcoxon over datasets"].append(_rate(tests.wilcoxon_test((a - b).mean(axis=-1))))
    return rates


def false_positives_of_ranks(
    kind: Noise, studies: int, generator: np.random.Generator, datasets: int = 8, methods: int = 5
) -> Rates:
    """Return how often rank tests find a difference between methods that do not differ."""
    rates: Rates = defaultdict(list)
    bar = rank_tests.critical_difference(datasets, methods, ALPHA)
    first, second = np.triu_indices(methods, 1)
    for pairs in SIZES:
        table = np.moveaxis(repeated_runs(kind, (studies, datasets, pairs), methods, generator).mean(axis=-1), 0, -1)
        statistic, p = rank_tests.friedman(table)
        rates["Friedman"].append(_rate(p))
        rates["Iman-Davenport"].append(_rate(rank_tests.iman_davenport(statistic, datasets, methods)[1]))
        rates["Nemenyi, any pair"].append(float((np.ptp(rank_tests.average_ranks(table), axis=-1) >= bar).mean()))
        gaps = np.swapaxes(table[..., first] - table[..., second], -1, -2)
        rates["Wilcoxon-Holm, any pair"].append(_rate(holm(tests.wilcoxon_test(gaps)).min(axis=-1)))
    return rates


def false_positives_with_overlap(kind: Noise, studies: int, generator: np.random.Generator) -> Rates:
    """Return how often t-tests reject on overlapping splits, and how often intervals miss."""
    rates: Rates = defaultdict(list)
    for pairs in SIZES:
        d = overlapping_splits(kind, studies, pairs, generator)
        plain, widened = (bca_interval(d, generator, resamples=2_000, test_share=share) for share in (0.0, 0.1))
        rates["paired t (wrong here)"].append(_rate(tests.t_test(d)))
        rates["corrected resampled t"].append(_rate(tests.t_test(d, 0.1)))
        rates["misses of the BCa interval (wrong here)"].append(1.0 - covered(plain, 0.0))
        ours = hull(widened, tests.t_interval(d, LEVEL, 0.1))
        rates["misses of the hull of corrected t and widened BCa"].append(1.0 - covered(ours, 0.0))
    return rates


def false_positives_by_share(shares: Sequence[float], studies: int, generator: np.random.Generator) -> Rates:
    """Return how often t-tests reject on overlapping splits by their share of test rows and the one corrected for."""
    rates: Rates = defaultdict(list)
    for share in shares:
        for pairs in SIZES:
            d = overlapping_splits("gaussian", studies, pairs, generator, share)
            for corrected in dict.fromkeys((0.1, share)):
                name = f"{100 * share:.0f} % test rows, corrected for {100 * corrected:.0f} %"
                rates[name + " (wrong here)" * (corrected != share)].append(_rate(tests.t_test(d, corrected)))
    return rates


def false_positives_with_shared_splits(
    designs: Sequence[tuple[int, int]], studies: int, generator: np.random.Generator
) -> Rates:
    """Return how often tests reject where several seeds share each split; designs are (splits, seeds on each)."""
    rates: Rates = defaultdict(list)
    for kind, share in (("independent splits", 0.0), ("overlapping splits", 0.1)):
        for seed_noise in (0.3, 1.0, 3.0):
            for splits, seeds in designs:
                d = shared_splits(studies, splits, seeds, seed_noise, generator, overlap=share > 0.0)
                place = f"{kind}, seeds vary {seed_noise:g} times as much"
                pairs = d.reshape(studies, -1)
                rates[f"all pairs as independent (wrong here), {place}"].append(_rate(tests.t_test(pairs, share)))
                means = means_of_splits(pairs, np.repeat(np.arange(splits), seeds))
                rates[f"means of splits, {place}"].append(_rate(tests.t_test(means, share)))
    return rates


def false_equivalences(kind: Noise, studies: int, generator: np.random.Generator) -> Rates:
    """Return how often TOST calls methods equivalent that differ by the margin exactly."""
    rates: Rates = defaultdict(list)
    for pairs in SIZES:
        a, b = noise(kind, (2, studies, pairs), generator)
        d = a - b + 0.5
        rates["margin given"].append(_rate(tests.equivalence_test(d, 0.5)))
        rates["margin 0.5sd, estimated"].append(_rate(tests.equivalence_test(d, 0.5 * pooled_deviation(a, b))))
        own = 0.5 * unshared_deviation(a, b)
        rates["margin 0.5sd, estimated on different splits"].append(_rate(tests.equivalence_test(d, own)))
    return rates


def bayesian_claims(kind: Noise, studies: int, generator: np.random.Generator) -> Rates:
    """Return how often Bayesian tests are 95 % sure of a difference where there is none (8 datasets, or one).

    They promise no rate of false positives, whatever it is.
    """
    rates: Rates = defaultdict(list)
    for pairs in SIZES:
        a, b = repeated_runs(kind, (studies, 8, pairs), 2, generator)
        d = a - b
        single = [correlated_t_test(one, 0.1) for one in d[:, 0]]
        several = [signed_rank(one, 0.1, generator, samples=1_000) for one in d.mean(axis=-1)]
        rates["correlated t, one dataset (no promise)"].append(_sure(single))
        rates["signed-rank, 8 datasets (no promise)"].append(_sure(several))
    return rates


def hierarchical_claims(kind: Noise, studies: int, generator: np.random.Generator) -> Rates:
    """Return the same of what the hierarchical model expects of another dataset after 8."""
    rates: Rates = defaultdict(list)
    for pairs in SIZES:
        a, b = repeated_runs(kind, (studies, 8, pairs), 2, generator)
        found = zip((a - b).mean(axis=-1), tests.standard_error(a - b), strict=True)
        rates["hierarchical, another dataset (no promise)"].append(_sure([next_dataset(*one, 0.1) for one in found]))
    return rates


def _sure(posteriors: Sequence[Posterior]) -> float:
    return float(np.mean([max(one.below, one.above) > LEVEL for one in posteriors]))


def coverage(draw: Callable[[int], Array], generator: np.random.Generator, resamples: int = 2_000) -> Rates:
    """Return how often 95 % intervals of the mean contain it; `draw(pairs)` gives differences of mean 0."""
    names = ("hull of t and BCa (shown)", "t", "BCa, small-sample tails (wrong here)", "BCa, plain (wrong here)")
    rates: Rates = {name: [] for name in names}
    for pairs in SIZES:
        d = draw(pairs)
        tails, plain = (bca_interval(d, generator, resamples=resamples, small_sample=small) for small in (True, False))
        t = tests.t_interval(d, LEVEL)
        for name, ends in zip(rates, (hull(t, tails), t, tails, plain), strict=True):
            rates[name].append(covered(ends, 0.0))
    return rates


def coverage_of_aggregates(kind: Noise, studies: int, generator: np.random.Generator, datasets: int = 8) -> Rates:
    """Return how often the stratified 95 % intervals contain the truth: datasets differ, runs within them too."""
    rates: Rates = defaultdict(list)
    centres = np.linspace(0.0, 2.0, datasets)
    truth = interquartile_mean(centres + noise(kind, (200_000, datasets), generator))
    better = noise(kind, (2_000_000,), generator) < noise(kind, (2_000_000,), generator) + 0.5
    for pairs in SIZES:
        means, shares = [], []
        for _ in range(studies):
            a, b = noise(kind, (2, datasets, pairs), generator)
            scored = interquartile_mean_interval(list(centres[:, None] + a), generator, resamples=500)
            compared = improvement_probability(list(a), list(b + 0.5), generator, resamples=500)
            means.append((scored.low, scored.high))
            shares.append((compared.low, compared.high))
        rates["interquartile mean (no promise)"].append(covered(np.array(means), truth))
        rates["probability of improvement (no promise)"].append(covered(np.array(shares), float(better.mean())))
    return rates


def power_curves(effects: Sequence[float], studies: int, generator: np.random.Generator) -> Rates:
    """Return the power of the paired t-test at every effect (mean over deviation of the differences), and its forecast.

    One entry for every size and noise, and the forecast for Gaussian noise.
    """
    rates: Rates = {}
    for pairs in SIZES:
        rates[f"{pairs} pairs, forecast"] = [power(effect, 1.0, pairs) for effect in effects]
        for kind in NOISES:
            a, b = noise(kind, (2, studies, pairs), generator)
            d = (a - b) / np.sqrt(2.0)
            rates[f"{pairs} pairs, {kind}"] = [_rate(tests.t_test(d + effect)) for effect in effects]
    return rates


def rates_under_skew(studies: int, generator: np.random.Generator) -> Rates:
    """Return how often tests reject the true mean or median of skewed differences, and how often a note warns."""
    rates: Rates = defaultdict(list)
    for kind in ("lognormal", "2 % failures"):
        for pairs in SIZES:
            d, mean, median = unusual_differences(kind, (studies, pairs), generator)
            rates[f"paired t, of the mean, {kind} (no promise)"].append(_rate(tests.t_test(d - mean)))
            rates[f"Wilcoxon, of the mean, {kind} (no promise)"].append(_rate(tests.wilcoxon_test(d - mean)))
            rates[f"sign test, of the median, {kind}"].append(_rate(tests.sign_test(d - median)))
            rates[f"studies with a note on skew or outliers, {kind}"].append(warned(d))
    for pairs in SIZES:
        rates["studies with a note, gaussian"].append(warned(noise("gaussian", (studies, pairs), generator)))
    return rates


def warned(differences: Array) -> float:
    """Return the share of studies whose differences are called skewed or have outliers."""
    return float(np.mean([bool(shape(d).problems) for d in differences[:2_000]]))


def second_looks(studies: int, generator: np.random.Generator, first: int = 5, more: int = 10) -> float:
    """Return the false-positive rate of testing, adding seeds where the first look was inconclusive, testing again."""
    d = noise("gaussian", (studies, first + more), generator)
    return float(((tests.t_test(d[:, :first]) < ALPHA) | (tests.t_test(d) < ALPHA)).mean())


def covered(ends: Array, truth: float) -> float:
    """Return the share of intervals `[studies, 2]` that contain the truth."""
    return float(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean())


def _rate(p: Array) -> float:
    return float((p < ALPHA).mean())
