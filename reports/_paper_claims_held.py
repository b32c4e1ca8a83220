"""What a judgement is made of: the claim, the results it is judged by, and the evidence that tests give."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from bench.api import CellSpec, Results, read_spec, spec_or_none, stats

Verdict = Literal["reproduced", "not reproduced", "cannot be decided", "not run", "no experiment"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "not reproduced", "cannot be decided", "not run", "no experiment")
Claim = Mapping[str, Any]
Derive = Callable[[Results, str, CellSpec, Claim], Mapping[str, float]]  # values of a cell by condition
FEWEST = 5  # pairs for a verdict of bench.stats
SETTINGS = stats.Settings()
PLACE = ["dataset", "split", "method", "seed"]


@dataclass(frozen=True)
class Judged:
    """What became of a claim."""

    verdict: Verdict
    test: str
    numbers: str
    needs: str = ""  # what would decide it, or why nothing does


@dataclass(frozen=True)
class Evidence:
    """The p-value of the test that would show a statement, and of the one that would show its contrary."""

    p: float
    contrary: float

    @property
    def verdict(self) -> Verdict:
        """The verdict at 5 %."""
        if self.p < SETTINGS.alpha:
            return "reproduced"
        return "not reproduced" if self.contrary < SETTINGS.alpha else "cannot be decided"


@dataclass(frozen=True)
class Statement:
    """One method, against a rival or by itself, on one dataset."""

    method: str
    rival: str
    dataset: str
    evidence: Evidence
    numbers: str = ""
    needs: str = ""  # repeats that would decide it


def at_least(count: int, parts: Iterable[Evidence]) -> Evidence:
    """Return the evidence that at least so many of some statements hold, however they depend on each other.

    Benjamini and Heller 2008, "Screening for Partial Conjunction Hypotheses": (n - k + 1) times the k-th smallest
    p-value. It is the largest one where all must hold (the intersection-union test), and Bonferroni's where one is
    enough. The contrary of "at least k of n" is "at least n - k + 1 do not".
    """
    found = list(parts)
    return Evidence(
        _partial_conjunction([one.p for one in found], count),
        _partial_conjunction([one.contrary for one in found], len(found) - count + 1),
    )


def all_of(parts: Iterable[Evidence]) -> Evidence:
    """Return the evidence that all of some statements hold."""
    found = list(parts)
    return at_least(len(found), found)


def one_of(parts: Iterable[Evidence]) -> Evidence:
    """Return the evidence that one of some statements holds."""
    return at_least(1, parts)


def _partial_conjunction(p: Sequence[float], count: int) -> float:
    known = np.sort(np.where(np.isnan(p), 1.0, p))  # no test shows nothing
    return float(min(1.0, (len(known) - count + 1) * known[count - 1])) if len(known) else 1.0


@dataclass(frozen=True)
class Held:
    """The results that an experiment of the paper is compared with."""

    results: Results
    datasets: tuple[str, ...]
    instead: Mapping[str, str] = field(default_factory=dict)  # metrics that take the place of others, where stored

    @property
    def cells(self) -> pd.DataFrame:
        """The cells of the experiment's datasets."""
        return self.results.cells[self.results.cells["dataset"].isin(self.datasets)]

    @property
    def frame(self) -> pd.DataFrame:
        """The values of the experiment's datasets."""
        return self.results.frame[self.results.frame["dataset"].isin(self.datasets)]

    def derived(self, claim: Claim, methods: Sequence[str], derive: Derive) -> pd.DataFrame:
        """Return one row per cell (and condition, where there are some), computed from the arrays of the cells."""
        cells = self.cells[(self.cells["status"] == "ok") & self.cells["method"].isin(methods)]
        rows = []
        for cell in cells.itertuples():
            found = derive(self.results, str(cell.key), read_spec(str(cell.spec)), claim)
            place = (cell.dataset, cell.split, cell.method, cell.seed, claim["metric"])
            rows += [(*place, condition, value) for condition, value in found.items()]
        return pd.DataFrame(rows, columns=[*PLACE, "metric", "condition", "value"])

    def variants(self, plugin: str, option: str) -> dict[str, float]:
        """Return the methods of a suite that are this plug-in, the lowest value of the option first."""
        cells = self.cells[self.cells["status"] == "ok"].drop_duplicates("method")
        specs = {str(cell.method): spec_or_none(cell.spec) for cell in cells.itertuples()}
        found = {k: spec.method.options.get(option) for k, spec in specs.items() if spec and spec.method.name == plugin}
        levels = {label: float(value) for label, value in found.items() if isinstance(value, int | float)}
        return dict(sorted(levels.items(), key=lambda pair: pair[1]))

    def in_metrics(self, claim: Claim) -> Claim:
        """Return a claim in terms of the metrics that take the place of those it names."""
        stored = set(self.results.frame["metric"].unique()) if self.instead else set()
        others = {name: other for name, other in self.instead.items() if other in stored}
        changed = dict(claim)
        if "metric" in claim:
            changed["metric"] = others.get(claim["metric"], claim["metric"])
        for key in ("metrics", "higher"):
            if key in claim:
                changed[key] = [others.get(name, name) for name in claim[key]]
        if claim["kind"] == "one-run":
            changed["values"] = {others.get(name, name): value for name, value in claim["values"].items()}
        return changed


