"""Where the numbers come from: how many cells, what failed, which machine and versions."""

import json
from dataclasses import dataclass

import pandas as pd

from bench.api import Block, Report, Results, Section, Table, Text


@dataclass(frozen=True)
class Provenance(Report):
    """What a reader needs to judge or repeat the numbers."""

    order = 90

    def section(self, results: Results) -> Section | None:
        """Return counts, failures and environments."""
        cells = results.cells
        if cells.empty:
            return None
        counts = cells["status"].fillna("not run").value_counts()
        told = ", ".join(f"{count} {status}" for status, count in counts.items())
        blocks: list[Block] = [Text(f"{len(cells)} cells: {told}.")]
        if not results.remarks.empty:
            blocks.append(Table("Remarks", results.remarks))
        blocks += [Text(text) for text in _mixed(cells)]
        if not results.failures.empty:
            blocks.append(Table("Cells without a result", results.failures.drop(columns="suite")))
        for number, (text, rows) in enumerate(cells.dropna(subset="environment").groupby("environment"), start=1):
            blocks.append(Table(f"Environment {number} ({len(rows)} cells)", _flat(json.loads(str(text)))))
        return Section("Provenance", blocks)


def _mixed(cells: pd.DataFrame) -> list[str]:
    """Warn of datasets whose cells were not run alike: their methods cannot be compared."""
    known = cells.dropna(subset="spec")
    protocols = [json.dumps(json.loads(spec).get("protocol"), sort_keys=True) for spec in known["spec"]]
    counts = known.assign(protocol=protocols).groupby("dataset")["protocol"].nunique()
    return [
        f"Warning: the cells of {dataset} were run under {count} different protocols; run the whole suite again to "
        "compare its methods."
        for dataset, count in counts.items()
        if count > 1
    ]


def _flat(facts: dict[str, object]) -> pd.DataFrame:
    packages = facts.pop("packages", {})
    lines = {**facts, **(packages if isinstance(packages, dict) else {})}
    return pd.DataFrame(
        {"fact": list(lines), "value": [str(v) if v is not None else "missing" for v in lines.values()]}
    )
