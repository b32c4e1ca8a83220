"""The result of a gate as lines for a terminal, Markdown for a pull request, JSON, and JUnit XML for CI services."""

import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from xml.etree import ElementTree as Xml

from bench.counts import plural
from bench.gate.decide import Gate
from bench.gate.verdicts import MetricComparison, Verdict
from bench.json_values import without_nan
from bench.text_tables import cut, markdown_table

CHANGES: tuple[Verdict, ...] = ("missing", "regressed", "inconclusive", "improved", "not compared", "new")  # as listed
ORDER: tuple[Verdict, ...] = (*CHANGES[:4], "equivalent", *CHANGES[4:], "identical")  # as counted
MOST_LINES = 40  # of inconclusive rows
WIDTH, INDENT = 110, "    "  # of notes below their row


def summary(gate: Gate, *, strict: bool = False) -> str:
    """Return the outcome in one line."""
    failed = gate.failing(strict=strict)
    if gate.identical and not failed:
        places = len({row.place for row in gate.rows})
        return (
            f"passed: all {gate.values} values of suite {gate.suite} ({places} methods on datasets) are bit-identical "
            "to the baseline; no tests were needed"
        )
    counts = gate.counts()
    each = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict])
    return f"{'FAILED' if failed else 'passed'}: suite {gate.suite}: {each}"


