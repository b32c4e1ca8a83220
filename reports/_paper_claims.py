"""Deciding a claim of a paper by stored results: which test, which numbers, which verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from bench.api import Curves, Results, UserError, catalogue, risk_coverage_curve, sort_by_score, stats
from bench.reports._words import plural, probability

Verdict = Literal["reproduced", "not reproduced", "inconclusive", "not comparable"]
Claim = Mapping[str, Any]
State = Literal["yes", "no", "open"]
FEWEST = 5  # pairs for a verdict of bench.stats
SETTINGS = stats.Settings()


@dataclass(frozen=True)
class Judged:
    """What became of a claim."""

    verdict: Verdict
    test: str
    numbers: str
    needs: str = ""  # seeds an inconclusive one would take, or why one cannot be compared


@dataclass(frozen=True)
class Held:
    """The results that an experiment of the paper is compared with."""

    results: Results
    datasets: tuple[str, ...]
    settings: stats.Settings = SETTINGS

    @property
    def cells(self) -> pd.DataFrame:
        """The cells of the experiment's datasets."""
        return self.results.cells[self.results.cells["dataset"].isin(self.datasets)]

    def metric(self, name: str) -> str:
        """Return the stored name of a metric: of latencies, the most complete one that was timed."""
        if not name.startswith("latency@"):
            return name
        present = set(self.results.frame["metric"])
        rest = name.removeprefix("latency")
        kinds = (f"latency_{kind}{rest}" for kind in ("total", "transfer", "forward"))
        return next((kind for kind in kinds if kind in present), f"latency_total{rest}")

    def frame(self, claim: Claim) -> pd.DataFrame:
        """Return the values that a claim is about."""
        if "derived" in claim:
            return self._derived(claim)
        frame = self.results.frame
        return frame[(frame["metric"] == self.metric(claim["metric"])) & frame["dataset"].isin(self.datasets)]

    def _derived(self, claim: Claim) -> pd.DataFrame:
        """Return one row per cell (and condition, where there are some), computed from the arrays of the cells."""
        cells = self.cells[(self.cells["status"] == "ok") & self.cells["method"].isin(_methods(claim))]
        rows = []
        for cell in cells.itertuples():
            for condition, value in _DERIVED[claim["derived"]](self.results, str(cell.key), claim).items():
                rows.append((cell.dataset, cell.split, cell.method, cell.seed, claim["metric"], condition, value))
        columns = ["dataset", "split", "method", "seed", "metric", "condition", "value"]
        return pd.DataFrame(rows, columns=columns)


def judge(claim: Claim, held: Held) -> Judged:
    """Return the verdict on a claim."""
    if claim["kind"] == "none":
        return Judged("not comparable", "none", "–", claim["why"])
    if "only" in claim:
        held = replace(held, datasets=tuple(d for d in held.datasets if d in claim["only"]))
    frame = held.frame(claim)
    missing = [m for m in _methods(claim) if m not in set(frame["method"])]
    if missing:
        what = held.metric(claim["metric"])
        return Judged("not comparable", "none", "–", f"no {what} of {', '.join(missing)} in suite {held.results.suite}")
    return _KINDS[claim["kind"]](claim, held, frame)


def _methods(claim: Claim) -> list[str]:
    return [*claim["method"], *claim.get("over", ())]


def _measure(claim: Claim, held: Held) -> stats.Measure:
    name = held.metric(claim["metric"])
    known = catalogue().get(name.partition("@")[0])
    direction = claim.get("direction") or (known.direction if known else "lower")
    return stats.Measure(name, direction, known.target if known and direction == "target" else None)


def _compared(
    held: Held, frame: pd.DataFrame, a: str, b: str, measure: stats.Measure, cells: pd.DataFrame | None
) -> stats.Comparison | None:
    both = frame[frame["method"].isin([a, b])]
    own = None if cells is None else cells[cells["method"].isin([a, b])]
    try:
        return stats.compare(both, a, b, [measure], cells=own, settings=held.settings)
    except UserError:
        return None  # nothing in common


