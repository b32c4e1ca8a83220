"""A board over all datasets of a task: average ranks, and which of them differ."""

from collections.abc import Sequence

import pandas as pd

from bench.errors import UserError
from bench.leaderboard.boards import Board, Entry
from bench.leaderboard.rows import Row
from bench.stats import MetricLike, Ranking, Settings, rank


def overall_board(
    rows: Sequence[Row],
    frame: pd.DataFrame,
    cells: pd.DataFrame,
    measure: MetricLike,
    *,
    task: str,
    device: str | None,
    settings: Settings,
) -> Board | None:
    """Rank the methods of `rows` over their datasets; None where there are not two methods on two datasets."""
    values = frame[frame["metric"] == measure.name]
    pairs = set(zip(values["dataset"], values["method"], strict=True))
    # A method that diverged everywhere on a dataset has no value there, and is the last.
    pairs |= {(row.dataset, row.method) for row in rows if row.states.get("diverged", 0) == row.planned}
    present = {(row.dataset, row.method) for row in rows} & pairs
    datasets, methods, notes = whole_block(present)
    if len(datasets) < 2 or len(methods) < 2:
        return None
    kept = frame[frame["dataset"].isin(datasets) & frame["method"].isin(methods)]
    own = cells[cells["dataset"].isin(datasets) & cells["method"].isin(methods)]
    try:
        ranking = rank(kept, measure, methods=methods, cells=own, settings=settings, pairwise=False)
    except UserError:  # no repeat that all methods have on at least two datasets
        return None
    words = (
        f"Nemenyi's test: average ranks differ where they are {ranking.critical_difference:.2f} or more apart; "
        f"Friedman p = {ranking.friedman[1]:.2g}"
    )
    said = [message for message in ranking.messages if "signed-rank" not in message and "signed ranks" not in message]
    return Board(
        rows[0].suite, task, None, measure.name, device, _entries(ranking), words, (*notes, *said), ranking.datasets
    )


def _entries(ranking: Ranking) -> tuple[Entry, ...]:
    entries = []
    for one in ranking.methods:
        ahead = [
            other for other in ranking.methods if one.average_rank - other.average_rank >= ranking.critical_difference
        ]
        entries.append(
            Entry(
                one.method,
                1 + len(ahead),
                one.groups,
                one.average_rank,
                one.score.low,
                one.score.high,
                len(ranking.datasets),
                len(ranking.datasets),
                score=one.score.value,
            )
        )
    return tuple(entries)


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
