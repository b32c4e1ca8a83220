"""Deciding a claim of a paper by stored results: which test, which numbers, which verdict.

A claim has a kind, and `by` says which test decides it: of means over repeats (the default), of signs and ranks of
single runs, of paired rounds of times, or of ranks over datasets. Every test gives the evidence for the claim and for
its contrary; neither shown at 5 % means that it cannot be decided.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from bench.reports._paper_claims_derived import risks
from bench.reports._paper_claims_held import VERDICTS, Claim, Held, Judged, Verdict
from bench.reports._paper_claims_means import better, better_over_datasets, rises, same, small_losses
from bench.reports._paper_claims_runs import higher_sign, most_runs, same_sign, value_of_one_run
from bench.reports._paper_claims_sweeps import consistently, trend
from bench.reports._paper_claims_times import same_time, time_ratio

__all__ = ["KINDS", "VERDICTS", "Claim", "Held", "Judged", "Verdict", "judge", "risks"]

KINDS: Mapping[tuple[str, str], Callable[[Claim, Held], Judged]] = {
    ("better", "means"): better,
    ("better", "datasets"): better_over_datasets,
    ("better", "signs"): higher_sign,
    ("same", "means"): same,
    ("same", "signs"): same_sign,
    ("same", "rounds"): same_time,
    ("ratio", "rounds"): time_ratio,
    ("rises", "means"): rises,
    ("small-losses", "means"): small_losses,
    ("trend", "means"): trend,
    ("consistently", "means"): consistently,
    ("most-runs", "signs"): most_runs,
    ("one-run", "signs"): value_of_one_run,
}


def judge(claim: Claim, held: Held) -> Judged:
    """Return the verdict on a claim."""
    if claim["kind"] == "none":
        return Judged("no experiment", "none", "–", claim["why"])
    if "only" in claim:
        held = replace(held, datasets=tuple(d for d in held.datasets if d in claim["only"]))
        if not held.datasets:
            return Judged("not run", "none", "–", f"no {' or '.join(claim['only'])} in suite {held.results.suite}")
    return KINDS[claim["kind"], claim.get("by", "means")](held.in_metrics(claim), held)
