"""Writes docs/paper.md: the MCNI paper experiment by experiment, by its text, by public code, and by our results.

`python -m tools.paper_page docs/paper.md`. Everything comes from the repository: protocols, values and claims from the
facts in reports/, remarks from tools/paper_notes.toml, results from docs/results/paper (tools/kept_results.py).
"""

import hashlib
import json
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.counts import plural
from bench.reports._paper_claims import Judged
from bench.reports._paper_experiments import UNDECIDED, Found, JudgedClaim, find, find_sweep, judge_claims, reference
from bench.reports._paper_protocols import SOURCES, Protocol, Rule, Source, protocols, value_text
from bench.reports.paper import without_all
from bench.text_tables import markdown_table
from tools.kept_results import KeptResults, read
from tools.pages import write_page

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "paper"
LONG = 12  # rows of a table that is folded
FEWEST = 40  # repeats whose middle 95 % is not just all of them
NOT_JUDGED = ("not run yet", "no experiment decides it")
SELECTIVE = "selective"  # a section of its own, from runs of two experiments


@cache
def notes() -> Mapping[str, Any]:
    """Return what the page says beside protocols, values and verdicts: an introduction, and sections in their order."""
    return tomllib.loads((ROOT / "tools" / "paper_notes.toml").read_text("utf-8"))


# By the text of the claim and the protocol that the run is nearest to.
Verdicts = Mapping[tuple[str, Source], JudgedClaim]


def page(folder: Path = RESULTS) -> str:
    """Return the whole page."""
    kept = [read(path) for path in sorted(folder.glob("*.json"))]
    runs = {name: runs_of(name, kept) for name in reference()["experiments"]}
    verdicts = judged(runs, kept)
    parts = [notes()["introduction"].format(title=reference()["title"]).strip(), *_summary(verdicts)]
    for name in notes()["sections"]:
        parts += _selective(verdicts) if name == SELECTIVE else _experiment(name, runs[name], verdicts)
    return "\n\n".join(parts)


def runs_of(name: str, kept: Sequence[KeptResults]) -> dict[Source, Found]:
    """Return the run of an experiment that departs least from each protocol; of equal ones, that of its own suite."""
    every = [one for results in kept if isinstance(one := find(name, [results]), Found)]
    every.sort(key=lambda one: (len(one.departures), one.held.results.suite not in one.protocol.run.split()))
    return {source: one for source in SOURCES for one in every[::-1] if one.protocol.source == source}


def _summary(verdicts: Verdicts) -> Iterator[str]:
    yield "## Verdicts at a glance"
    rows = []
    for section, about in notes()["sections"].items():
        row = [f"[{about['title']}](#{_anchor(about['title'])})"]
        for source in SOURCES:
            if section != SELECTIVE and source not in reference()["experiments"][section]:
                row.append("–")
                continue
            words = [_word(claim, source, verdicts) for claim in _claims(section)]
            counts = {word: words.count(word) for word in sorted(set(words), key=_order)}
            row.append("<br>".join(f"{count} {word}" for word, count in counts.items()))
        rows.append(row)
    yield "\n".join(markdown_table(["claims on", *(f"{source} protocol" for source in SOURCES)], rows))


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _order(word: str) -> tuple[int, str]:
    known = ("reproduced", "not reproduced", "cannot be decided", "inconclusive")
    return (next((i for i, each in enumerate(known) if word.startswith(each)), len(known)), word)


def _claims(section: str) -> Iterator[Mapping[str, Any]]:
    """Yield the claims that a section lists: those on the risk-coverage figure have their own."""
    for claim in reference()["claims"]:
        selective = "Fig. 3" in claim["place"] or "selective" in claim["text"]
        if (section == SELECTIVE) == selective and section in (SELECTIVE, claim["experiment"]):
            yield claim


def judged(runs: Mapping[str, Mapping[Source, Found]], kept: Sequence[KeptResults]) -> Verdicts:
    """Return the judgements by the kept values or, where it takes arrays or long, as they were kept."""
    verdicts: dict[tuple[str, Source], JudgedClaim] = {}
    for source in SOURCES:
        found: dict[str, Found | list[str]] = {name: own.get(source, []) for name, own in runs.items()}
        for one in judge_claims(found, []):
            if one.found is not None:
                undecided = one.judged.verdict in UNDECIDED
                verdicts[one.claim["text"], source] = as_kept(one.claim, one.found) or one if undecided else one
    for claim in reference()["claims"]:
        sweep = find_sweep(claim, kept) if "levels" in claim else None
        if isinstance(sweep, Found) and (known := as_kept(claim, sweep)) is not None:
            verdicts[claim["text"], sweep.protocol.source] = known
    return verdicts


