"""A board over all datasets of a task: average ranks, and which of them differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from bench.counts import plural
from bench.errors import UserError
from bench.leaderboard.against import Against, decide_over_datasets
from bench.leaderboard.boards import Board, Entry, Selection, entered_note
from bench.stats import CellCounts, Ranking, Settings, rank


def overall_board(chosen: Selection, cells: pd.DataFrame, settings: Settings, only: Sequence[str] = ()) -> Board | None:
    """Rank the methods over their datasets; None where there are not two methods on two datasets.

    `only` are the datasets of a frozen version. Methods that entered after it are not ranked.
    """
    rows = [row for row in chosen.rows if row.method not in chosen.entered and (not only or row.dataset in only)]
    values = chosen.values[chosen.values["method"].isin({row.method for row in rows})]
    if not rows:
        return None
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
    if chosen.entered:
        notes.append(entered_note(sorted(chosen.entered), chosen.version))
    board = Board(*subject, tuple(_entries(ranking, {})), test, tuple(notes), ranking.datasets)
    base, ranked = chosen.baseline, [one.method for one in ranking.methods]
    if base is None or base not in ranked:
        return board
    place = (ranking.datasets, ranked, base, CellCounts.of(own))
    against, more = decide_over_datasets(kept, chosen.metric, *place, settings)
    family = plural(len(against), "method")
    decision = f"signs of whole datasets flipped, the largest of {family} (Westfall and Young)"
    entries = tuple(_entries(ranking, against))
    return replace(board, entries=entries, notes=(*notes, *more), baseline=base, decision=decision)


def _entries(ranking: Ranking, against: Mapping[str, Against]) -> Iterator[Entry]:
    count = len(ranking.datasets)
    for one in ranking.methods:
        mean = (one.average_rank, one.score.low, one.score.high)
        groups = "" if one.place is None else one.groups
        versus = against.get(one.method)
        yield Entry(one.method, one.place, groups, *mean, count, count, against=versus, score=one.score.value)


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
            notes.append(f"{name} is not ranked: no result on {plural(count, 'dataset')}")
        else:
            notes.append(f"{name} does not count: {count} method{'s have' if count != 1 else ' has'} no result on it")
        (methods if kind == "method" else datasets).discard(name)
    return sorted(datasets), sorted(methods), notes
