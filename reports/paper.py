"""The MCNI paper beside our results: its tables, and every claim of its text with a verdict."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

from bench.api import Block, CellSpec, Facts, Report, Results, Section, Table, Text, read_spec
from bench.reports._paper_claims import SETTINGS, Held, Judged, judge
from bench.reports._words import named, plural

PARTS = ("experiments", "tables", "claims")  # of the facts, one file each
FIGURES = (
    ("Figure 1", "intervals on the toy function", "Predictive intervals", "toy"),
    ("Figure 2", "softmax outputs under growing noise", "Softmax under noise", "softmax"),
    ("Figure 3", "risk-coverage curves of Boston, Kin8nm and CIFAR-10", "Risk and coverage", "uci"),
)


@dataclass(frozen=True)
class Paper(Report):
    """Reproduction of the paper from all suites of a page that hold one of its experiments."""

    order = 2

    def section(self, results: Results) -> Section | None:
        """Return None: the paper is about several suites together."""
        return None

    def overall(self, suites: Sequence[Results]) -> Section | None:
        """Return tables and claims, or None where no suite holds an experiment of the paper."""
        paper = reference()
        found = {name: _found(experiment, suites) for name, experiment in paper["experiments"].items()}
        held = {name: one for name, (one, _) in found.items() if one is not None}
        if not held:
            return None
        judged = [(claim, _judged(claim, found, paper)) for claim in paper["claims"]]
        blocks: list[Block] = [
            Text(
                f"{paper['title']}. Every claim of its text, the test that decides it and what our runs say. The paper "
                "has five repeats and no tests: a claim is reproduced here only where a test shows it, not reproduced "
                "where a test shows the contrary (or equivalence, where superiority is claimed), and inconclusive in "
                f"between. {_families(judged)}"
            ),
            Facts(_counts([one for _, one in judged])),
            *(Text(_compared_with(name, paper["experiments"][name], *found[name])) for name in held),
            *_claims(judged, held),
        ]
        blocks += [_table(table, held[table["experiment"]]) for table in paper["tables"] if table["experiment"] in held]
        figures = [
            (figure, what, f'section "{section}" of suite {held[name].results.suite}')
            for figure, what, section, name in FIGURES
            if name in held
        ]
        if figures:
            data = pd.DataFrame(figures, columns=["figure", "what it shows", "ours"])
            blocks.append(Table("Figures of the paper, and ours", data, name="figures"))
        return Section("Paper reproduction", blocks)


def _families(judged: Sequence[tuple[Mapping[str, Any], Judged]]) -> str:
    """Return what the tests of all claims add up to."""
    tested = sum(one.verdict != "not comparable" for _, one in judged)
    return (
        f"Each claim is a family of tests by itself, with Holm's correction at 5 %: of {plural(tested, 'claim')} that "
        f"can be tested, up to {0.05 * tested:.2g} would be decided by chance if no method differed from another."
    )


@cache
def reference() -> Mapping[str, Any]:
    """Return what the paper does, reports and claims: its title, experiments, tables and claims."""
    texts = [(files("bench.reports") / f"_paper_{part}.toml").read_text("utf-8") for part in PARTS]
    return {key: value for text in texts for key, value in tomllib.loads(text).items()}


def _found(experiment: Mapping[str, Any], suites: Sequence[Results]) -> tuple[Held | None, list[str]]:
    """Return the results that come nearest to an experiment and how they depart from it, or None and why not."""
    candidates, reasons = [], []
    for results in suites:
        frame = results.frame
        rows = named(frame, lambda metric, _: metric in experiment["metrics"])
        known = set(rows["dataset"].unique())
        datasets = tuple(d for d in experiment["datasets"] or sorted(known) if d in known)
        if not datasets:
            continue
        held = Held(results, datasets, replace(SETTINGS, test_share=0.0) if experiment.get("independent") else SETTINGS)
        broken = _differences(held, experiment["must"])
        if broken:
            reasons.append(f"suite {results.suite} is another experiment ({'; '.join(broken)})")
            continue
        candidates.append((held, _differences(held, experiment["protocol"])))
    if not candidates:
        return None, reasons
    return min(candidates, key=lambda pair: (len(pair[1]), -len(pair[0].datasets)))


def _differences(held: Held, wanted: Mapping[str, Any]) -> list[str]:
    departures: dict[str, None] = {}
    specs = held.cells.dropna(subset="spec").drop_duplicates("dataset")["spec"]
    for spec in map(read_spec, specs):
        for path, value in wanted.items():
            ours = _value(spec, path)
            if ours != value:
                departures[f"{path} is {_shorthand(path, ours)}, in the paper {_shorthand(path, value)}"] = None
    return list(departures)


def _shorthand(path: str, value: Any) -> str:
    return "all" if path.endswith(".rows") and value == 0 else str(value)


def _value(spec: CellSpec, path: str) -> Any:
    first, *rest = path.split(".")
    if first == "dataset":
        return spec.dataset.options.get(rest[0])
    if first == "network":
        network = spec.protocol.network
        return {"kind": network.name, **network.options}.get(rest[0])
    value: Any = spec.plain()["protocol"]
    for part in (first, *rest):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _judged(
    claim: Mapping[str, Any], found: Mapping[str, tuple[Held | None, list[str]]], paper: Mapping[str, Any]
) -> Judged:
    held, reasons = found[claim["experiment"]]
    if held is None and claim["kind"] != "none":
        run = paper["experiments"][claim["experiment"]]["run"]
        return Judged("not comparable", "none", "–", f"{'; '.join([*reasons, 'not run'])}: {run}")
    return judge(claim, held) if held is not None else Judged("not comparable", "none", "–", claim["why"])


def _counts(judged: Sequence[Judged]) -> dict[str, str]:
    words = ("reproduced", "not reproduced", "inconclusive", "not comparable")
    return {"claims": str(len(judged)), **{word: str(sum(one.verdict == word for one in judged)) for word in words}}


def _compared_with(name: str, experiment: Mapping[str, Any], held: Held | None, departures: Sequence[str]) -> str:
    assert held is not None
    seeds = held.cells["seed"].nunique()
    text = (
        f"{experiment['place']} ({experiment['about']}): compared with suite {held.results.suite}, "
        f"{plural(len(held.datasets), 'dataset')}, {plural(seeds, 'seed')}."
    )
    missing = [dataset for dataset in experiment["datasets"] if dataset not in held.datasets]
    if missing and name == "uci":
        departures = [*departures, f"without {', '.join(missing)}"]
    if not departures:
        return f"{text} No departure from its stated protocol."
    return f"{text} Departures: {'; '.join(departures)}."


def _claims(judged: Sequence[tuple[Mapping[str, Any], Judged]], held: Mapping[str, Held]) -> list[Block]:
    """Return the claims that some suite can decide, and, folded, those that none can."""
    spoken = [(claim, one) for claim, one in judged if claim["experiment"] in held]
    silent = [(claim, one) for claim, one in judged if claim["experiment"] not in held]
    tables: list[Block] = [_claim_table("Claims of the paper", spoken, "claims", False)]
    if silent:
        tables.append(_claim_table("Claims that no suite of this page can decide", silent, "claims-not-run", True))
    return tables


def _claim_table(caption: str, judged: Sequence[tuple[Mapping[str, Any], Judged]], name: str, folded: bool) -> Table:
    rows = [
        {
            "claim": claim["text"],
            "verdict": one.verdict,
            "our numbers": one.numbers,
            "decided by": one.test,
            "seeds it would take, or why not": one.needs or "–",
            "place": claim["place"],
        }
        for claim, one in judged
    ]
    return Table(caption, pd.DataFrame(rows), name=name, folded=folded)


def _table(table: Mapping[str, Any], held: Held) -> Table:
    frame = held.results.frame
    groups = frame.groupby(["dataset", "method", "metric"])["value"]
    means, spreads, counts = groups.mean(), groups.std(), groups.size()
    rows, numbers = [], []
    for dataset, method, metric, *value in table["values"]:
        base, at, condition = metric.partition("@")
        paper_mean, paper_std = value[0], value[1] if len(value) > 1 else math.nan
        line = {"dataset": dataset, "method": method, "metric": metric, "paper": _pair(paper_mean, paper_std)}
        place = dataset if dataset in held.datasets or len(held.datasets) != 1 else held.datasets[0]
        for ours in table["ours"][base]:
            key = (place, method, f"{ours}{at}{condition}")
            mean, spread = means.get(key, math.nan), spreads.get(key, math.nan)
            line[f"ours, {ours}"] = _pair(mean, spread)
            numbers.append((place, method, metric, paper_mean, paper_std, key[2], mean, spread, counts.get(key, 0)))
        rows.append(line)
    columns = ["dataset", "method", "metric", "paper_mean", "paper_standard_deviation"]
    columns += ["our_metric", "our_mean", "our_standard_deviation", "our_seeds"]
    data = pd.DataFrame(rows)
    data = data[[c for c in data.columns if not c.startswith("ours") or (data[c] != "–").any()]]
    tidy, name = pd.DataFrame(numbers, columns=columns), table["name"]
    caption = f"{name}: {table['title']}"
    return Table(caption, data, name=f"paper-{name}", numbers=tidy, folded=len(rows) > 12)


def _pair(mean: float, spread: float) -> str:
    if math.isnan(mean):
        return "–"
    return f"{mean:.4g}" if math.isnan(spread) else f"{mean:.4g} ± {spread:.2g}"
