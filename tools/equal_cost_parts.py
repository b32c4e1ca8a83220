"""The generated parts of docs/results/equal-cost.md: what the report's section "At equal cost" shows."""

import pandas as pd

from bench.api import Table
from bench.counts import plural
from bench.text_tables import markdown_table
from tools.findings import Exports, names

SUITE, REFERENCE, OTHER = "equal-cost", "mcni-fixed", "mcni-learned"
SHOWN = ("better", "worse")


def comparisons(exports: Exports, reference: str) -> pd.DataFrame:
    """Return every comparison with a reference at as many passes, a row each, by metric, dataset and method."""
    tables = [block for block in exports.section(SUITE, "equal-cost").blocks if isinstance(block, Table)]
    end = f"-{reference}"
    own = {
        table.name.removeprefix("equal-cost-").removesuffix(end): table.data
        for table in tables
        if table.name.endswith(end)
    }
    return pd.concat([data.assign(metric=metric) for metric, data in own.items()], ignore_index=True)


def shown_differences(exports: Exports) -> str:
    """Return the table of the differences that were shown, and how many were not."""
    found = comparisons(exports, REFERENCE)
    decided = found[found["verdict"].isin(SHOWN)]
    rows = [
        [
            row["metric"],
            row["dataset"],
            f"`{row['method']}`",
            str(row["passes"]),
            row["epochs trained"],
            f"{row['difference']:+.3g} ({row['95 % low']:+.3g} to {row['95 % high']:+.3g})",
            row["p"],
            row["verdict"],
        ]
        for row in decided.to_dict("records")
    ]
    head = ["metric", "dataset", "method", "passes", "epochs trained", "difference", "p", ""]
    never = [method for method in found["method"].unique() if method not in set(decided["method"])]
    rest = (
        f"In the other {len(found) - len(decided)} of {plural(len(found), 'comparison')} no difference was shown. No "
        f"metric on any dataset showed one for {names(sorted(never))}."
    )
    return "\n".join([*markdown_table(head, rows), "", rest])


def against_learned(exports: Exports) -> str:
    """Return what was shown against learned levels."""
    found = comparisons(exports, OTHER)
    texts = []
    decided = found[found["verdict"].isin(SHOWN)]
    for (metric, dataset, verdict), own in decided.groupby(["metric", "dataset", "verdict"]):
        texts.append(f"{verdict} by `{metric}` on {dataset}: {names(sorted(own['method']))}")
    open_rows = len(found) - len(decided)
    return (
        f"Against `{OTHER}` with as many passes: {'; '.join(texts)}. The other {open_rows} of {len(found)} comparisons "
        "showed no difference."
    )
