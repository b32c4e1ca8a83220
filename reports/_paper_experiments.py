"""What the paper does, reports and claims, and which stored results each of its experiments is compared with."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from bench.api import Results
from bench.reports._paper_claims import Claim, Held, Judged, judge
from bench.reports._paper_claims_sweeps import FEWEST_VARIANTS
from bench.reports._paper_protocols import Protocol, Run, flat, lacking, nearest, protocols, run_of
from bench.reports._words import named

UNDECIDED = ("not run", "no experiment")  # words that say nothing about a run


@cache
def reference() -> Mapping[str, Any]:
    """Return the facts: the paper's title, its experiments with their protocols, its tables and its claims."""
    common = _facts("common")
    experiments = {name: _facts(name) for name in common["experiments"]}
    return {
        "title": common["title"],
        "common": common,
        "experiments": experiments,
        **_facts("tables"),
        **_facts("claims"),
    }


def _facts(subject: str) -> Mapping[str, Any]:
    return tomllib.loads((files("bench.reports") / f"_paper_{subject}.toml").read_text("utf-8"))


@dataclass(frozen=True)
class Found:
    """The results that an experiment is compared with, the protocol they are nearest to, and the departures from it."""

    held: Held
    run: Run
    protocol: Protocol
    departures: Sequence[str]

    def qualified(self, verdict: str) -> str:
        """Return a verdict as it is printed: whether the run departs from the protocol is part of it."""
        return f"{verdict} under departures" if self.departures and verdict not in UNDECIDED else verdict

    def metric(self, name: str) -> str:
        """Return our metric for one of the paper's: under the protocol of the code its own, where it is stored."""
        own = self.held.instead.get(name, name)
        return own if own in set(self.held.results.frame["metric"]) else name

    def place(self, dataset: str) -> str:
        """Return our dataset that is compared with one of the paper's: another where none of the paper's was run."""
        theirs = set(self.held.datasets) & set(self.protocol.datasets)
        return dataset if theirs or len(self.held.datasets) != 1 else self.held.datasets[0]


def find(name: str, suites: Sequence[Results]) -> Found | list[str]:
    """Return the results that come nearest to an experiment, or why no suite is compared with it."""
    experiment = reference()["experiments"][name]
    known, candidates, reasons = protocols(reference(), name), [], []
    for results in suites:
        if not _datasets(experiment, set(results.cells["dataset"].unique())):
            continue  # without a look at its values, which may be a million
        rows = named(results.frame, lambda metric, _: metric in experiment["metrics"])
        datasets = _datasets(experiment, set(rows["dataset"].unique()))
        if not datasets:
            continue
        held = Held(results, datasets)
        run = run_of(held.cells, experiment["methods"])
        if not run.cells:  # of variants of its methods alone: a sweep is another experiment
            continue
        if broken := lacking(run, dict(flat(experiment["must"]))):
            reasons.append(f"suite {results.suite} is another experiment ({'; '.join(broken)})")
            continue
        candidates.append(_found(held, run, known))
    if not candidates:
        return reasons
    return min(candidates, key=lambda each: (len(each.departures), -len(each.held.datasets)))


def _found(held: Held, run: Run, known: Sequence[Protocol]) -> Found:
    protocol, departures = nearest(run, known)
    # Public code computes the paper's quantities in its own way: like is compared with like.
    instead = reference()["code_metrics"] if protocol.source == "code" else {}
    return Found(replace(held, instead=instead), run, protocol, departures)


def find_sweep(claim: Claim, suites: Sequence[Results]) -> Found | list[str]:
    """Return the suite with the most variants of the methods whose levels a claim is about, or why there is none."""
    experiment, levels = reference()["experiments"][claim["experiment"]], claim["levels"]
    known = [_with_any_level(protocol, levels) for protocol in protocols(reference(), claim["experiment"])]
    found: dict[int, Found] = {}
    for results in suites:
        held = Held(results, tuple(name for name in experiment["datasets"] if name in set(results.cells["dataset"])))
        labels = {label: plugin for plugin, option in levels.items() for label in held.variants(plugin, option)}
        count = min(list(labels.values()).count(plugin) for plugin in levels)
        if count >= FEWEST_VARIANTS:
            # To their protocol all variants of a plug-in are the same method.
            cells = held.cells.assign(method=held.cells["method"].map(lambda label, of=labels: of.get(label, label)))
            found.setdefault(count, _found(held, run_of(cells, list(levels)), known))
    return found[max(found)] if found else []


def _with_any_level(protocol: Protocol, levels: Mapping[str, str]) -> Protocol:
    """Return a protocol of some methods alone, which leaves their levels open."""
    swept = {f"methods.{plugin}.{option}": "it is what the claim varies" for plugin, option in levels.items()}
    rules = {path: rule for path, rule in protocol.rules.items() if path not in swept}
    return replace(protocol, methods=tuple(levels), rules=rules, irrelevant={**protocol.irrelevant, **swept})


@dataclass(frozen=True)
class JudgedClaim:
    """A claim, the results it was judged by (None: there are none) and what became of it."""

    claim: Claim
    found: Found | None
    judged: Judged

    @property
    def verdict(self) -> str:
        """The verdict as it is printed."""
        return self.found.qualified(self.judged.verdict) if self.found is not None else self.judged.verdict


def judge_claims(found: Mapping[str, Found | list[str]], suites: Sequence[Results]) -> list[JudgedClaim]:
    """Judge all claims by what was found of every experiment, those about a range of levels by sweeps of these."""
    return [_judged(claim, found, suites) for claim in reference()["claims"]]


def _judged(claim: Claim, found: Mapping[str, Found | list[str]], suites: Sequence[Results]) -> JudgedClaim:
    own = find_sweep(claim, suites) if "levels" in claim else found[claim["experiment"]]
    if isinstance(own, Found):
        return JudgedClaim(claim, own, judge(claim, own.held))
    if claim["kind"] == "none":
        return JudgedClaim(claim, None, Judged("no experiment", "none", "–", claim["why"]))
    run = claim.get("run", reference()["experiments"][claim["experiment"]]["text"]["run"])
    return JudgedClaim(claim, None, Judged("not run", "none", "–", "; ".join([*own, run])))


def _datasets(experiment: Mapping[str, Any], present: set[str]) -> tuple[str, ...]:
    """Return the datasets of a suite that an experiment is compared on: others only where the paper's were not run."""
    own = [name for name in (*experiment["datasets"], *experiment.get("stand_ins", {})) if name in present]
    others = experiment.get("others", ())
    return tuple(own or [name for name in sorted(present) if others == "any" or name in others])