def gate_lines(gate: Gate, *, strict: bool = False) -> Iterator[str]:
    """Yield the report for a terminal of 100 columns or a little more."""
    changes = _changes(gate)
    inconclusive = [row for row in changes if row.verdict == "inconclusive"]
    hidden = {id(row) for row in inconclusive[MOST_LINES:]}
    if changes:
        yield _line("verdict", "dataset", "method", "metric", "n", "baseline", "now", "change", "p")
    for row in changes:
        if id(row) not in hidden:
            yield _line(*_cells(row))
            yield from textwrap.wrap(row.note, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
    if hidden:
        yield f"    and {len(hidden)} more inconclusive comparisons; --json lists all"
    yield from _conditions(gate)
    yield summary(gate, strict=strict)


def _line(verdict: str, dataset: str, method: str, metric: str, pairs: str, *numbers: str) -> str:
    words = f"{verdict:<13}{cut(dataset, 12):<12} {cut(method, 15):<15} {cut(metric, 16):<16}"
    return words + f"{pairs:>4}" + "".join(f"{each:>11}" for each in numbers[:-1]) + f"{numbers[-1]:>9}"


def _conditions(gate: Gate) -> Iterator[str]:
    """Yield the versions, environments and tests behind the verdicts."""
    codes = ", ".join(code or "unknown" for code in gate.codes) or "unknown"
    yield f"code: {gate.baseline_code} in the baseline, now {codes}"
    for line in gate.plugins:
        yield f"plug-in: {line}"
    for line in gate.environment:
        yield f"environment: {line}"
    if gate.environment:
        effect = "no value changed" if gate.identical else "values may change by rounding, so the tests decide"
        yield f"environment: it differs; {effect}"
    for note in gate.notes:
        yield f"note: {note}"
    tested = sum(not math.isnan(row.p_worse) for row in gate.rows)
    if tested:
        yield (
            f"{plural(tested, 'comparison')} tested (paired t over {plural(gate.seeds, 'seed')}, Holm); the chance "
            f"of any false alarm of these tests is at most {100 * gate.rules.alpha:g} %"
        )
    if gate.work is not None:
        yield gate.work.text()


def markdown(gate: Gate, *, strict: bool = False) -> str:
    """Return the report as Markdown: failures first, other changes folded."""
    failed = gate.failing(strict=strict)
    lines = [f"### {'❌' if failed else '✅'} uqbench gate: {_escape(summary(gate, strict=strict))}", ""]
    if failed:
        lines += [*_table(failed), ""]
    rest = [row for row in _changes(gate) if row not in failed]
    if rest:
        lines += ["<details><summary>Other changes</summary>", "", *_table(rest), "", "</details>", ""]
    lines += [f"- {_escape(line)}" for line in _conditions(gate)]
    return "\n".join(lines) + "\n"


def _table(rows: list[MetricComparison]) -> list[str]:
    header = ("verdict", "dataset", "method", "metric", "seeds", "baseline", "now", "change", "p", "")
    cells = [[_escape(text) for text in (*_cells(row), row.note)] for row in rows]
    return markdown_table(header, cells, numbers=range(4, 9))


def _cells(row: MetricComparison) -> tuple[str, str, str, str, str, str, str, str, str]:
    names = (row.verdict, row.dataset, row.method, row.metric, str(row.pairs or "–"))
    return (*names, number(row.baseline), number(row.now), number(row.difference, sign=True), _p(row))


def _changes(gate: Gate) -> list[MetricComparison]:
    rows = [row for row in gate.rows if row.verdict in CHANGES]
    return sorted(rows, key=lambda row: (CHANGES.index(row.verdict), 0.0 if math.isnan(row.p_worse) else row.p_worse))


def sentence(row: MetricComparison) -> str:
    """Return one comparison as a sentence."""
    p = f", p {_p(row)}" if _p(row) != "–" else ""
    subject = f"{row.verdict}: {row.metric} of {row.method} on {row.dataset}"
    change = f": {number(row.baseline)} in the baseline, now {number(row.now)} over {plural(row.pairs, 'seed')}{p}"
    return subject + ("" if math.isnan(row.baseline) else change) + (f" ({row.note})" if row.note else "")


def number(value: float, *, sign: bool = False) -> str:
    """Return a number with four digits; a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:{'+' if sign else ''}.4g}"


def _p(row: MetricComparison) -> str:
    p = row.p_better_adjusted if row.worse_by < 0 else row.p_worse_adjusted
    return "–" if math.isnan(p) else "<0.0001" if p < 1e-4 else f"{p:.4f}"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def as_json(gate: Gate, *, strict: bool = False) -> str:
    """Return the whole result as JSON; NaN is null."""
    content = {
        "suite": gate.suite,
        "passed": not gate.failing(strict=strict),
        "strict": strict,
        "identical": gate.identical,
        "summary": summary(gate, strict=strict),
        "counts": dict(gate.counts()),
        **{name: getattr(gate, name) for name in ("seeds", "values")},
        **{name: getattr(gate.rules, name) for name in ("alpha", "equivalence_alpha")},
        "margins": {name: str(margin) for name, margin in gate.rules.margins.items()},
        **{name: getattr(gate, name) for name in ("baseline_code", "codes", "plugins", "environment", "notes")},
        "work": asdict(gate.work) if gate.work else None,
        "rows": [asdict(row) for row in gate.rows],
    }
    return json.dumps(without_nan(content), indent=2, allow_nan=False)


def junit(gate: Gate, *, strict: bool = False) -> str:
    """Return JUnit XML with one test case per comparison; a case fails where the gate does."""
    failed = {id(row) for row in gate.failing(strict=strict)}
    skipped = {id(row) for row in gate.rows if row.verdict in ("new", "not compared")}
    counts = {"tests": len(gate.rows), "failures": len(failed), "skipped": len(skipped), "errors": 0}
    attributes = {"name": f"uqbench gate {gate.suite}"} | {name: str(count) for name, count in counts.items()}
    root = Xml.Element("testsuites")
    suite = Xml.SubElement(root, "testsuite", attributes)
    for row in gate.rows:
        case = Xml.SubElement(suite, "testcase", classname=f"{gate.suite}.{row.dataset}.{row.method}", name=row.metric)
        if id(row) in failed:
            Xml.SubElement(case, "failure", message=sentence(row), type=row.verdict)
        elif id(row) in skipped:
            Xml.SubElement(case, "skipped", message=sentence(row))
        else:
            Xml.SubElement(case, "system-out").text = sentence(row)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"
