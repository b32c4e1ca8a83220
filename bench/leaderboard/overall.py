"""A board over all datasets of a task: average ranks, and which of them differ."""

from collections.abc import Iterator

import pandas as pd

from bench.errors import UserError
from bench.leaderboard.boards import Board, Entry, Selection
from bench.stats import Ranking, Settings, rank
from bench.stats.rank import FEWEST_DATASETS


def overall_board(chosen: Selection, cells: pd.DataFrame, settings: Settings) -> Board | None:
    """Rank the methods over their datasets; None where there are not two methods on two datasets."""
    rows, values = chosen.rows, chosen.values
    pairs = set(zip(values["dataset"], values["method"], strict=True))
    # A method that diverged everywhere on a dataset has no value there, and is the last.
    pairs |= {(row.dataset, row.method) for row in rows if row.states.get("diverged", 0) == row.planned}
    present = {(row.dataset, row.method) for row in rows} & pairs
    datasets, methods, notes = whole_block(present)
    if len(datasets) < 2 or len(methods) < 2:
        return None
    kept = values[values["dataset"].isin(datasets) & values["method"].isin(methods)]
    own = cells[cells["dataset"].isin(datasets) & cells["method"].isin(methods)]
    try:
        ranking = rank(kept, chosen.metric, methods=methods, cells=own, settings=settings, pairwise=False)
    except UserError:  # no repeat that all methods have on at least two datasets
        return None
    test = (
        f"Nemenyi's test: average ranks differ where they are {ranking.critical_difference:.2f} or more apart; "
        f"Friedman p = {ranking.friedman[1]:.2g}"
    )
    notes += [text for text in ranking.messages if "signed-rank" not in text and "signed ranks" not in text]
    subject = (rows[0].suite, chosen.task, None, chosen.metric.name, chosen.device)
    return Board(*subject, tuple(_entries(ranking)), test, tuple(notes), ranking.datasets)


def _entries(ranking: Ranking) -> Iterator[Entry]:
    count = len(ranking.datasets)
    tested = count >= FEWEST_DATASETS
    for one in ranking.methods:
        ahead = sum(one.average_rank - other.average_rank >= ranking.critical_difference for other in ranking.methods)
        mean = (one.average_rank, one.score.low, one.score.high)
        place, groups = (1 + ahead, one.groups) if tested else (None, "")
        yield Entry(one.method, place, groups, *mean, count, count, score=one.score.value)


def whole_block(present: set[tuple[str, str]]) -> tuple[list[str], list[str], list[str]]:
    """Return datasets and methods of which every combination is there, and words on what was left out.

    A ranking needs all methods on all datasets. While something is missing, the method or the dataset that misses
    most of the others is left out, a method first where both miss as much.
    """
    datasets = {dataset for dataset, _ in present}
    methods = {method for _, method in present}
    notes = []
    while datasets and methods:
        lacking = {
            **{("method", m): sum((d, m) not in present for d in datasets) / len(datasets) for m in methods},
            **{("dataset", d): sum((d, m) not in present for m in methods) / len(methods) for d in datasets},
        }
        (kind, name), share = max(lacking.items(), key=lambda item: (item[1], item[0]))
        if share == 0.0:
            break
        count = round(share * len(datasets if kind == "method" else methods))
        if kind == "method":
            notes.append(f"{name} is not ranked: no result on {count} dataset{'s' * (count != 1)}")
        else:
            notes.append(f"{name} does not count: {count} method{'s have' if count != 1 else ' has'} no result on it")
        (methods if kind == "method" else datasets).discard(name)
    return sorted(datasets), sorted(methods), notes
