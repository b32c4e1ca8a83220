"""Means over repeats, and which methods have every repeat: means over different repeats are not compared."""

import numpy as np
import pandas as pd


def repeats_due(cells: pd.DataFrame) -> dict[tuple[str, str], int]:
    """Return for each dataset and method how many repeats its mean has to be over to stand beside the others.

    These are its own planned repeats and all repeats of which any method has a result: the mean of a method that was
    run with five seeds is not over the splits of one that was run with twenty.
    """
    due: dict[tuple[str, str], int] = {}
    for dataset, own in cells.groupby("dataset", sort=False):
        places = list(zip(own["split"].tolist(), own["seed"].tolist(), strict=True))
        planned: dict[str, set[tuple[int, int]]] = {}
        for method, place in zip(own["method"].tolist(), places, strict=True):
            planned.setdefault(str(method), set()).add(place)
        held = {place for place, status in zip(places, own["status"].tolist(), strict=True) if status == "ok"}
        due |= {(str(dataset), method): len(mine | held) for method, mine in planned.items()}
    return due


def repeat_means(frame: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the means of a frame of values, one row per dataset, metric and method.

    Columns: `mean` and `deviation` over all values, their number `count`, how many of them are `finite`, how many
    repeats are `due`, and `whole`: whether there are as many finite ones. Only means of whole rows are over the same
    repeats: no other is called the best or sorted among them.
    """
    by = frame.assign(finite=np.isfinite(frame["value"].astype(float))).groupby(["dataset", "metric", "method"])
    values = by["value"]
    columns = {"mean": values.mean(), "deviation": values.std(), "count": values.size(), "finite": by["finite"].sum()}
    found, due = pd.DataFrame(columns), repeats_due(cells)
    wanted = [due[str(dataset), str(method)] for dataset, _, method in found.index]
    return found.assign(due=wanted).assign(whole=found["finite"].to_numpy() >= np.array(wanted, dtype=int))
