"""Finished results that a run's form of a suite no longer contains: reports stop showing them, the store keeps them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bench.counts import plural
from bench.spec.cell import Cell


def no_longer_shown(
    suite: str, before: Sequence[Mapping[str, Any]], now: Collection[Cell], *, whole: bool
) -> list[str]:
    """Return, in a line each, what reports of a suite showed before and how they show it again.

    `before` are the places (dataset, method, seed, key) of its finished results. A run of the whole suite replaces all
    of them, another one those of its datasets and methods.
    """
    keys = {cell.key for cell in now}
    pairs = {(cell.dataset, cell.method) for cell in now}
    places = {(cell.dataset, cell.method, cell.seed) for cell in now}
    lost = [row for row in before if row["key"] not in keys]
    kept = [row for row in lost if (row["dataset"], row["method"]) in pairs]
    gone = [row for row in lost if whole and (row["dataset"], row["method"]) not in pairs]
    lines = []
    if any((row["dataset"], row["method"], row["seed"]) in places for row in kept):
        lines.append(
            f"the report of suite {suite} shows other settings from now on (options, training, data or plug-in files); "
            f"{plural(len(kept), 'finished result')} of the earlier ones stay in the store, and the earlier form of "
            "the suite shows them again"
        )
    elif kept:
        had = max(row["seed"] for row in kept) + 1
        have = max(cell.seed for cell in now) + 1
        of = "" if whole else f" of {', '.join(sorted({row['method'] for row in kept}))}"
        lines.append(
            f"suite {suite} had {plural(had, 'seed')}{of}, its report now shows {have}; the same command with "
            f"--seeds {had} shows all again, nothing is computed anew"
        )
    if gone:
        lines.append(
            f"the report of suite {suite} no longer shows {_named(gone, pairs)} "
            f"({plural(len(gone), 'finished result')}); name them again, with --method, --dataset or in the suite, and "
            "nothing is computed anew"
        )
    return lines


def _named(gone: Sequence[Mapping[str, Any]], pairs: Collection[tuple[str, str]]) -> str:
    """Return which datasets and methods are gone."""
    datasets, methods = {dataset for dataset, _ in pairs}, {method for _, method in pairs}
    names: dict[str, None] = {}
    for row in gone:
        if row["dataset"] not in datasets:
            names[f"dataset {row['dataset']}"] = None
        elif row["method"] not in methods:
            names[f"method {row['method']}"] = None
        else:
            names[f"method {row['method']} on {row['dataset']}"] = None
    return ", ".join(names)
