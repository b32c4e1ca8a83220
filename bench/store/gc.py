"""Removes array files that no cell refers to and, on request, unwanted results and checkpoints."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, select

from bench.errors import UserError
from bench.machine.files import TEMPORARY
from bench.store.database import user_errors
from bench.store.store import Store, plugin_hashes
from bench.store.tables import cells, environments, leases, metrics, plugins, wanted


@dataclass(frozen=True)
class Cleaned:
    """Counts of what was removed, or would be in a dry run."""

    results: int
    array_files: int
    temporary_files: int
    bytes: int  # of the files
    checkpoint_files: int = 0
    plugins: int = 0  # sources of plug-in files that no cell names


def clean(store: Store, *, unwanted: bool = False, checkpoints: bool = False, dry_run: bool = False) -> Cleaned:
    """Remove array files that no cell refers to.

    `unwanted`: also results that no suite contains any more. `checkpoints`: also those of unfinished trainings, which
    then start again.
    """
    drivers = store.drivers()
    if (unwanted or checkpoints) and drivers and not dry_run:
        # A run deletes the list of its suite's cells before it writes the new one.
        option = "--unwanted" if unwanted else "--checkpoints"
        raise UserError(f"{option}: {drivers[0]['name']} is working on this store; try again when it has ended")
    is_wanted = select(wanted.c.key).where(wanted.c.key == cells.c.key).exists()
    with store.database.reading() as connection:
        count = select(func.count()).select_from(cells).where(~is_wanted)
        results = int(connection.execute(count).scalar_one()) if unwanted else 0
    if results and not dry_run:
        store.database.write(_remove_unwanted, lock=cells)
    referenced = _referenced(store, [is_wanted] if unwanted else [])
    lost = store.arrays.orphans(referenced, idle=not drivers)
    temporary = sum(path.suffix == TEMPORARY for path, _ in lost)
    kept = _checkpoint_files(store) if checkpoints else []
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
    return Cleaned(results, len(lost) - temporary, temporary, size, len(kept), len(sources))


def _checkpoint_files(store: Store) -> list[tuple[Path, int]]:
    from bench.training.checkpoints import folder_of  # imports torch

    return [(path, path.stat().st_size) for path in sorted(folder_of(store.arrays.folder).glob("*/*.safetensors"))]


def _referenced(store: Store, conditions: list[ColumnElement[bool]]) -> set[str]:
    query = select(cells.c.arrays).where(cells.c.arrays.is_not(None), *conditions)
    with store.database.reading() as connection:
        return set(connection.execute(query).scalars())


def _unused_plugins(store: Store, conditions: list[ColumnElement[bool]]) -> list[str]:
    """Return the hashes of plug-in files that no specification names."""
    with store.database.reading() as connection:
        stored = set(connection.execute(select(plugins.c.hash)).scalars())
        if stored:
            for spec in connection.execute(select(cells.c.spec).where(*conditions)).scalars():
                stored -= plugin_hashes(spec)
    return sorted(stored)


def _remove_unwanted(connection: Connection) -> None:
    keys: Any = select(wanted.c.key)
    for table in (metrics, cells, leases):
        connection.execute(delete(table).where(table.c.key.not_in(keys)))
    used = select(cells.c.environment).where(cells.c.environment.is_not(None))
    connection.execute(delete(environments).where(environments.c.hash.not_in(used)))
