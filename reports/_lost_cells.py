"""Methods without a result in every planned cell: no mean over the cells that went well is called the best."""

from collections.abc import Collection, Mapping

from bench.api import Results, style

WHY = "the repeats that went well are not those of the others"


def lost_cells(results: Results) -> dict[str, set[str]]:
    """Return for each dataset the methods of which some cell diverged, failed or was not run."""
    lost: dict[str, set[str]] = {}
    cells = results.cells
    gone = cells[cells["status"] != "ok"]
    for dataset, method in zip(gone["dataset"], gone["method"], strict=True):
        lost.setdefault(str(dataset), set()).add(str(method))
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