def not_run(what: str, held: Held) -> Judged:
    """Return the judgement on a claim whose cells are not there."""
    return Judged("not run", "none", "–", f"no {what} in suite {held.results.suite}")


def decided(claim: Claim, test: str, statements: Sequence[Statement], needs: str = "") -> Judged:
    """Combine statements about pairs of methods on datasets as the claim words it.

    On a dataset every method must beat every rival; with `any` one method must beat all of them, with `any_each` every
    rival must be beaten by some method. It must hold on all datasets, or on "most": on more than half of them.
    """
    by_dataset: dict[str, list[Statement]] = {}
    for one in statements:
        by_dataset.setdefault(one.dataset, []).append(one)
    each = [_on_dataset(claim, found) for found in by_dataset.values()]
    most = claim.get("datasets") == "most"
    whole = at_least(len(each) // 2 + 1 if most else len(each), each)
    verdict = whole.verdict if each else "cannot be decided"
    if len(each) > 1:
        test += f", on {'more than half of' if most else 'all'} {len(each)} datasets"
        words = [one.verdict for one in each]
        counts = ", ".join(f"{words.count(word)} {word}" for word in VERDICTS if word in words)
        numbers = f"by dataset: {counts}. {_by_pair(statements)}"
    else:
        numbers = "; ".join(one.numbers for one in statements if one.numbers) or "–"
    if verdict != "cannot be decided":
        return Judged(verdict, test, numbers)
    undecided = [one.needs for one in statements if one.needs and one.evidence.verdict == "cannot be decided"]
    return Judged(verdict, test, numbers, needs or "; ".join(_together(undecided)) or "more repeats")


def _together(needs: Sequence[str]) -> list[str]:
    """Return what statements need, with one range for numbers of seeds that are told in the same words."""
    counts: dict[str, list[int]] = {}
    for need in (part for text in needs for part in text.split("; ")):
        found = re.fullmatch(r"([\d,]+) (seeds? for .*)", need)
        counts.setdefault(found[2] if found else need, []).extend([int(found[1].replace(",", ""))] if found else [])
    return [
        text if not own else f"{min(own):,} {text}" if len(set(own)) == 1 else f"{min(own):,} to {max(own):,} {text}"
        for text, own in counts.items()
    ]


def _on_dataset(claim: Claim, statements: Sequence[Statement]) -> Evidence:
    outer = "rival" if claim.get("any_each") else "method"
    groups: dict[str, list[Evidence]] = {}
    for one in statements:
        groups.setdefault(getattr(one, outer), []).append(one.evidence)
    within = one_of if claim.get("any_each") else all_of
    among = one_of if claim.get("any") else all_of
    return among(within(group) for group in groups.values())


def _by_pair(statements: Sequence[Statement]) -> str:
    pairs: dict[tuple[str, str], list[Verdict]] = {}
    for one in statements:
        pairs.setdefault((one.method, one.rival), []).append(one.evidence.verdict)
    parts = []
    for (method, rival), words in pairs.items():
        yes, no = words.count("reproduced"), words.count("not reproduced")
        against = f" against {rival}" if rival else ""
        parts.append(f"{method}{against}: shown on {yes}, the contrary on {no}, open on {len(words) - yes - no}")
    return "; ".join(parts)
