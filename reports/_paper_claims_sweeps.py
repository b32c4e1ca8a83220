"""Claims about a range of settings, from a suite with several variants of a method: trends, and "consistently"."""

import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np

from bench.api import Array, plural, stats
from bench.reports._paper_claims_held import (
    FEWEST,
    SETTINGS,
    Claim,
    Evidence,
    Held,
    Judged,
    Statement,
    decided,
    not_run,
)
from bench.reports._paper_claims_means import pair_statements

FEWEST_VARIANTS = 3


def trend(claim: Claim, held: Held) -> Judged:
    """Each metric rises with the level of each method, and no step from one level to the next is shown to fall."""
    statements = []
    for plugin, option in claim["levels"].items():
        variants = held.variants(plugin, option)
        if len(variants) < FEWEST_VARIANTS:
            return _no_sweep(plugin, option, held)
        for metric, dataset in product(claim["metrics"], held.datasets):
            values = _by_level(held, dataset, metric, list(variants))
            name = f"{metric} of {plugin}"
            if len(values) < FEWEST:
                statements.append(Statement(name, "", dataset, Evidence(1.0, 1.0), "", f"at least {FEWEST} seeds"))
            else:
                statements.append(_rises(name, dataset, list(variants.values()), values))
    return decided(claim, "t-test of Kendall's rank correlation in each repeat; no step is shown to fall", statements)


def consistently(claim: Claim, held: Held) -> Judged:
    """For every level of the rival there is a level of the method that beats it by all metrics jointly."""
    labels: dict[str, list[str]] = {}
    for plugin, option in claim["levels"].items():
        labels[plugin] = list(held.variants(plugin, option))
        if len(labels[plugin]) < FEWEST_VARIANTS:
            return _no_sweep(plugin, option, held)
    ours = [label for plugin in claim["method"] for label in labels[plugin]]
    theirs = [label for plugin in claim["over"] for label in labels[plugin]]
    found, test, missing = pair_statements(claim, held, list(product(ours, theirs)), count_repeats=False)
    if missing:
        return not_run(missing, held)
    statements = []
    for rival in theirs:
        own = [one for one in found if one.rival == rival]
        shown = [one.method for one in own if one.evidence.p * len(own) < SETTINGS.alpha]
        text = f"{rival}: beaten by {', '.join(shown) or 'none'}"
        statements += [replace(one, numbers=text if one is own[0] else "") for one in own]
    test += "; for every level of the rival one of ours (Bonferroni)"
    return decided({**claim, "any_each": True}, test, statements, "more seeds")


def _no_sweep(plugin: str, option: str, held: Held) -> Judged:
    return not_run(f"{FEWEST_VARIANTS} or more variants of {plugin} that differ in {option}", held)


def _by_level(held: Held, dataset: str, metric: str, variants: list[str]) -> Array:
    """Return the values `[repeat, level]` of the repeats that all variants have."""
    frame = held.frame[(held.frame["dataset"] == dataset) & (held.frame["metric"] == metric)]
    own = frame[frame["method"].isin(variants)].pivot(index=["split", "seed"], columns="method", values="value")
    values: Array = own.reindex(columns=variants).dropna().to_numpy(dtype=float)
    return values


def _rises(name: str, dataset: str, levels: list[float], values: Array) -> Statement:
    from scipy.stats import kendalltau

    # A repeat in which all levels give the same value has no correlation: it does not rise.
    correlations = np.nan_to_num([float(kendalltau(levels, row).statistic) for row in values])
    p, mean = _p(correlations), float(correlations.mean())
    # Steps that fall, by their p-values with Bonferroni's correction.
    steps = dict(zip(pairwise(levels), np.diff(values, axis=1).T, strict=True))
    falls = {ends: min(1.0, len(steps) * _p(step)) for ends, step in steps.items() if step.mean() < 0}
    contrary = min([1.0, *falls.values(), *([p] if mean <= 0 else [])])
    shown = p if mean > 0 and contrary >= SETTINGS.alpha else 1.0
    ends = values.mean(axis=0)
    text = (
        f"{name}: {ends[0]:.3g} at {levels[0]:g} to {ends[-1]:.3g} at {levels[-1]:g}, rank correlation {mean:.2f}, "
        f"{len(falls)} of {plural(len(steps), 'step')} falling, n {len(values)}"
    )
    if sure := [f"from {low:g} to {high:g}" for (low, high), one in falls.items() if one < SETTINGS.alpha]:
        text += f"; shown to fall {' and '.join(sure)}"
    return Statement(name, "", dataset, Evidence(shown, contrary), text, "more seeds")


def _p(values: Array) -> float:
    """Return two-sided p of the t-test; without any variance that of the permutation test."""
    p = float(stats.t_test(values))
    return stats.smallest_permutation_p(len(values)) if math.isnan(p) else p
