"""What the paper does, reports and claims, and which stored results each of its experiments is compared with."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from bench.api import Results
from bench.reports._paper_claims import SETTINGS, Held
from bench.reports._paper_protocols import Protocol, Run, flat, lacking, nearest, protocols, run_of
from bench.reports._words import named

UNDECIDED = ("not comparable", "not run", "no experiment")  # words that say nothing about a run


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

    def place(self, dataset: str) -> str:
        """Return our dataset that is compared with one of the paper's: another where none of the paper's was run."""
        theirs = set(self.held.datasets) & set(self.protocol.datasets)
        return dataset if theirs or len(self.held.datasets) != 1 else self.held.datasets[0]


def find(name: str, suites: Sequence[Results]) -> Found | list[str]:
    """Return the results that come nearest to an experiment, or why no suite is compared with it."""
    experiment = reference()["experiments"][name]
    known, candidates, reasons = protocols(reference(), name), [], []
    for results in suites:
        rows = named(results.frame, lambda metric, _: metric in experiment["metrics"])
        datasets = _datasets(experiment, set(rows["dataset"].unique()))
        if not datasets:
            continue
        held = Held(results, datasets, replace(SETTINGS, test_share=0.0) if experiment.get("independent") else SETTINGS)
        run = run_of(held.cells, experiment["methods"])
        if broken := lacking(run, dict(flat(experiment["must"]))):
            reasons.append(f"suite {results.suite} is another experiment ({'; '.join(broken)})")
            continue
        candidates.append(Found(held, run, *nearest(run, known)))
    if not candidates:
        return reasons
    return min(candidates, key=lambda each: (len(each.departures), -len(each.held.datasets)))


def _datasets(experiment: Mapping[str, Any], present: set[str]) -> tuple[str, ...]:
    """Return the datasets of a suite that an experiment is compared on: others only where the paper's were not run."""
    own = [name for name in (*experiment["datasets"], *experiment.get("stand_ins", {})) if name in present]
    others = experiment.get("others", ())
    return tuple(own or [name for name in sorted(present) if others == "any" or name in others])
