"""Removes array files that no cell refers to and, on request, unwanted results and checkpoints."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, delete, func, select

from bench.errors import UserError
from bench.machine.files import TEMPORARY
from bench.store.bank import files_beside, forget_predictions, kept_files
from bench.store.database import user_errors
from bench.store.recalibrated import has_recalibrated
from bench.store.store import Store, plugin_hashes
from bench.store.tables import cells, environments, leases, metrics, plugins, recalibrated, rescored, wanted
from bench.store.tables import predictions as bank_rows


@dataclass(frozen=True)
class Cleaned:
    """Counts of what was removed, or would be in a dry run."""

    results: int
    array_files: int
    temporary_files: int
    bytes: int  # of the files
    checkpoint_files: int = 0
    plugins: int = 0  # sources of plug-in files that no cell names
    predictions: int = 0  # cells whose stored predictions were removed
    network_files: int = 0


def clean(
    store: Store,
    *,
    unwanted: bool = False,
    checkpoints: bool = False,
    predictions: bool = False,
    networks: bool = False,
    dry_run: bool = False,
) -> Cleaned:
    """Remove array files that no cell refers to.

    `unwanted`: also results that no suite contains any more. `checkpoints`: also those of unfinished trainings, which
    then start again. `predictions`: also all stored predictions; values and moments stay. `networks`: also kept
    networks, which are then trained again where another method needs them.
    """
    drivers = store.drivers()
    chosen = {"unwanted": unwanted, "checkpoints": checkpoints, "predictions": predictions, "networks": networks}
    if any(chosen.values()) and drivers and not dry_run:
        # A run deletes the list of its suite's cells before it writes the new one.
        option = next(f"--{name}" for name, asked in chosen.items() if asked)
        raise UserError(f"{option}: {drivers[0]['name']} is working on this store; try again when it has ended")
    is_wanted = select(wanted.c.key).where(wanted.c.key == cells.c.key).exists()
    with store.database.reading() as connection:
        count = select(func.count()).select_from(cells).where(~is_wanted)
        results = int(connection.execute(count).scalar_one()) if unwanted else 0
    if results and not dry_run:
        store.database.write(_remove_unwanted, lock=cells)
    removed = len(kept_files(store)) if predictions else 0
    if predictions and not dry_run:
        store.database.write(forget_predictions)
    referenced = _referenced(store, [is_wanted] if unwanted else [], predictions=not predictions)
    lost = store.arrays.orphans(referenced, idle=not drivers)
    temporary = sum(path.suffix == TEMPORARY for path, _ in lost)
    checkpoint_files = _files_beside(store, "checkpoints") if checkpoints else []
    network_files = _files_beside(store, "networks") if networks else []
    kept = [*checkpoint_files, *network_files]
    sources = [] if drivers else _unused_plugins(store, [is_wanted] if unwanted else [])  # a driver stores them first
    if sources and not dry_run:
        store.database.write(lambda connection: connection.execute(delete(plugins).where(plugins.c.hash.in_(sources))))
    with user_errors(store.address):
        for path, _ in () if dry_run else [*lost, *kept]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        for folder in () if dry_run else {path.parent for path, _ in kept}:
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
    size = sum(size for _, size in (*lost, *kept))
    counts = (len(checkpoint_files), len(sources), removed, len(network_files))
    return Cleaned(results, len(lost) - temporary, temporary, size, *counts)


def _files_beside(store: Store, kind: Literal["checkpoints", "networks"]) -> list[tuple[Path, int]]:
    """Return checkpoints or kept networks with their sizes."""
    return [(path, path.stat().st_size) for path in files_beside(store, kind)]


def _referenced(store: Store, conditions: list[ColumnElement[bool]], *, predictions: bool) -> set[str]:
    """Return the files that cells refer to: their arrays and, unless they are to go, their predictions."""
    queries = [select(cells.c.arrays).where(cells.c.arrays.is_not(None), *conditions)]
    if predictions:
        bank = select(bank_rows.c.file).join(cells, cells.c.key == bank_rows.c.key)
        queries.append(bank.where(bank_rows.c.file.is_not(None), *conditions))
    with store.database.reading() as connection:
        return {name for query in queries for name in connection.execute(query).scalars()}


def _unused_plugins(store: Store, conditions: list[ColumnElement[bool]]) -> list[str]:
    """Return the hashes of plug-in files that no specification names."""
    with store.database.reading() as connection:
        stored = set(connection.execute(select(plugins.c.hash)).scalars())
        if stored:
            for spec in connection.execute(select(cells.c.spec).where(*conditions)).scalars():
                stored -= plugin_hashes(spec)
            stored -= set(connection.execute(select(rescored.c.version).distinct()).scalars())
    return sorted(stored)


def _remove_unwanted(connection: Connection) -> None:
    keys: Any = select(wanted.c.key)
    for table in (metrics, bank_rows, rescored, cells, leases):
        connection.execute(delete(table).where(table.c.key.not_in(keys)))
    if has_recalibrated(connection):
        connection.execute(delete(recalibrated).where(recalibrated.c.key.not_in(keys)))
    used = select(cells.c.environment).where(cells.c.environment.is_not(None))
    connection.execute(delete(environments).where(environments.c.hash.not_in(used)))