Pair = tuple[str, str]


def _all_compared(claim: Claim, held: Held, frame: pd.DataFrame) -> dict[Pair, stats.Comparison]:
    measure = _measure(claim, held)
    pairs = [(a, b) for a in claim["method"] for b in claim["over"]]
    return {pair: found for pair in pairs if (found := _compared(held, frame, *pair, measure, held.cells)) is not None}


def _states(comparisons: Mapping[Pair, stats.Comparison], wanted: str) -> dict[tuple[Pair, str], State]:
    """Return the state of a claim for each pair and dataset; p is corrected over all of them."""
    rows = [(pair, row) for pair, comparison in comparisons.items() for row in comparison.rows]
    p = stats.adjust_p_values([row.p for _, row in rows], SETTINGS.correction)
    return {(pair, row.dataset): _state(row, float(p[i]), wanted) for i, (pair, row) in enumerate(rows)}


def _state(row: stats.DatasetComparison, p: float, wanted: str) -> State:
    if p < SETTINGS.alpha:
        gain = row.difference if row.direction == "higher" else -row.difference
        return "yes" if wanted == "better" and gain > 0 else "no"
    if row.verdict == "equivalent":
        return "yes" if wanted == "equivalent" else "no"
    return "open"


def _of_dataset(states: Mapping[Pair, State], some: bool) -> State:
    """Return the state of a dataset: all pairs must say yes, or all of one method where one of several is enough."""
    groups: dict[str, list[State]] = {}
    for (a, _), state in states.items():
        groups.setdefault(a if some else "", []).append(state)
    each = ["yes" if set(g) == {"yes"} else "no" if "no" in g else "open" for g in groups.values()]
    if "yes" in each:
        return "yes"
    return "no" if set(each) == {"no"} else "open"


def _better(claim: Claim, held: Held, frame: pd.DataFrame) -> Judged:
    comparisons = _all_compared(claim, held, frame)
    if claim.get("datasets") == "over":
        return _over(claim, comparisons)
    return _decided(claim, comparisons, "better")


def _same(claim: Claim, held: Held, frame: pd.DataFrame) -> Judged:
    return _decided(claim, _all_compared(claim, held, frame), "equivalent")


def _decided(claim: Claim, comparisons: Mapping[Pair, stats.Comparison], wanted: str) -> Judged:
    states = _states(comparisons, wanted)
    datasets = list(dict.fromkeys(dataset for _, dataset in states))
    each = {
        d: _of_dataset({pair: s for (pair, other), s in states.items() if other == d}, bool(claim.get("any")))
        for d in datasets
    }
    count = {state: sum(found == state for found in each.values()) for state in ("yes", "no", "open")}
    most = claim.get("datasets") == "most"
    verdict: Verdict = "inconclusive"
    if (2 * count["yes"] > len(each)) if most else (count["yes"] == len(each) > 0):
        verdict = "reproduced"
    elif (2 * count["no"] >= len(each) > 0) if most else count["no"]:
        verdict = "not reproduced"
    rows = [row for comparison in comparisons.values() for row in comparison.rows]
    overlap = any(row.test_share for row in rows)
    test = f"{'corrected resampled' if overlap else 'paired'} t-test" + (" and TOST" if wanted == "equivalent" else "")
    if len(each) > 1:
        test += f", on {'more than half of' if most else 'all'} {len(each)} datasets"
    text = f"{count['yes']} yes, {count['no']} no, {count['open']} open. " if len(each) > 1 else ""
    return Judged(verdict, test, text + _numbers(comparisons), _needs(rows) if verdict == "inconclusive" else "")


