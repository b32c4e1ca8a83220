"""The generated parts of docs/results/mcni-ablation.md."""

from bench.api import Table, stats
from bench.reports._variants import variants_of
from bench.reports._words import metrics_of
from bench.reports.mcni_ablation import change, middle
from bench.text_tables import markdown_table
from tools.findings import Exports, number, probability

SUITE = "mcni-ablation"


def shown_differences(exports: Exports) -> str:
    """Return the differences that were shown after correction over all variants of a method, datasets and metrics."""
    results, rows, texts = exports.required(SUITE), [], []
    for plugin, variants in variants_of(results.cells).items():
        reference = middle(variants)
        others = [label for label in variants if label != reference]
        found = stats.compare_each(results.frame, others, reference, metrics_of(results), cells=results.cells)
        every = [(one.a, row) for one in found for row in one.rows if row.pairs]
        decided = [(label, row) for label, row in every if row.verdict in ("better", "worse")]
        texts.append(f"{len(decided) or 'none'} of the {len(every)} comparisons with `{reference}`")
        for label, row in decided:
            ends = f" ({row.interval.low:+.3g} to {row.interval.high:+.3g})" if row.interval else ""
            rows.append(
                [
                    f"`{plugin}`",
                    change(variants[label], variants[reference]),
                    row.dataset,
                    row.metric,
                    f"{number(row.mean_a)} against {number(row.mean_b)}: {row.difference:+.3g}{ends}",
                    f"{row.verdict}, {probability(row.p_adjusted)}",
                ]
            )
    head = ["method", "option", "dataset", "metric", "with the option against without", ""]
    table = markdown_table(head, rows) if rows else []
    return "\n".join([f"Shown were {' and '.join(texts)}.", "", *table]).strip()


def variants(exports: Exports) -> str:
    """Return all variants with their differences, a table per method and dataset."""
    lines: list[str] = []
    for block in exports.section(SUITE, "mcni-ablation").blocks:
        if isinstance(block, Table):
            rows = [[f"`{row[0]}`", *(str(cell) for cell in row[1:])] for row in block.data.to_numpy()]
            dataset = block.caption.partition(":")[0]
            reference = block.data.loc[block.data["option"] == "reference", "variant"].iloc[0]
            lines += [f"Against `{reference}` on {dataset}:", "", *markdown_table(list(block.data.columns), rows), ""]
    return "\n".join(lines).strip()
