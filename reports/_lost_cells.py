"""Methods without a result in every repeat: no mean over other repeats is called the best."""

from collections import Counter
from collections.abc import Collection, Mapping

from bench.api import Results, stats, style

WHY = "its mean is over other repeats"
LACKING = "(n of m): its mean is over n of m repeats, so it is last and never the best."


def lost_cells(results: Results) -> dict[str, set[str]]:
    """Return for each dataset the methods without a result in some repeat: diverged, failed, or not run."""
    lost: dict[str, set[str]] = {}
    cells = results.cells
    found = Counter(zip(cells["dataset"], cells["method"], cells["status"] == "ok", strict=True))
    for (dataset, method), due in stats.repeats_due(cells).items():
        if found[dataset, method, True] < due:
            lost.setdefault(dataset, set()).add(method)
    return lost


def best_method(losses: Mapping[str, float], lost: Collection[str]) -> str:
    """Return the method of the lowest loss that has all its results, and in brackets those ahead of it that do not."""
    order = sorted(losses, key=lambda method: losses[method])
    whole = [method for method in order if method not in lost]
    if not whole:
        return "none, as every method lacks results"
    ahead = ", ".join(style.title(method) for method in order[: order.index(whole[0])])
    best = style.title(whole[0])
    return f"{best} (not {ahead}, without a result in every repeat)" if ahead else best