def _over(claim: Claim, comparisons: Mapping[Pair, stats.Comparison]) -> Judged:
    found = {pair: c.across[0] for pair, c in comparisons.items() if c.across}
    test = "Wilcoxon's signed-rank test over datasets"
    if not found:
        return Judged("inconclusive", test, _numbers(comparisons), "at least two datasets with 5 seeds each")
    p = stats.adjust_p_values([across.p for across in found.values()], SETTINGS.correction)
    states: dict[Pair, State] = {}
    for i, (pair, across) in enumerate(found.items()):
        sure = p[i] < SETTINGS.alpha
        states[pair] = ("yes" if across.signed_ranks < 0 else "no") if sure else "open"
        if across.verdict == "equivalent":
            states[pair] = "no"
    state = _of_dataset(states, bool(claim.get("any")))
    verdict: Verdict = {"yes": "reproduced", "no": "not reproduced", "open": "inconclusive"}[state]  # type: ignore[assignment]
    numbers = "; ".join(
        f"{a} against {b}: {_counts(across)}, p {probability(float(p[i]))}"
        for i, ((a, b), across) in enumerate(found.items())
    )
    return Judged(verdict, test, numbers, _datasets_needed(found.values()) if verdict == "inconclusive" else "")


def _counts(across: stats.OverallComparison) -> str:
    words = ("better", "worse", "equivalent", "inconclusive")
    text = ", ".join(f"{getattr(across, word)} {word}" for word in words if getattr(across, word))
    return f"{text} of {across.datasets}"


def _datasets_needed(found: Any) -> str:
    needed = [across.datasets_needed for across in found if across.datasets_needed is not None]
    return f"about {min(needed)} datasets" if needed else "more than 10,000 datasets"


def _rises(claim: Claim, held: Held, frame: pd.DataFrame) -> Judged:
    low, high = claim["conditions"]
    measure = stats.Measure(claim["metric"], "higher")
    comparisons = {}
    for method in claim["method"]:
        own = frame[frame["method"] == method]
        # The conditions take the place of methods: pairs are still those of one split and seed.
        found = _compared(held, own.assign(method=own["condition"]), high, low, measure, None)
        if found is not None:
            comparisons[f"{method}: {high}", low] = found
    if not comparisons:
        return Judged("not comparable", "none", "–", "the stored cells keep no such arrays")
    return _decided(claim, comparisons, "better")


def _small_losses(claim: Claim, held: Held, frame: pd.DataFrame) -> Judged:
    comparisons = _all_compared(claim, held, frame)
    states, parts = [], []
    for (a, b), comparison in comparisons.items():
        gains = [abs(row.difference) for row in comparison.rows if row.verdict == "better"]
        lost = [abs(row.difference) for row in comparison.rows if row.verdict == "worse"]
        parts.append(
            f"{a} against {b}: {len(gains)} gains (mean {np.mean(gains) if gains else 0:.3g}), {len(lost)} losses "
            f"(largest {max(lost, default=0):.3g})"
        )
        if gains and (not lost or max(lost) < float(np.mean(gains))):
            states.append("yes")
        else:
            states.append("no" if lost else "open")
    verdict: Verdict = (
        "reproduced" if "yes" in states else "not reproduced" if set(states) == {"no"} else "inconclusive"
    )
    rows = [row for comparison in comparisons.values() for row in comparison.rows]
    test = "the largest loss that the t-test shows is below the mean gain that it shows"
    return Judged(verdict, test, "; ".join(parts), _needs(rows) if verdict == "inconclusive" else "")


def _ratio(claim: Claim, held: Held, frame: pd.DataFrame) -> Judged:
    other = held.frame({**claim, "metric": claim["to"]})
    means = [f.groupby(["dataset", "method"])["value"].mean() for f in (frame, other)]
    ratios = (means[0] / means[1]).dropna()
    ratios = ratios[ratios.index.get_level_values("method").isin(claim["method"])]
    if ratios.empty:
        return Judged("not comparable", "none", "–", f"nothing was timed under {claim['to']}")
    parts = "; ".join(
        f"{row.method} on {row.dataset}: {row.value:.2f}" for row in ratios.rename("value").reset_index().itertuples()
    )
    verdict: Verdict = "reproduced" if (ratios <= claim["most"]).all() else "not reproduced"
    return Judged(verdict, f"quotient of the means at most {claim['most']}", parts)


