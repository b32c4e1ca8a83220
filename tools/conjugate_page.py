"""Updates the table of docs/results/conjugate.md from the variances in docs/results/conjugate.csv.

`python -m tools.conjugate_page docs/results/conjugate.md`; tests/methods/test_conjugate.py measures them.
"""

import argparse
import csv
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from bench.api import Array
from bench.text_tables import markdown_table
from tools.pages import replace_part

VALUES = Path(__file__).parents[1] / "docs" / "results" / "conjugate.csv"
COLUMNS = ("method", "computes", "drawn", "closed form", "posterior")


@dataclass(frozen=True)
class Variances:
    """Predictive variances of one method at all test points."""

    computes: str
    values: tuple[Array, Array, Array]  # of the draws, of the closed form, of the posterior


def read() -> dict[str, Variances]:
    """Return the variances that were kept, by method."""
    with VALUES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    found = {}
    for (method, computes), own in groupby(rows, key=lambda row: (row[0], row[1])):
        drawn, closed, posterior = np.array([row[2:] for row in own], dtype=float).T
        found[method] = Variances(computes, (drawn, closed, posterior))
    return found


def ratio(one: Array, other: Array) -> str:
    """Return the mean of a ratio over the test points, and its range."""
    ratios = one / other
    if np.ptp(ratios) < 0.005:
        return f"{ratios.mean():.2f}"
    return f"{ratios.mean():.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def table() -> str:
    """Return the table of all methods."""
    rows = []
    for method, found in read().items():
        drawn, closed, posterior = found.values
        rows.append([method, found.computes, ratio(drawn, closed), ratio(closed, posterior)])
    return "\n".join(markdown_table(["method", "computes", "drawn / closed form", "closed form / posterior"], rows))


def page(text: str) -> str:
    """Return the page with its table."""
    return replace_part(text, "variances", f"\n{table()}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="the page to update")
    given = parser.parse_args()
    given.file.write_text(page(given.file.read_text("utf-8")), "utf-8")