def as_kept(claim: Mapping[str, Any], found: Found) -> JudgedClaim | None:
    """Return a judgement as it was given when the results were kept; None where none was."""
    results = found.held.results
    assert isinstance(results, KeptResults)
    before = results.content["verdicts"].get(claim["text"])
    parts = {field.name: before[field.name] for field in fields(Judged)} if before else None
    return None if parts is None else JudgedClaim(claim, found, Judged(**parts))


def digest(claim: Mapping[str, Any]) -> str:
    """Return a short hash of how a claim is decided: a kept verdict holds for this form of it."""
    content = {key: value for key, value in claim.items() if key not in ("text", "place")}
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=4).hexdigest()


def _word(claim: Mapping[str, Any], source: Source, verdicts: Verdicts) -> str:
    if claim["kind"] == "none":
        return "no experiment decides it"
    one = verdicts.get((claim["text"], source))
    return "not run yet" if one is None or one.verdict == "not run" else one.verdict


def _experiment(name: str, found: Mapping[Source, Found], verdicts: Verdicts) -> Iterator[str]:
    experiment, about = reference()["experiments"][name], notes()["sections"][name]
    yield f"## {about['title']}"
    yield f"{experiment['place']}: {experiment['about']}."
    yield _notes(about["notes"])
    known = {each.source: each for each in protocols(reference(), name)}
    if len(known) > 1:
        yield from _protocols(known["text"], known["code"])
    yield "\n".join(_run(source, protocol, found.get(source)) for source, protocol in known.items())
    for table in reference()["tables"]:
        if table["experiment"] == name and found:
            yield from _values(table, found)
    yield from _verdicts(list(_claims(name)), verdicts)
    if "details" in about:
        yield f"More: [{about['details']}]({about['details']})."


def _selective(verdicts: Verdicts) -> Iterator[str]:
    about = notes()["sections"][SELECTIVE]
    yield f"## {about['title']}"
    yield "Section V-D, Figure 3: risk-coverage curves of Boston, Kin8nm and CIFAR-10, from the runs above."
    yield _notes(about["notes"])
    yield from _verdicts(list(_claims(SELECTIVE)), verdicts)


def _notes(rows: Sequence[Mapping[str, str]]) -> str:
    cells = [[each["about"], each["text"], each["code"], each["ours"]] for each in rows]
    return "\n".join(markdown_table(["", "the text", "the public code", "here"], cells))


def _protocols(text: Protocol, code: Protocol) -> Iterator[str]:
    """Yield the options in which the two protocols differ."""
    differ, same = [], 0
    for path in dict.fromkeys((*text.rules, *code.rules)):
        both = text.rules.get(path), code.rules.get(path)
        values = [None if rule is None else rule.value for rule in both]
        if values[0] == values[1]:
            same += 1
        else:
            differ.append([f"`{path}`", *(_rule(path, rule) for rule in both), both[1].reason if both[1] else "–"])
    yield (
        f"Options in which our suites for the two protocols differ ({same} more are the same; *open* is what the "
        "source leaves open, with our choice; – is not used):"
    )
    yield _folded(["option", "text", "public code", "where in the code, or why"], differ, f"{len(differ)} options")


def _rule(path: str, rule: Rule | None) -> str:
    if rule is None:
        return "–"
    return f"{'' if rule.stated else 'open: '}{value_text(path, rule.value)}"


def _run(source: Source, protocol: Protocol, found: Found | None) -> str:
    start = f"- **{source.capitalize()} protocol**: "
    if found is None:
        return f"{start}not run yet: `{protocol.run}`."
    results = found.held.results
    assert isinstance(results, KeptResults)
    repeats = found.held.cells.groupby(["dataset", "method"])["seed"].nunique()
    least, most = int(repeats.min()), int(repeats.max())
    count = plural(most, "repeat") if least == most else f"{least} to {plural(most, 'repeat')}"
    device, code = (results.content["environment"].get(key, "unknown") for key in ("device_name", "code"))
    return (
        f"{start}`{results.content['command']}`; {count}; device {device}, code {code}. "
        f"Departures: {'; '.join(found.departures) or 'none'}."
    )


