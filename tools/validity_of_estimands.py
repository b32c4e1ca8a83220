"""Level of the tests beside that of the mean: of the median, of ranks, of the trimmed mean; failed runs are losses."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from bench.stats import tests
from bench.stats.tests import TRIM, Array
from tools.simulated_studies import NOISES, overlapping_splits, repeated_runs, unusual_differences
from tools.validity_rates import ALPHA, SIZES, Rates

FAILING = 0.02  # share of the runs


def trimmed_mean_of(kind: str) -> float:
    """Return the true trimmed mean of `unusual_differences`: the mean between the quantiles at which it is cut."""
    low, high = scipy.stats.norm.ppf([TRIM, 1.0 - TRIM])
    kept = 1.0 - 2.0 * TRIM
    if kind == "lognormal":  # E[X; low < log X < high] = exp(1/2) P(low < Z + 1 < high)
        return float(np.exp(0.5) * np.diff(scipy.stats.norm.cdf([low - 1.0, high - 1.0]))[0] / kept)
    # The failures lie beyond both cuts, which are therefore quantiles of the others.
    low, high = scipy.stats.norm.ppf(np.array([TRIM, 1.0 - TRIM]) / (1.0 - FAILING))
    return float((1.0 - FAILING) * -np.diff(scipy.stats.norm.pdf([low, high]))[0] / kept)


def false_positives_of_estimands(studies: int, generator: np.random.Generator, sizes: Sequence[int] = SIZES) -> Rates:
    """Return how often each test rejects the true value of what it is about."""
    rates: Rates = defaultdict(list)
    for pairs in sizes:
        for kind in NOISES:
            a, b = repeated_runs(kind, (studies, pairs), 2, generator)
            rates[f"Yuen, of the trimmed mean, {kind}"].append(_rate(tests.trimmed_test(a - b)))
            d = overlapping_splits(kind, studies, pairs, generator)
            name = f"Yuen, of the trimmed mean, overlapping splits, {kind}"
            rates[name].append(_rate(tests.trimmed_test(d, 0.1)))
        for unusual in ("2 % failures", "lognormal"):
            d, _, _ = unusual_differences(unusual, (studies, pairs), generator)
            name = f"Yuen, of the trimmed mean, {unusual}{' (no promise)' if unusual == 'lognormal' else ''}"
            rates[name].append(_rate(tests.trimmed_test(d - trimmed_mean_of(unusual))))
        _with_failing_runs(rates, studies, pairs, generator)
    return rates


def _with_failing_runs(rates: Rates, studies: int, pairs: int, generator: np.random.Generator) -> None:
    """Add studies in which both methods diverge in 2 % of their runs, and in which A alone does."""
    d = generator.normal(size=(studies, pairs))
    a, b = generator.random((2, studies, pairs)) < FAILING
    both = _with_failures(d, a, b)
    rates["sign test, both diverge in 2 % of the runs"].append(_rate(tests.sign_test(both)))
    rates["Wilcoxon, both diverge in 2 % of the runs"].append(_rate(tests.wilcoxon_test(both)))
    rates["Yuen, of the trimmed mean, both diverge in 2 % of the runs"].append(_rate(tests.trimmed_test(both)))
    # A that diverges in 2 % of the runs and wins half of all pairs is ahead in the others.
    alone = _with_failures(d - scipy.stats.norm.ppf(0.5 / (1.0 - FAILING)), a, np.zeros_like(b))
    rates["sign test, A alone diverges in 2 % of the runs"].append(_rate(tests.sign_test(alone)))


def _with_failures(differences: Array, a: NDArray[np.bool_], b: NDArray[np.bool_]) -> Array:
    """Return differences in which runs that diverged are losses; the tests leave out zeros, where both did."""
    return np.where(a & b, 0.0, np.where(a, np.inf, np.where(b, -np.inf, differences)))


def _rate(p: Array) -> float:
    return float((p < ALPHA).mean())