def _numbers(comparisons: Mapping[Pair, stats.Comparison]) -> str:
    parts = []
    for (a, b), comparison in comparisons.items():
        if len(comparison.rows) == 1:
            parts.append(f"{a} {_one(comparison.rows[0])} (against {b})")
        else:
            words = [row.verdict for row in comparison.rows]
            counts = ", ".join(f"{words.count(w)} {w}" for w in dict.fromkeys(sorted(words)))
            parts.append(f"{a} against {b}: {counts}")
    return "; ".join(parts)


def _one(row: stats.DatasetComparison) -> str:
    ends = f" [{row.interval.low:+.3g}, {row.interval.high:+.3g}]" if row.interval else ""
    p = "" if math.isnan(row.p) else f", p {probability(row.p)}"
    return f"{row.mean_a:.4g} to {row.mean_b:.4g}, difference {row.difference:+.3g}{ends}{p}, n {row.pairs}"


def _needs(rows: Sequence[stats.DatasetComparison]) -> str:
    """Return how many seeds differences of the margin would take, by the largest number of those still open."""
    unclear = [row for row in rows if row.verdict == "inconclusive"]
    if not unclear:
        return "a larger family of tests than one claim would be decided"
    if any(row.pairs < FEWEST for row in unclear):
        return f"at least {FEWEST} seeds"
    known = [row.pairs_for_margin for row in unclear if row.plan_is_possible and row.pairs_for_margin is not None]
    if not known:
        return "more than these splits can show"
    if len(known) < len(unclear):
        return (
            f"up to {max(known)} seeds for {plural(len(known), 'difference')} as large as the margin; for "
            f"{len(unclear) - len(known)} more than these splits can show"
        )
    return f"{max(known)} seeds for a difference as large as the margin"


_KINDS = {"better": _better, "same": _same, "rises": _rises, "ratio": _ratio, "small-losses": _small_losses}


def _truth(results: Results, key: str, claim: Claim) -> dict[str, float]:
    curves = results.curves(key)
    if curves is None or curves.truth is None:
        return {}
    return {"": float(np.sqrt(np.mean(np.square(curves.mean - curves.truth))))}


def _risk(results: Results, key: str, claim: Claim) -> dict[str, float]:
    curves = results.curves(key)
    risk = None if curves is None else risks(curves)
    if risk is None:
        return {}
    half, whole = claim["conditions"]
    return {half: float(risk[(len(risk) + 1) // 2 - 1]), whole: float(risk[-1])}


def risks(curves: Curves) -> Any:
    """Return the selective risk of the k least uncertain rows, k = 1..N; None where there is no uncertainty."""
    if curves.mean.ndim == 2:
        loss = (curves.mean.argmax(axis=1) != curves.observed).astype(float)
        return risk_coverage_curve(sort_by_score(1.0 - curves.mean.max(axis=1), loss)).risk
    if not np.isfinite(curves.variance).all():
        return None
    return risk_coverage_curve(sort_by_score(curves.variance, np.square(curves.mean - curves.observed)), root=True).risk


def _softmax(results: Results, key: str, claim: Claim) -> dict[str, float]:
    softmax = results.arrays(key).get("softmax")
    if softmax is None or np.ndim(softmax) != 3 or softmax.shape[1] < 2:
        return {}
    spread = np.asarray(softmax, dtype=float)[:, :, 0].std(axis=1, ddof=1)
    if "conditions" not in claim:
        return {"": float(spread.mean())}
    least, most = claim["conditions"]
    return {least: float(spread[0]), most: float(spread[-1])}


_DERIVED = {"truth": _truth, "risk": _risk, "softmax": _softmax}
