"""Updates the tables of docs/results/toy.md from the results in docs/results/paper.

`python -m tools.toy_page docs/results/toy.md`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bench.api import Array, stats
from bench.reports._paper_experiments import reference
from bench.text_tables import markdown_table
from tools.kept_results import read
from tools.pages import replace_part
from tools.paper_page import RESULTS

METHODS = {"mc-dropout": "MC dropout", "mcni-fixed": "MCNI (fixed)", "mcni-learned": "MCNI (learned)"}
METRICS = {"mpiw": "MPIW", "picp": "PICP", "winkler": "Winkler score", "crps": "CRPS", "rmse": "RMSE"}
VARIANTS = {  # of suite toy-sensitivity
    "mcni-fixed": "fixed",
    "mcni-fixed-sigma": "fixed, gradient through sigma",
    "mcni-learned": "learned",
    "mcni-learned-sigma": "learned, gradient through sigma",
    "mcni-learned-penalty-1": "learned, penalty 0.0001",
    "mcni-learned-penalty-2": "learned, penalty 0.001",
    "mcni-learned-penalty-3": "learned, penalty 0.15",
}
GRIDS = {"toy": "uniform", "toy-even": "even"}


def values(suite: str, dataset: str = "toy") -> pd.DataFrame:
    """Return the values of a suite on one dataset, a column per metric, by method and seed."""
    frame = read(RESULTS / f"{suite}.json").frame
    return frame[frame["dataset"] == dataset].pivot(index=["method", "seed"], columns="metric", values="value")


def means(table: pd.DataFrame) -> str:
    """Return the means of the paper's three methods beside what it prints."""
    printed = next(each for each in reference()["tables"] if each["name"] == "Figure 1")["values"]
    paper = {(method, metric): value for _, method, metric, value in printed}
    rows = []
    for method, name in METHODS.items():
        own = table.loc[method]
        cells = [f"{own[metric].mean():.4g} ± {own[metric].std():.2g}" for metric in METRICS]
        rows.append([name, *(f"{paper[method, metric]:g}" for metric in ("mpiw", "picp")), *cells])
    header = ["method", "MPIW, paper", "PICP, paper", *(f"{name}, here" for name in METRICS.values())]
    return "\n".join(markdown_table(header, rows))


def differences(table: pd.DataFrame, metrics: Sequence[str] = tuple(METRICS)) -> str:
    """Return the differences from MC dropout, repeat by repeat; the first metric is a width."""
    rows, other, both = [], table.loc["mc-dropout"], []
    for method in ("mcni-fixed", "mcni-learned"):
        own = table.loc[method]
        for metric in metrics:
            difference = (own[metric] - other[metric]).to_numpy()
            rows.append([METHODS[method], METRICS.get(metric, metric), *_test(difference)])
        count = ((own[metrics[0]] < other[metrics[0]]) & (own["picp"] > other["picp"])).sum()
        both.append(f"{METHODS[method]} {count} of {len(other)}")
    header = ["", "minus MC dropout", "mean", "95 % interval", "t", "repeats above 0"]
    text = f"Narrower *and* higher coverage than MC dropout: {', '.join(both)} repeats."
    return "\n".join([*markdown_table(header, rows), "", text])


def _test(difference: Array) -> list[str]:
    low, high = stats.t_interval(difference)
    t = difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))
    return [f"{difference.mean():+.4g}", f"{low:+.4g} to {high:+.4g}", f"{t:.1f}", f"{(difference > 0).sum()}"]


def stored_runs(table: pd.DataFrame) -> str:
    """Return the runs that the public code has stored, and whether they lie among ours."""
    stored = next(each for each in reference()["tables"] if each["name"] == "Stored runs, toy")["values"]
    rows = []
    for _, method, metric, value in stored:
        own = table.loc[method][metric]
        low, high = np.quantile(own, [0.025, 0.975])
        inside = "yes" if low <= value <= high else "no"
        rows.append([method, metric, f"{value:g}", f"{own.mean():.4g}", f"{low:.4g} to {high:.4g}", inside])
    header = ["method", "metric", "stored run", "mean, here", "central 95 %, here", "inside"]
    return "\n".join(markdown_table(header, rows))


def sensitivity() -> str:
    """Return what the choices change that the paper leaves open."""
    rows = []
    for dataset, grid in GRIDS.items():
        table = values("toy-sensitivity", dataset)
        for method, name in VARIANTS.items():
            difference = (table.loc[method]["picp"] - table.loc["mc-dropout"]["picp"]).to_numpy()
            cells = [f"{table.loc[method][metric].mean():.4g}" for metric in ("mpiw", "picp", "winkler", "crps")]
            rows.append([name, grid, *cells, *_test(difference)[:3]])
    header = ["MCNI", "x", "MPIW", "PICP", "Winkler score", "CRPS", "PICP minus MC dropout's", "95 % interval", "t"]
    return "\n".join(markdown_table(header, rows))


def updated(page: str) -> str:
    """Return the page with its tables."""
    table, of_code = values("toy"), values("toy-code")
    parts = {"means": means(table), "differences": differences(table), "stored runs": stored_runs(of_code)}
    parts |= {"differences, code": differences(of_code, ("mpiw_captured", "picp")), "sensitivity": sensitivity()}
    for part, text in parts.items():
        page = replace_part(page, f"toy {part}", text)
    return page


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="the page to update")
    given = parser.parse_args()
    given.file.write_text(updated(given.file.read_text("utf-8")), "utf-8")
