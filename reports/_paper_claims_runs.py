"""Claims about single runs, by tests of signs and ranks: levels that may lie beyond the highest, shares, one value.

The image of a run may keep its class at all noise levels. Then its level is above the highest one: infinite here, so
that signs and ranks count it, while a mean would have to leave it out.
"""

import math
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import bdtrc

from bench.api import Array, plural, stats
from bench.reports._paper_claims_derived import DERIVED
from bench.reports._paper_claims_held import SETTINGS, Claim, Evidence, Held, Judged, Statement, decided, not_run
from bench.reports._words import probability

REPEAT = ["split", "seed"]
FEWEST_SIGNS = 6  # runs, with fewer no two-sided sign test is below 5 %
FEWEST_RUNS = 40  # with fewer, a value outside the range of all runs is no surprise at 5 %


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
    """The values that the paper gives of one run could be those of one of our runs of that method."""
    (method,) = claim["method"]
    columns = []
    for metric in claim["values"]:
        frame, missing = _values({**claim, "metric": metric}, held)
        if missing:
            return not_run(missing, held)
        own = frame[frame["dataset"] == held.datasets[0]]
        columns.append(own.set_index(REPEAT)["value"].rename(metric))
    ours = pd.concat(columns, axis=1, join="inner").to_numpy(dtype=float)
    p = rank_among(np.array(list(claim["values"].values())), ours)
    inside = len(ours) >= FEWEST_RUNS and p >= SETTINGS.alpha
    texts = []
    for (metric, value), column in zip(claim["values"].items(), ours.T, strict=True):
        low, middle, high = map(_level, np.quantile(column, [0.025, 0.5, 0.975], method="nearest"))
        texts.append(f"{metric} {value:g} in the paper, ours {middle} ({low} to {high})")
    numbers = (
        f"{method}: {'; '.join(texts)} (median and central 95 % of {plural(len(ours), 'run')}), p {probability(p)}"
    )
    evidence = Evidence(0.0 if inside else 1.0, p)
    one = Statement(method, "", held.datasets[0], evidence, numbers, f"at least {FEWEST_RUNS} seeds")
    return decided(claim, "permutation test of the paper's run among ours", [one])


def rank_among(one: Array, runs: Array) -> float:
    """Return p of the test that `one[metric]` is another run of the same kind as `runs[run, metric]`.

    If it is, any of the n + 1 could as well be the one: p is the share of them that lie as far out as it does, or
    farther. How far is the Mahalanobis distance of their ranks, so that values that usually go together count once,
    and infinite ones count.
    """
    ranks = stats.ranks(np.vstack([one, runs]).T).T
    centred = ranks - ranks.mean(axis=0)
    distances = np.sum(centred @ np.linalg.pinv(centred.T @ centred) * centred, axis=1)
    return float(np.mean(distances >= distances[0] * (1 - 1e-9)))


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
        own = frame[frame["dataset"] == repeats.dataset].pivot(index=REPEAT, columns="method", values="value")
        pairs = own[[a, b]].dropna().to_numpy(dtype=float)
        with np.errstate(invalid="ignore"):
            found.append((repeats.dataset, pairs[:, 0] - pairs[:, 1]))
    return found


def _majority(count: int, total: int) -> float:
    """Return the one-sided p of the exact test that a share is above a half."""
    return float(bdtrc(count - 1, total, 0.5))
