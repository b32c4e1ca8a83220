"""Cleaning a store up: array files that no cell refers to, and results that no suite asks for any more."""

import contextlib
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, select

from bench.artifacts import TEMPORARY
from bench.database import told
from bench.errors import UserError
from bench.schema import cells, claims, environments, metrics, wanted
from bench.store import Store


@dataclass(frozen=True)
class Cleaned:
    """What was removed, or would be."""

    results: int
    array_files: int
    temporary_files: int
    bytes: int  # of the files


def clean(store: Store, *, unwanted: bool = False, dry_run: bool = False) -> Cleaned:
    """Remove what nobody needs; with `unwanted` also results that no suite asks for any more."""
    drivers = store.drivers()
    if unwanted and drivers and not dry_run:
        # A run forgets what its suite wanted before it notes it anew.
        raise UserError(
            f"--unwanted: {drivers[0]['name']} is working on this store, and what it wants may not be noted yet; "
            "try again when it has ended"
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
    with told(store.shown):
        for path, _ in () if dry_run else lost:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
    return Cleaned(results, len(lost) - temporary, temporary, sum(size for _, size in lost))


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