def _values(table: Mapping[str, Any], found: Mapping[Source, Found]) -> Iterator[str]:
    """Yield the values of a source beside ours."""
    of_code = table.get("source") == "code"
    shown = {source: one for source, one in found.items() if source == "code" or not of_code}
    if not shown:
        return
    header = ["dataset", "method", "metric", "public code" if of_code else "paper"]
    columns = [(s, j) for s in shown for j in range(max(map(len, table["ours"].values())))]
    ours = {(s, j, base): shown[s].metric(names[j]) for base, names in table["ours"].items() for s, j in columns}
    for s, j in columns:
        others = {metric for (*place, base), metric in ours.items() if place == [s, j] and metric != base}
        header.append(f"{s} protocol{''.join(f', {metric}' for metric in sorted(others))}")
    rows, filled = [], dict.fromkeys(columns, False)
    for dataset, method, metric, *value in table["values"]:
        base, at, condition = metric.partition("@")
        row = [dataset, method, metric, _pair(*value)]
        for s, j in columns:
            one = _ours_of(shown[s], dataset, method, f"{ours[s, j, base]}{at}{condition}")
            filled[s, j] |= one is not None
            row.append("–" if one is None else _spread(one, value[0]) if of_code else _pair(*_mean(one)))
            row[-1] += "" if one is None else without_all(len(one), _repeats(shown[s], dataset, method))
        rows.append(row)
    if not any(filled.values()):
        return
    if of_code:
        rows = [row for row in rows if set(row[4:]) != {"–"}]
    first = 0 if len({row[0] for row in rows}) > 1 else 1  # one dataset needs no column
    keep = [*range(first, 4), *(4 + i for i, column in enumerate(columns) if filled[column])]
    yield f"{table['name']}. {table['title']}:"
    yield _folded([header[i] for i in keep], [[row[i] for i in keep] for row in rows], table["name"])


def _ours_of(found: Found, dataset: str, method: str, metric: str) -> pd.Series | None:
    frame, place = found.held.results.frame, found.place(dataset)
    rows = frame[(frame["dataset"] == place) & (frame["method"] == method) & (frame["metric"] == metric)]
    return rows["value"] if len(rows) else None


def _repeats(found: Found, dataset: str, method: str) -> int:
    cells = found.held.cells
    return int(((cells["dataset"] == found.place(dataset)) & (cells["method"] == method)).sum())


def _mean(values: pd.Series) -> tuple[float, float]:
    return float(values.mean()), float(values.std())


def _pair(mean: float, spread: float = math.nan) -> str:
    text = f"{mean:,.0f}" if abs(mean) >= 1e4 else f"{mean:.4g}"
    return text if math.isnan(spread) else f"{text} ± {spread:.2g}"


def _spread(values: pd.Series, theirs: float) -> str:
    """Return our mean, and of many repeats where the middle 95 % are and whether one value of others is there."""
    if len(values) < FEWEST:
        return _pair(*_mean(values))
    low, high = np.quantile(values, [0.025, 0.975])
    inside = "inside" if low <= theirs <= high else "outside"
    return f"{_pair(*_mean(values))}; middle 95 %: {low:.4g} to {high:.4g}, {inside}"


def _verdicts(claims: Sequence[Mapping[str, Any]], verdicts: Verdicts) -> Iterator[str]:
    """Yield the verdicts, and, folded, the numbers that they were decided by."""
    pairs = [(claim, source) for claim in claims for source in SOURCES]
    given = [(c, s, verdicts[c["text"], s].judged) for c, s in pairs if _word(c, s, verdicts) not in NOT_JUDGED]
    names = {claim["experiment"] for claim in claims}
    sources = [source for source in SOURCES if any(source in reference()["experiments"][name] for name in names)]
    rows = [[c["text"], c["place"], *(_word(c, source, verdicts) for source in sources)] for c in claims]
    yield "\n".join(markdown_table(["claim", "place", *(f"{source} protocol" for source in sources)], rows))
    if given:
        header = ["claim", "protocol", "our numbers", "decided by", "what would decide it"]
        numbers = [[c["text"], source, one.numbers, one.test, one.needs or "–"] for c, source, one in given]
        yield _folded(header, numbers, "Numbers and tests behind these verdicts", always=True)


def _folded(header: Sequence[str], rows: Sequence[Sequence[str]], name: str, always: bool = False) -> str:
    table = "\n".join(markdown_table(header, rows))
    if len(rows) <= LONG and not always:
        return table
    return f"<details><summary>{name}</summary>\n\n{table}\n\n</details>"


if __name__ == "__main__":
    write_page(__doc__, page)
