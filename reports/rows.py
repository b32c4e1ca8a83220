"""Rows: differences between methods by test rows, the hardest rows, and those at which methods disagree."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Block, Report, Results, Section, Table, Text, stats
from bench.reports._words import decimals, probability, rounded


@dataclass(frozen=True)
class Rows(Report):
    """For the first test set of each dataset: every method against the baseline, hard rows, disputed rows."""

    order = 29
    datasets: int = 4
    shown: int = 8

    def section(self, results: Results) -> Section | None:
        """Return the tables, or None where fewer than two methods have stored predictions on a test set."""
        blocks: list[Block] = []
        for table in self._tables(results):
            blocks += _blocks(table, results.baseline, self.shown)
        if not blocks:
            return None
        introduction = (
            "One test set of each dataset, and the networks that were trained for it, averaged over their seeds. "
            "Intervals are from a bootstrap over rows, in which the losses of two methods at a row stay together; for "
            "classes McNemar's exact test compares the rows that only one of two methods gets wrong, with Holm's "
            "correction. Other test sets may have other hard rows, and these tests do not cover other seeds."
        )
        return Section("Rows: where methods differ", [Text(introduction), *blocks])

    def _tables(self, results: Results) -> "Iterator[stats.RowTable]":
        cells = results.cells
        first = cells.groupby("dataset")["split"].transform("min")
        found = 0
        for table in stats.row_tables(cells[cells["split"] == first], results.arrays):
            if len(table.methods) > 1 and found < self.datasets:
                found += 1
                yield table


def _blocks(table: "stats.RowTable", baseline: str | None, shown: int) -> Iterator[Block]:
    base = baseline if baseline in table.methods else table.methods[0]
    place, name = f"{table.dataset}, split {table.split}", f"rows-{table.dataset}"
    compared = stats.compare_rows(table, str(base), np.random.default_rng(0))
    if not compared.empty:
        numbers = compared.drop(columns=["dataset", "split"])
        caption = f"{place}: mean loss minus that of {base}, by rows, with 95 % intervals"
        yield Table(caption, _readable(numbers), name=f"{name}-differences", numbers=numbers)
    disputed = stats.disputed_rows(table, shown)
    disputed = disputed[disputed["disagreement"] > 0].reset_index(drop=True)  # at the others all predict the same
    for kind, rows in (("hardest", stats.hardest_rows(table, shown)), ("disputed", disputed)):
        words = "the hardest rows for all methods" if kind == "hardest" else "rows at which methods disagree most"
        caption = f"{place}: {words}, and what each method predicts"
        if not rows.empty:
            yield Table(caption, rows, name=f"{name}-{kind}", folded=True)


def _readable(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return one line per method and one column per loss: the difference, and below it the interval."""
    columns: dict[str, dict[str, str]] = {}
    for loss, own in numbers.groupby("loss", sort=False):
        places = decimals((own["high"] - own["low"]) / 2, own["difference"])
        cells = zip(own["method"], own["difference"], own["low"], own["high"], strict=True)
        columns[str(loss)] = {
            method: f"{rounded(difference, places)}\n({rounded(low, places)} to {rounded(high, places)})"
            for method, difference, low, high in cells
        }
    if "p" in numbers:
        tested = numbers[numbers["only_method"].notna()]
        counts = zip(tested["method"], tested["only_method"], tested["only_baseline"], strict=True)
        columns["only it : only baseline wrong"] = {method: f"{own:.0f} : {other:.0f}" for method, own, other in counts}
        columns["McNemar p"] = dict(zip(tested["method"], map(probability, tested["p_adjusted"]), strict=True))
    return pd.DataFrame(columns).reindex(numbers["method"].unique()).rename_axis("method").reset_index().fillna("–")
