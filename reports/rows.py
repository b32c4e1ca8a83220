"""Rows: differences between methods by test rows, the hardest rows, and those at which methods disagree."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.api import Block, Report, Results, Section, Table, Text, stats
from bench.reports._words import probability


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
        caption = f"{place}: mean loss minus that of {base}, by rows"
        yield Table(caption, _readable(numbers), name=f"{name}-differences", numbers=numbers)
    for kind, rows in (("hardest", stats.hardest_rows(table, shown)), ("disputed", stats.disputed_rows(table, shown))):
        words = "the hardest rows for all methods" if kind == "hardest" else "rows at which methods disagree most"
        caption = f"{place}: {words}, and what each method predicts"
        yield Table(caption, rows, name=f"{name}-{kind}", folded=True)


def _readable(numbers: pd.DataFrame) -> pd.DataFrame:
    ends = [f"{low:.3g} to {high:.3g}" for low, high in zip(numbers["low"], numbers["high"], strict=True)]
    table = numbers[["method", "loss", "difference"]].assign(**{"95 % interval": ends})
    if "p" in numbers:
        counts = zip(numbers["only_method"], numbers["only_baseline"], strict=True)
        pairs = ["–" if np.isnan(own) else f"{own:.0f} : {other:.0f}" for own, other in counts]
        p = [probability(value) for value in numbers["p_adjusted"]]
        table = table.assign(**{"only it : only baseline wrong": pairs, "McNemar p": p})
    return table
