"""Warnings that results carry: what a run printed about timings and calibrations, for the page beside their numbers."""

import pandas as pd

from bench.api import Block, Results, Table, Text, plural

MOST_PLACES = 6  # named in one warning
MOST_SENTENCES, MOST_OF_DATASET = 3, 8  # beyond, a table has all


def warned_cells(results: Results, dataset: str | None = None) -> dict[str, list[tuple[str, str]]]:
    """Return the warnings of finished cells, each with its datasets and methods, in the order of the cells."""
    cells = results.cells[results.cells["status"] == "ok"].dropna(subset="message")
    found: dict[str, list[tuple[str, str]]] = {}
    for place, method, message in zip(cells["dataset"], cells["method"], cells["message"], strict=True):
        if dataset is None or place == dataset:
            for reason in filter(None, str(message).split("; ")):
                known = found.setdefault(reason, [])
                known += [(str(place), str(method))] * ((str(place), str(method)) not in known)
    return found


def warning_blocks(results: Results, dataset: str | None = None) -> list[Block]:
    """Return the warnings that the results of a suite, or of one dataset, carry; [] without any.

    Those of the most methods are sentences; where there are many, a folded table has all.
    """
    found = warned_cells(results, dataset)
    if not found:
        return []
    finished = results.cells[results.cells["status"] == "ok"]
    every = {(str(d), str(m)) for d, m in zip(finished["dataset"], finished["method"], strict=True)}
    every = {place for place in every if dataset is None or place[0] == dataset}
    lines = []
    for reason, places in sorted(found.items(), key=lambda item: -len(item[1])):
        names = [method if dataset else f"{method} on {place}" for place, method in places]
        more = f" and {plural(len(names) - MOST_PLACES, 'other')}" if len(names) > MOST_PLACES else ""
        which = "all methods" if set(places) == every and len(every) > 1 else ", ".join(names[:MOST_PLACES]) + more
        lines.append(f"{which}: {reason}")
    most = MOST_OF_DATASET if dataset else MOST_SENTENCES
    left = len(lines) - most
    rest = f" {plural(left, 'more warning')} in the table." if left > 0 else ""
    told = Text(f"Warning. {'. '.join(lines[:most])}.{rest}", warning=True)
    if left <= 0:
        return [told]
    rows = [(method, place, reason) for reason, places in found.items() for place, method in places]
    data = pd.DataFrame(rows, columns=["method", "dataset", "warning"])
    name = f"warnings-{dataset}" if dataset else "warnings"
    return [told, Table("All warnings that results carry", data, name=name, folded=True)]
