"""Writes the tables of pages in docs/results from the exports in results/: a part of a page between two marks each.

python -m tools.result_tables docs/results
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.store.results import StoredResults
from bench.text_tables import markdown_table
from tools.findings import Exports, Means
from tools.pages import replace_part
from tools.results_page import EXPORTS


def by_dataset(results: StoredResults, metric: str) -> list[str]:
    """Return a table of datasets by methods: mean and standard deviation over repeats."""
    values = Means(results, [metric])
    datasets, methods = (list(dict.fromkeys(names)) for names in zip(*values.places, strict=True))
    rows = [[name, *(values.text(name, method, metric, None) for method in methods)] for name in sorted(datasets)]
    return markdown_table(["dataset", *methods], rows)


def by_method(results: StoredResults, columns: Sequence[tuple[str, str]]) -> list[str]:
    """Return a table of methods by metrics, each with the head of its column: means over repeats, of one dataset."""
    values = Means(results, [metric for _, metric in columns])
    rows = [
        [f"`{method}`", *(_three(values.value(dataset, method, metric)) for _, metric in columns)]
        for dataset, method in values.places
    ]
    return markdown_table(["method", *(head for head, _ in columns)], rows)


def _three(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _severities(metric: str, title: str, *, clean: bool = True) -> list[tuple[str, str]]:
    first = [(f"{title} 0", metric)] if clean else []
    return [*first, *((f"{title} {level}", f"{metric}@all:{level}") for level in (3, 5))]


SHIFT = [*_severities("accuracy", "accuracy"), *_severities("ece", "ECE"), *_severities("brier", "Brier")]
SHIFT += [("error_auroc 5", "error_auroc@all:5")]
FOREIGN = ["inverted", "permuted", "uniform-noise"]
DETECTION = [("severity 5", "ood_auroc@all:5")]
DETECTION += [(name, f"ood_auroc@{name}") for name in FOREIGN]
Part = Callable[[StoredResults], list[str]]
PARTS: dict[str, tuple[str, dict[str, Part]]] = {
    "uci-fixed.md": ("uci-fixed", {"rmse": lambda results: by_dataset(results, "rmse")}),
    "shift-digits.md": (
        "shift-digits",
        {
            "scores": lambda results: by_method(results, SHIFT),
            "detection": lambda results: by_method(results, DETECTION),
        },
    ),
}


def page(name: str, text: str, exports: Exports) -> str:
    """Return a page with its tables anew."""
    suite, parts = PARTS[name]
    results = exports.results(suite)
    if results is None:
        return text
    for part, table in parts.items():
        text = replace_part(text, part, "\n" + "\n".join(table(results)) + "\n")
    return text


def main() -> None:
    """Write the tables of all pages."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="docs/results")
    folder = arguments.parse_args().folder
    with Exports(EXPORTS) as exports:
        for name in PARTS:
            path = folder / name
            path.write_text(page(name, path.read_text("utf-8"), exports), "utf-8")


if __name__ == "__main__":
    main()
