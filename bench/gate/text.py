"""A gate for people: lines for a terminal, and Markdown for a pull request."""

import math
from collections.abc import Iterator

from bench.gate.decide import Gate
from bench.gate.verdicts import Compared, Verdict
from bench.text_tables import cut, markdown_table

ORDER: tuple[Verdict, ...] = (
    "missing",
    "regressed",
    "inconclusive",
    "improved",
    "equivalent",
    "not compared",
    "new",
    "identical",
)
QUIET: tuple[Verdict, ...] = ("identical", "equivalent")  # counted, not listed
MOST_LINES = 40  # of inconclusive rows


def summary(made: Gate, *, strict: bool = False) -> str:
    """Return what became of the gate, in one line."""
    if made.identical and not made.failing(strict=strict):
        places = len({row.place for row in made.rows})
        return (
            f"passed: all {made.values} values of suite {made.suite} ({places} methods on datasets) are bit-identical "
            "to the baseline; no statistics were needed"
        )
    counts = made.counts()
    each = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict])
    return f"{'FAILED' if made.failing(strict=strict) else 'passed'}: suite {made.suite}: {each}"


def gate_lines(made: Gate, *, strict: bool = False) -> Iterator[str]:
    """Yield the report for a terminal of 100 columns or a little more."""
    shown = _shown(made)
    if shown:
        yield _line("verdict", "dataset", "method", "metric", "n", "baseline", "now", "change", "p")
    for row in shown:
        numbers = (number(row.baseline), number(row.now), number(row.difference, sign=True), _p(row))
        yield _line(row.verdict, row.dataset, row.method, row.metric, str(row.pairs or "–"), *numbers)
        if row.note:
            yield f"    {row.note}"
    left = sum(row.verdict == "inconclusive" for row in made.rows) - sum(row.verdict == "inconclusive" for row in shown)
    if left > 0:
        yield f"    and {left} more that are inconclusive; --json has them all"
    yield from about(made)
    yield summary(made, strict=strict)


def _line(verdict: str, dataset: str, method: str, metric: str, pairs: str, *numbers: str) -> str:
    words = f"{verdict:<13}{cut(dataset, 12):<12} {cut(method, 15):<15} {cut(metric, 16):<16}"
    return words + f"{pairs:>4}" + "".join(f"{each:>11}" for each in numbers[:-1]) + f"{numbers[-1]:>9}"


def about(made: Gate) -> Iterator[str]:
    """Yield what stands behind the verdicts."""
    codes = ", ".join(code or "unknown" for code in made.codes) or "unknown"
    yield f"code: {made.baseline_code} in the baseline, now {codes}"
    for line in made.environment:
        yield f"environment: {line}"
    if made.environment:
        drift = "yet no number moved" if made.identical else "numbers may drift, and statistics decide"
        yield f"environment: it differs; {drift}"
    for note in made.notes:
        yield f"note: {note}"
    tested = sum(not math.isnan(row.p_worse) for row in made.rows)
    if tested:
        yield (
            f"{tested} comparisons were tested (paired t over {made.seeds} seeds, Holm); the chance of any false alarm "
            f"is at most {100 * made.rules.alpha:g} %"
        )
    if made.work is not None:
        yield made.work.told()


def markdown(made: Gate, *, strict: bool = False) -> str:
    """Return the report as Markdown: what failed on top, the rest folded away."""
    bad = made.failing(strict=strict)
    lines = [f"### {'❌' if bad else '✅'} uqbench gate: {_escaped(summary(made, strict=strict))}", ""]
    if bad:
        lines += [*_table(bad), ""]
    rest = [row for row in _shown(made, every=True) if row not in bad]
    if rest:
        lines += ["<details><summary>Other changes</summary>", "", *_table(rest), "", "</details>", ""]
    lines += [f"- {_escaped(line)}" for line in about(made)]
    return "\n".join(lines) + "\n"


def _table(rows: list[Compared]) -> list[str]:
    cells = []
    for row in rows:
        words = [row.verdict, row.dataset, row.method, row.metric, str(row.pairs or "–"), number(row.baseline)]
        words += [number(row.now), number(row.difference, sign=True), _p(row), row.note]
        cells.append([_escaped(word) for word in words])
    header = ("verdict", "dataset", "method", "metric", "seeds", "baseline", "now", "change", "p", "")
    return markdown_table(header, cells, numbers=range(4, 9))


def _shown(made: Gate, *, every: bool = False) -> list[Compared]:
    rows = [row for row in made.rows if row.verdict not in QUIET]
    rows.sort(key=lambda row: (ORDER.index(row.verdict), row.p_worse if not math.isnan(row.p_worse) else 0.0))
    kept, undecided = [], 0
    for row in rows:
        undecided += row.verdict == "inconclusive"
        if every or row.verdict != "inconclusive" or undecided <= MOST_LINES:
            kept.append(row)
    return kept


def told(row: Compared) -> str:
    """Return one comparison in a sentence."""
    p = f", p {_p(row)}" if _p(row) != "–" else ""
    where = f"{row.verdict}: {row.metric} of {row.method} on {row.dataset}"
    change = f": {number(row.baseline)} in the baseline, now {number(row.now)} over {row.pairs} seeds{p}"
    return where + ("" if math.isnan(row.baseline) else change) + (f" ({row.note})" if row.note else "")


def number(value: float, *, sign: bool = False) -> str:
    """Return a number of four digits; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:{'+' if sign else ''}.4g}"


def _p(row: Compared) -> str:
    p = row.p_better_adjusted if row.worse_by < 0 else row.p_worse_adjusted
    return "–" if math.isnan(p) else "<0.0001" if p < 1e-4 else f"{p:.4f}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
