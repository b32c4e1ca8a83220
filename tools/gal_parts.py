"""The generated parts of docs/results/uci-gal.md: MC dropout beside the numbers of its authors."""

import json
import math
from collections import Counter

import pandas as pd

from bench.spec.spec import read_spec
from bench.text_tables import markdown_table
from tools.findings import Exports
from tools.uci_fixed_parts import PUBLISHED

SUITE = "uci-gal"
METRICS = {"rmse": ("rmse", 1), "log_likelihood": ("nll_mixture", -1)}  # the metric of ours, and its sign


def values(exports: Exports, quantity: str) -> pd.DataFrame:
    """Return a quantity of the authors by dataset (rows) and split (columns)."""
    metric, sign = METRICS[quantity]
    frame = exports.required(SUITE).frame
    return sign * frame[frame["metric"] == metric].pivot(index="dataset", columns="split", values="value")


def _beside_published(exports: Exports, quantity: str) -> str:
    rows = []
    for dataset, own in values(exports, quantity).iterrows():
        mean, error = PUBLISHED["gal"][quantity][str(dataset)]
        ours = f"{own.mean():.2f} ± {own.std() / math.sqrt(own.count()):.2f}"
        rows.append([str(dataset), ours, str(own.count()), f"{mean:.2f} ± {error:.2f}"])
    return "\n".join(markdown_table(["dataset", "here", "splits", "published, 20 splits"], rows))


def rmse(exports: Exports) -> str:
    """Return the RMSE with its standard error over splits."""
    return _beside_published(exports, "rmse")


def log_likelihood(exports: Exports) -> str:
    """Return the log likelihood per row with its standard error over splits."""
    return _beside_published(exports, "log_likelihood")


def splits(exports: Exports) -> str:
    """Return the splits of which the authors' repository has values, one by one."""
    columns, head = [], ["split"]
    for quantity in METRICS:
        ours = values(exports, quantity)
        for dataset, published in PUBLISHED["gal-splits"][quantity].items():
            if dataset in ours.index:
                own = [float(ours.loc[dataset, split]) for split in range(len(published))]
                columns += [own, published]
                head += [f"{dataset}, {quantity.replace('_', ' ')}: here", "published"]
    rows = [[str(split), *(f"{column[split]:.2f}" for column in columns)] for split in range(len(columns[0]))]
    rows.append(["mean", *(f"{sum(column) / len(column):.2f}" for column in columns)])
    return "\n".join(markdown_table(head, rows))


def chosen(exports: Exports) -> str:
    """Return what the searches chose and how much the intervals cover, by dataset."""
    results, rows = exports.required(SUITE), []
    cover = results.frame[results.frame["metric"] == "coverage95"].groupby("dataset")["value"].mean()
    for dataset, cells in results.cells[results.cells["status"] == "ok"].groupby("dataset"):
        picked = [json.loads(text)["search"]["chosen"] for text in cells["training"]]
        tried = read_spec(cells["spec"].iloc[0]).space["noise"]
        found = (Counter(f"{one[option]:g}" for one in picked) for option in ("rate", "noise"))
        texts = [", ".join(f"{value} ({count})" for value, count in counts.most_common()) for counts in found]
        rows.append([str(dataset), ", ".join(f"{noise:g}" for noise in tried), *texts, f"{cover[dataset]:.2f}"])
    head = ["dataset", "noise tried", "rate chosen (splits)", "noise chosen (splits)", "coverage of 95 % intervals"]
    return "\n".join(markdown_table(head, rows))
