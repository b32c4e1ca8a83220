"""The MCNI paper beside our results: its tables, and every claim of its text with a verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.api import Block, Facts, Report, Reproduction, Results, Section, Table, Text, plural
from bench.reports._cell_warnings import warning_blocks
from bench.reports._paper_claims import VERDICTS
from bench.reports._paper_experiments import UNDECIDED, Found, JudgedClaim, find, judge_claims, reference
from bench.reports._paper_protocols import SOURCES, Protocol, choices, value_text
from bench.reports._paper_runs import reproductions
from bench.reports._predictions import has_curves
from bench.reports._words import decimals, with_spread

FIGURES = (
    ("Figure 1", "intervals on the toy function", "Predictive intervals", "toy"),
    ("Figure 2", "softmax outputs under growing noise", "Softmax under noise", "softmax"),
    ("Figure 3", "risk-coverage curves of Boston, Kin8nm and CIFAR-10", "Risk and coverage", "uci"),
)
CLAIMS = (
    "Claims of the paper and our verdicts. Reproduced: a test at 5 % shows it; not reproduced: a test shows the "
    "contrary, or equivalence where superiority is claimed; cannot be decided: neither. Under departures: our run "
    "differs from the protocol in stated points."
)


@dataclass(frozen=True)
class Paper(Report):
    """Reproduction of the paper from all suites of a page that hold one of its experiments."""

    order = 10

    def section(self, results: Results) -> Section | None:
        """Return None: the paper is about several suites together."""
        return None

    def overall(self, suites: Sequence[Results]) -> Section | None:
        """Return tables and claims, or None where no suite holds an experiment of the paper."""
        paper = reference()
        found = {name: find(name, suites) for name in paper["experiments"]}
        held = {name: one for name, one in found.items() if isinstance(one, Found)}
        judged = judge_claims(found, suites)
        if not any(one.found for one in judged):
            return None
        blocks: list[Block] = [
            Text(
                f"{paper['title']}. Every claim of its text, the test that decides it and what our runs say. The paper "
                "has one to ten repeats and no tests: a claim is reproduced here only where a test shows it, not "
                "reproduced where a test shows the contrary (or equivalence, where superiority is claimed), and cannot "
                f"be decided otherwise. {_families(judged)}"
            ),
            Facts(_counts(judged)),
            *map(Text, _comparisons(held, judged)),
            *(block for one in held.values() for block in warning_blocks(one.held.results)),
            *_claims(judged),
        ]
        tables = [table for table in paper["tables"] if _is_comparable(table, held.get(table["experiment"]))]
        blocks += [_table(table, held[table["experiment"]]) for table in tables]
        blocks += [_rules(paper["experiments"][name], one.protocol) for name, one in held.items()]
        figures = [
            (figure, what, f'section "{section}" of suite {held[name].held.results.suite}')
            for figure, what, section, name in FIGURES
            if name in held and has_curves(held[name].held.results)
        ]
        if figures:
            data = pd.DataFrame(figures, columns=["figure", "what it shows", "ours"])
            blocks.append(Table("Figures of the paper, and ours", data, name="figures"))
        return Section("Paper reproduction", blocks)

    def reproductions(self) -> Mapping[str, Reproduction]:
        """Return the experiments that 'uqbench reproduce' repeats."""
        return reproductions()

    def verdicts(self, suites: Sequence[Results]) -> Sequence[str]:
        """Return with what the suites were compared, and the verdict on each claim that they can decide."""
        found = {name: find(name, suites) for name in reference()["experiments"]}
        held = {name: one for name, one in found.items() if isinstance(one, Found)}
        judged = judge_claims(found, suites)
        held_claims = [one for one in judged if one.found is not None and one.judged.verdict != "no experiment"]
        return [*_comparisons(held, judged), *map(_line, held_claims)]


def _line(one: JudgedClaim) -> str:
    """Return a verdict as it is printed; of a claim that the suite has no cells for, what is missing."""
    why = f"; {one.judged.needs}" if one.judged.verdict == "not run" else ""
    return f"{one.verdict}: {one.claim['text']} ({one.claim['place']}{why})"


def _families(judged: Sequence[JudgedClaim]) -> str:
    """Return what the tests of all claims add up to."""
    tested = sum(one.judged.verdict not in UNDECIDED for one in judged)
    if not tested:
        return "No claim was tested here."
    return (
        "Each claim is tested at 5 %, its parts are combined by partial conjunction (Benjamini and Heller 2008): of "
        f"{plural(tested, 'tested claim')}, up to {0.05 * tested:.2g} would be decided wrongly by chance."
    )


def _counts(judged: Sequence[JudgedClaim]) -> dict[str, str]:
    counts = {word: sum(one.judged.verdict == word for one in judged) for word in VERDICTS}
    return {"claims": str(len(judged)), **{word: str(count) for word, count in counts.items()}}


def _comparisons(held: Mapping[str, Found], judged: Sequence[JudgedClaim]) -> list[str]:
    """Return what experiments are compared with, and the sweeps that decide single claims, one text each."""
    found = [(name, one) for name, one in held.items()]
    found += [(one.claim["experiment"], one.found) for one in judged if one.found is not None]
    experiments = reference()["experiments"]
    return list(dict.fromkeys(_compared_with(experiments[name], one) for name, one in found))


def _compared_with(experiment: Mapping[str, Any], found: Found) -> str:
    """Return which results an experiment is compared with, under which protocol, and how they depart from it."""
    held, seeds = found.held, found.held.cells["seed"].nunique()
    return (
        f"{experiment['place']} ({experiment['about']}): compared with suite {held.results.suite} on "
        f"{', '.join(held.datasets)}, {plural(seeds, 'seed')}, under the protocol of {SOURCES[found.protocol.source]} "
        f"({choices(found.protocol)}). Departures: {'; '.join(found.departures) or 'none'}."
    )


def _rules(experiment: Mapping[str, Any], protocol: Protocol) -> Table:
    """Return every option of a protocol with its source."""
    rows = [
        {
            "option": path,
            "value": value_text(path, rule.value),
            "stated": "yes" if rule.stated else "no: our choice",
            "where, or why": rule.reason,
        }
        for path, rule in protocol.rules.items()
    ]
    rows += [
        {"option": path, "value": "any", "stated": "irrelevant", "where, or why": why}
        for path, why in protocol.irrelevant.items()
    ]
    name = f"protocol-{experiment['place']}-{protocol.source}"
    return Table(f"{experiment['place']} by {SOURCES[protocol.source]}", pd.DataFrame(rows), name=name, folded=True)


def _claims(judged: Sequence[JudgedClaim]) -> list[Block]:
    """Return the claims that some suite can decide, and, folded, those that none can."""
    spoken, silent = ([one for one in judged if (one.found is not None) == known] for known in (True, False))
    tables: list[Block] = [Table("Claims of the paper", _claim_rows(spoken), name="claims", paper_caption=CLAIMS)]
    if silent:
        caption = "Claims that no suite of this page can decide"
        paper = f"{caption}. {CLAIMS}"
        tables.append(Table(caption, _claim_rows(silent), name="claims-not-run", folded=True, paper_caption=paper))
    return tables


def _claim_rows(judged: Sequence[JudgedClaim]) -> pd.DataFrame:
    rows = [
        {
            "claim": one.claim["text"],
            "verdict": one.verdict,
            "our numbers": one.judged.numbers,
            "decided by": one.judged.test,
            "seeds it would take, or why not": one.judged.needs or "–",
            "place": one.claim["place"],
        }
        for one in judged
    ]
    return pd.DataFrame(rows)


def _is_comparable(table: Mapping[str, Any], found: Found | None) -> bool:
    """Return whether a table is shown: what the public code has stored, only beside runs under its protocol."""
    return found is not None and table.get("source") in (None, found.protocol.source)


def _table(table: Mapping[str, Any], found: Found) -> Table:
    """Return the paper's values beside ours; another dataset than the paper's is shown under its own name."""
    source = "public code" if table.get("source") == "code" else "paper"
    frame, cells = found.held.results.frame, found.held.results.cells
    repeats = cells[cells["status"] == "ok"].groupby(["dataset", "method"]).size()
    groups = frame.groupby(["dataset", "method", "metric"])["value"]
    means, spreads, counts = groups.mean(), groups.std(), groups.size()
    rows, numbers = [], []
    for dataset, method, metric, *value in table["values"]:
        base, at, condition = metric.partition("@")
        paper_mean, paper_std = value[0], value[1] if len(value) > 1 else math.nan
        place = found.place(dataset)
        line = {"dataset": dataset, "method": method, "metric": metric, source: _pair(paper_mean, paper_std)}
        line |= {"our dataset": found.run.plugin(place)} if found.run.plugin(place) != dataset else {}
        for ours in map(found.metric, table["ours"][base]):
            key = (place, method, f"{ours}{at}{condition}")
            mean, spread = means.get(key, math.nan), spreads.get(key, math.nan)
            count = int(counts.get(key, 0))
            line[f"ours, {ours}"] = _ours(mean, spread) + without_all(count, int(repeats.get(key[:2], 0)))
            own = (found.run.plugin(place), key[2], mean, spread, count)
            numbers.append((dataset, method, metric, paper_mean, paper_std, *own))
        rows.append(line)
    columns = ["dataset", "method", "metric", "paper_mean", "paper_standard_deviation"]
    columns += ["our_dataset", "our_metric", "our_mean", "our_standard_deviation", "our_seeds"]
    data = pd.DataFrame(rows)
    ours_columns = [c for c in data.columns if c.startswith("ours")]
    data[ours_columns] = data[ours_columns].fillna("–")  # a row has columns of its own metric alone
    data = data[[c for c in data.columns if c not in ours_columns or (data[c] != "–").any()]]
    tidy, name = pd.DataFrame(numbers, columns=columns), table["name"]
    caption = f"{name}: {table['title']}"
    paper = (
        f"{caption}, as the {source} states it and as we measured it: mean ± standard deviation over repeats. A column "
        '"ours" names the metric of ours that is computed as the value beside it. A dash: without a value.'
    )
    return Table(caption, data, name=f"paper-{name}", numbers=tidy, folded=len(rows) > 12, paper_caption=paper)


def without_all(count: int, repeats: int) -> str:
    """Return of how many repeats a mean is, where some have no value: an image never flips, a variance is 0."""
    return f" ({count} of {repeats} repeats)" if 0 < count < repeats else ""


def _ours(mean: float, spread: float) -> str:
    """Return a mean of ours with two digits of its deviation, and as many decimals itself."""
    return "–" if math.isnan(mean) else with_spread(mean, spread, decimals([spread], [mean]))


def _pair(mean: float, spread: float) -> str:
    """Return numbers of the paper with the digits that it prints."""
    if math.isnan(mean):
        return "–"
    return f"{mean:.4g}" if math.isnan(spread) else f"{mean:.4g} ± {spread:.2g}"
