"""Claims about single runs, by tests of signs and ranks: levels that may lie beyond the highest, shares, one value.

The image of a run may keep its class at all noise levels. Then its level is above the highest one: infinite here, so
that signs and ranks count it, while a mean would have to leave it out.
"""

import math
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import binom

from bench.api import Array, stats
from bench.reports._paper_claims_derived import DERIVED
from bench.reports._paper_claims_held import (
    PLACE,
    SETTINGS,
    Claim,
    Evidence,
    Held,
    Judged,
    Statement,
    all_of,
    decided,
    not_run,
)
from bench.reports._words import plural

FEWEST_SIGNS = 6  # runs, with fewer no two-sided sign test is below 5 %
FEWEST_RUNS = 40  # runs for each value that is compared; with fewer, one outside their range is no surprise at 5 %


def higher_sign(claim: Claim, held: Held) -> Judged:
    """Methods have the higher level than their rivals in more runs than the lower one."""
    frame, missing = _values(claim, held)
    if missing:
        return not_run(missing, held)
    statements = []
    for a, b in product(claim["method"], claim["over"]):
        for dataset, d in _differences(frame, held, a, b):
            known = d[~np.isnan(d)]  # both beyond the highest level: not known which is higher
            above, below = int((known > 0).sum()), int((known < 0).sum())
            p = float(stats.sign_test(known))
            evidence = Evidence(p if above > below else 1.0, p if below > above else 1.0)
            beyond = len(d) - len(known)
            text = f"{a} against {b}: higher in {above}, lower in {below}, equal in {len(known) - above - below}"
            text += f", both beyond the highest level in {beyond}" * (beyond > 0) + f" of {plural(len(d), 'run')}"
            statements.append(Statement(a, b, dataset, evidence, text, f"at least {FEWEST_SIGNS} seeds"))
    return decided(claim, "sign test of paired runs", statements)


def same_sign(claim: Claim, held: Held) -> Judged:
    """The median difference of paired runs is within the margin."""
    frame, missing = _values(claim, held)
    if missing:
        return not_run(missing, held)
    margin = float(claim["margin"])
    statements = []
    for a, b in product(claim["method"], claim["over"]):
        for dataset, d in _differences(frame, held, a, b):
            # A difference of two levels beyond the highest is not known: it counts neither as inside nor as outside.
            ends = [int((d < margin).sum()), int((d > -margin).sum())]
            outside = [int((d > margin).sum()), int((d < -margin).sum())]
            inside = max(_majority(count, len(d)) for count in ends)
            evidence = Evidence(inside, min(1.0, 2.0 * min(_majority(count, len(d)) for count in outside)))
            both = int((np.abs(d) < margin).sum())
            text = f"{a} against {b}: within {margin:g} in {both}, beyond in {sum(outside)} of {plural(len(d), 'run')}"
            statements.append(Statement(a, b, dataset, evidence, text, f"at least {FEWEST_SIGNS} seeds"))
    return decided(claim, f"sign tests that the median difference is within {margin:g}", statements)


def most_runs(claim: Claim, held: Held) -> Judged:
    """Something is so in more than half of the runs of each method; runs of which it is unknown may be either."""
    frame, missing = _values(claim, held)
    if missing:
        return not_run(missing, held)
    statements = []
    for (dataset, method), own in frame.groupby(["dataset", "method"], sort=False):
        value = own["value"].to_numpy(dtype=float)
        yes, no = int((value == 1).sum()), int((value == 0).sum())
        evidence = Evidence(*(min(1.0, 2.0 * _majority(count, len(value))) for count in (yes, no)))
        text = f"{method}: {yes} of {plural(len(value), 'run')}"
        text += f", never misclassified in {len(value) - yes - no}" * (yes + no < len(value))
        statements.append(Statement(str(method), "", str(dataset), evidence, text, f"at least {FEWEST_SIGNS} seeds"))
    return decided(claim, "exact binomial test against a half", statements)


def value_of_one_run(claim: Claim, held: Held) -> Judged:
    """The values that the paper gives of one run lie inside the central 95 % of our runs of that method.

    The rank of a further run among n runs is uniform: a value below or above all of them has p = 2 / (n + 1).
    """
    (method,) = claim["method"]
    evidence, texts = [], []
    runs, needed = 0, FEWEST_RUNS * len(claim["values"])
    for metric, value in claim["values"].items():
        frame, missing = _values({**claim, "metric": metric}, held)
        if missing:
            return not_run(missing, held)
        ours = frame["value"].to_numpy(dtype=float)
        runs = len(ours)
        outside = min(1.0, 2.0 * (1 + min((ours <= value).sum(), (ours >= value).sum())) / (runs + 1))
        inside = runs >= needed and outside >= SETTINGS.alpha
        evidence.append(Evidence(0.0 if inside else 1.0, float(outside)))
        ends = np.quantile(ours, [0.025, 0.5, 0.975], method="nearest")
        texts.append(
            f"{metric} {value:g} in the paper, ours {_level(ends[1])} ({_level(ends[0])} to {_level(ends[2])})"
        )
    numbers = f"{method}: {'; '.join(texts)} (median and central 95 % of {plural(runs, 'run')})"
    one = Statement(method, "", held.datasets[0], all_of(evidence), numbers, f"at least {needed} seeds")
    return decided(claim, "rank of the paper's value among our runs", [one])


def _level(value: float) -> str:
    return "beyond the highest level" if math.isinf(value) else f"{value:.4g}"


def _values(claim: Claim, held: Held) -> tuple[pd.DataFrame, str]:
    """Return the values of the claim's methods, one per run; or what is missing, in words."""
    methods = [*claim["method"], *claim.get("over", ())]
    if "derived" in claim:
        frame = held.derived(claim, methods, DERIVED[claim["derived"]])
    else:
        frame = held.frame[(held.frame["metric"] == claim["metric"]) & held.frame["method"].isin(methods)]
    missing = [method for method in methods if method not in set(frame["method"])]
    return frame, f"{claim['metric']} of {', '.join(missing)}" if missing else ""


def _differences(frame: pd.DataFrame, held: Held, a: str, b: str) -> list[tuple[str, Array]]:
    """Return the paired differences on every dataset; NaN where both are infinite.

    Signs need independent pairs: overlapping splits of one table have none.
    """
    found = []
    for repeats in stats.pair_repeats(
        frame.assign(value=0.0), stats.Measure(str(frame["metric"].iloc[0])), [a, b], held.cells
    ):
        if repeats.repetition.test_share:
            continue
        own = frame[frame["dataset"] == repeats.dataset].pivot(index=PLACE[1::2], columns="method", values="value")
        pairs = own[[a, b]].dropna().to_numpy(dtype=float)
        with np.errstate(invalid="ignore"):
            found.append((repeats.dataset, pairs[:, 0] - pairs[:, 1]))
    return found


def _majority(count: int, total: int) -> float:
    """Return the one-sided p of the exact test that a share is above a half."""
    return float(binom.sf(count - 1, total, 0.5))
