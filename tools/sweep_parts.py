"""The generated parts of docs/results/toy-sweep.md: what the report's section on sensitivity to noise levels shows."""

from collections.abc import Sequence
from typing import Any

from bench.api import Table
from bench.reports._trade_off import OWN, RANGE
from bench.text_tables import markdown_table
from tools.findings import Exports, probability

TOY, UCI = "toy-sweep", "uci-sweep"
DROPOUT, FIXED, LEARNED = "mc-dropout", "mcni-fixed", "mcni-learned"
METRICS = {"picp": "coverage", "winkler": "Winkler score", "crps": "CRPS"}
Row = dict[str, Any]


def rows_of(exports: Exports, suite: str, name: str) -> list[Row]:
    """Return the rows of a table of the section, with numbers where it has them."""
    blocks = exports.section(suite, "sensitivity").blocks
    (table,) = (block for block in blocks if isinstance(block, Table) and block.name == name)
    frame = table.data if table.numbers is None else table.numbers
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def at_widths(exports: Exports, suite: str, dataset: str, method: str) -> dict[str, dict[str, Row]]:
    """Return a method minus dropout at equal widths, by width (in words) and metric."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows_of(exports, suite, f"equal-width-{dataset}-{method}"):
        found.setdefault(row["width"], {})[row["metric"]] = row
    return found


def levels_of(exports: Exports, method: str) -> dict[float, dict[str, float]]:
    """Return the means of every metric by the level of a method."""
    found: dict[float, dict[str, float]] = {}
    for row in rows_of(exports, TOY, "levels-toy"):
        if row["method"] == method:
            found.setdefault(row["level"], {})[row["metric"]] = row["mean"]
    return found


def difference(row: Row) -> str:
    """Return a difference with its interval."""
    return f"{row['difference']:+.3g} ({row['95 % low']:+.3g} to {row['95 % high']:+.3g})"


def verdict(row: Row) -> str:
    """Return what a comparison showed, and p."""
    word = row["verdict"] if row["verdict"] in ("better", "worse", "equivalent") else "no difference shown"
    return f"{word}, {probability(row['p'])}"


def listed(values: Sequence[str]) -> str:
    """Return values in a sentence: a, b and c."""
    return " and ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values)


def by_width(exports: Exports) -> str:
    """Return fixed noise minus dropout at equal widths."""
    found = at_widths(exports, TOY, "toy", FIXED)
    rows = []
    for width, own in found.items():
        cells = [f"{own['picp'][name]:.3f}" for name in ("mean", "reference")]
        for metric in METRICS:
            cells += [difference(own[metric]), verdict(own[metric])]
        rows.append([width, *cells])
    head = ["mean width", "coverage, MCNI (fixed)", "coverage, MC dropout"]
    head += [part for name in METRICS.values() for part in (f"{name}: difference", "")]
    tests = sum(len(own) for own in found.values())
    note = f"p: by Holm over the {tests} tests of this table; better is a higher coverage, a lower score, a lower CRPS."
    return "\n".join([*markdown_table(head, rows), "", note])


def which_widths(exports: Exports) -> str:
    """Return at which widths fixed noise was shown to be better or worse, and where the curves end."""
    found = at_widths(exports, TOY, "toy", FIXED)
    texts = []
    for metric, word in METRICS.items():
        places: dict[str, list[str]] = {"better": [], "worse": [], "no difference shown": []}
        for width, own in found.items():
            if width not in (RANGE, OWN):
                kind = own[metric]["verdict"]
                places[kind if kind in ("better", "worse") else "no difference shown"].append(width)
        parts = (f"{kind} at {listed(widths)}" for kind, widths in places.items() if widths)
        texts.append(f"by {word} {', '.join(parts)}")
    dropout, fixed = levels_of(exports, DROPOUT), levels_of(exports, FIXED)
    widest = max(dropout, key=lambda level: dropout[level]["mpiw"])
    most = [max(levels, key=lambda level: levels[level]["picp"]) for levels in (dropout, fixed)]
    return (
        f"Fixed noise against dropout at these mean widths: {'; '.join(texts)}. The widest bands of dropout are those "
        f"of a rate of {widest:g} (mean width {dropout[widest]['mpiw']:.2f}), and no rate covers more than "
        f"{dropout[most[0]]['picp']:.2f} (rate {most[0]:g}); fixed noise covers up to {fixed[most[1]]['picp']:.2f} "
        f"(alpha {most[1]:g})."
    )


def learned(exports: Exports) -> str:
    """Return where the bands of learned levels end, and how they compare with dropout at their widths."""
    widths = [own["mpiw"] for own in levels_of(exports, LEARNED).values()]
    rows = at_widths(exports, TOY, "toy", LEARNED)[OWN]
    texts = "; ".join(f"{word} {difference(rows[metric])}, {verdict(rows[metric])}" for metric, word in METRICS.items())
    return (
        f"Learned levels have no such curve: whatever they start from, the bands end at a mean width of "
        f"{min(widths):.2f} to {max(widths):.2f} (without a penalty). Against dropout at these widths: {texts}."
    )


def settings(exports: Exports) -> str:
    """Return how many settings of MCNI are narrower and cover more than one of dropout, and which."""
    rows = rows_of(exports, TOY, "settings-toy")
    fixed, dropout = levels_of(exports, FIXED), levels_of(exports, DROPOUT)
    both: dict[float, list[str]] = {}
    for level, own in fixed.items():
        for rate, other in dropout.items():
            if own["mpiw"] < other["mpiw"] and own["picp"] > other["picp"]:
                both.setdefault(level, []).append(f"{rate:g}")
    pairs = "; ".join(f"alpha {level:g} against a rate of {listed(rates)}" for level, rates in both.items())
    text = f"The pairs in which fixed noise is both by the means: {pairs or 'none'}."
    table = markdown_table(list(rows[0]), [[str(cell) for cell in row.values()] for row in rows])
    return "\n".join([*table, "", text])


def uci(exports: Exports) -> str:
    """Return MCNI minus dropout on the UCI datasets, on average over widths, and the pairs of settings."""
    rows, shown = [], 0
    for dataset in sorted(exports.required(UCI).cells["dataset"].unique()):
        pairs = {row["method"]: row for row in rows_of(exports, UCI, f"settings-{dataset}")}
        for method in (FIXED, LEARNED):
            found = at_widths(exports, UCI, dataset, method)
            single = [width for width in found if width not in (RANGE, OWN)]
            own = found[RANGE]
            cells = [f"{difference(own[metric])}; {verdict(own[metric])}" for metric in METRICS]
            both = f"{pairs[method]['narrower, higher coverage']} of {pairs[method]['pairs of settings']}"
            rows.append([dataset, f"`{method}`", f"{single[0]} to {single[-1]}", *cells, both])
            shown += sum(own[metric]["verdict"] in ("better", "worse") for metric in METRICS)
    head = ["dataset", "minus MC dropout", "widths", *METRICS.values(), "pairs narrower with higher coverage"]
    text = f"Differences that were shown: {shown or 'none'} of these {len(rows) * len(METRICS)}."
    return "\n".join([*markdown_table(head, rows), "", text])
