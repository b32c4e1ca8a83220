"""Cleaning a store up: array files that no cell refers to, and, where asked, unwanted results and checkpoints."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, select

from bench.errors import UserError
from bench.machine.files import TEMPORARY
from bench.store.database import told
from bench.store.schema import cells, claims, environments, metrics, wanted
from bench.store.store import Store


@dataclass(frozen=True)
class Cleaned:
    """What was removed, or would be."""

    results: int
    array_files: int
    temporary_files: int
    bytes: int  # of the files
    checkpoint_files: int = 0


def clean(store: Store, *, unwanted: bool = False, checkpoints: bool = False, dry_run: bool = False) -> Cleaned:
    """Remove what nobody needs.

    With `unwanted` also results that no suite asks for any more; with `checkpoints` also those of trainings that did
    not end, which would then begin anew.
    """
    drivers = store.drivers()
    if (unwanted or checkpoints) and drivers and not dry_run:
        # A run forgets what its suite wanted before it notes it anew.
        raise UserError(
            f"--{'unwanted' if unwanted else 'checkpoints'}: {drivers[0]['name']} is working on this store, and what "
            "it needs may not be noted yet; try again when it has ended"
        )
    asked = select(wanted.c.key).where(wanted.c.key == cells.c.key).exists()
    with store.database.reading() as connection:
        count = select(func.count()).select_from(cells).where(~asked)
        results = int(connection.execute(count).scalar_one()) if unwanted else 0
    if results and not dry_run:
        store.database.write(_remove_unwanted, lock=cells)
    referred = _referred(store, [asked] if unwanted else [])
    lost = store.arrays.orphans(referred, quiet=not drivers)
    temporary = sum(path.suffix == TEMPORARY for path, _ in lost)
    kept = _checkpoint_files(store) if checkpoints else []
    with told(store.shown):
        for path, _ in () if dry_run else [*lost, *kept]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        for folder in () if dry_run else {path.parent for path, _ in kept}:
            with contextlib.suppress(OSError):  # somebody else's file is in it
                folder.rmdir()
    size = sum(size for _, size in (*lost, *kept))
    return Cleaned(results, len(lost) - temporary, temporary, size, len(kept))


def _checkpoint_files(store: Store) -> list[tuple[Path, int]]:
    from bench.training.checkpoints import folder_of  # brings torch

    return [(path, path.stat().st_size) for path in sorted(folder_of(store.arrays.folder).glob("*/*.safetensors"))]


def _referred(store: Store, conditions: list[ColumnElement[bool]]) -> set[str]:
    query = select(cells.c.arrays).where(cells.c.arrays.is_not(None), *conditions)
    with store.database.reading() as connection:
        return set(connection.execute(query).scalars())


def _remove_unwanted(connection: Connection) -> None:
    asked: Any = select(wanted.c.key)
    connection.execute(delete(metrics).where(metrics.c.key.not_in(asked)))
    connection.execute(delete(cells).where(cells.c.key.not_in(asked)))
    connection.execute(delete(claims).where(claims.c.key.not_in(asked)))
    used = select(cells.c.environment).where(cells.c.environment.is_not(None))
    connection.execute(delete(environments).where(environments.c.hash.not_in(used)))
