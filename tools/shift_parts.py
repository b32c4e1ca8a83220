"""The generated parts of docs/results/shift-digits.md."""

import math
from collections.abc import Sequence
from itertools import pairwise

from bench.text_tables import markdown_table
from tools.findings import Exports, Means, names

SUITE = "shift-digits"
FOREIGN = ("inverted", "permuted", "uniform-noise")
LEVELS = (3, 5)
TRENDS = {"accuracy": ("Accuracy falls", -1), "brier": ("The Brier score rises", 1), "ece": ("The ECE rises", 1)}


def _severities(metric: str, title: str) -> list[tuple[str, str]]:
    return [(f"{title} 0", metric), *((f"{title} {level}", f"{metric}@all:{level}") for level in LEVELS)]


SCORES = [*_severities("accuracy", "accuracy"), *_severities("ece", "ECE"), *_severities("brier", "Brier")]
SCORES += [("error_auroc 5", "error_auroc@all:5")]
DETECTION = [("severity 5", "ood_auroc@all:5"), *((name, f"ood_auroc@{name}") for name in FOREIGN)]


def scores(exports: Exports) -> str:
    """Return scores on clean images and at two severities."""
    return _by_method(exports, SCORES)


def detection(exports: Exports) -> str:
    """Return how well uncertainty separates other images from clean ones."""
    return _by_method(exports, DETECTION)


def _by_method(exports: Exports, columns: Sequence[tuple[str, str]]) -> str:
    """Return a table of methods by metrics, each with the head of its column: means over repeats, of one dataset."""
    values = Means(exports.required(SUITE), [metric for _, metric in columns])
    rows = [
        [f"`{method}`", *(_three(values.value(dataset, method, metric)) for _, metric in columns)]
        for dataset, method in values.places
    ]
    return "\n".join(markdown_table(["method", *(head for head, _ in columns)], rows))


def _three(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def observations(exports: Exports) -> str:
    """Return what the means say, in sentences."""
    values = Means(exports.required(SUITE), [metric for _, metric in (*SCORES, *DETECTION)])
    places = values.places
    texts = []
    for metric, (word, sign) in TRENDS.items():
        steps = (metric, *(f"{metric}@all:{level}" for level in LEVELS))
        others = [
            method
            for dataset, method in places
            if any(
                sign * (values.value(dataset, method, after) - values.value(dataset, method, before)) <= 0
                for before, after in pairwise(steps)
            )
        ]
        whom = f"every method but {names(others)}" if others else "every method"
        texts.append(f"- {word} from clean images over severity 3 to 5 for {whom}.")
    lost = {m: values.value(d, m, "accuracy") - values.value(d, m, "accuracy@all:5") for d, m in places}
    worst = sorted(lost, key=lambda method: -lost[method])
    parts = ", ".join(f"`{method}` ({lost[method]:.2f})" for method in worst[:3])
    rest = [lost[method] for method in worst[3:]]
    texts.append(
        f"- Most accuracy at severity 5 is lost by {parts}; all the others lose {min(rest):.2f} to {max(rest):.2f}."
    )
    for name in FOREIGN:
        found = {method: values.value(dataset, method, f"ood_auroc@{name}") for dataset, method in places}
        best, below = max(found, key=lambda method: found[method]), [m for m, value in found.items() if value < 0.5]
        more = f"; that of {names(below)} takes them for clean ones more often than not" if below else ""
        texts.append(f"- {name}: by the mean, the entropy of `{best}` separates them best ({found[best]:.3f}){more}.")
    return "\n".join(texts)
