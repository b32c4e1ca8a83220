"""How far the suites of a store are, counted by the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, case, func, select

from bench.store.leases import living
from bench.store.schema import cells, claims, suites, wanted
from bench.store.store import Store

STATES = ("done", "diverged", "running", "failed", "missing")


@dataclass(frozen=True)
class Status:
    """Counts of cells, and who is working."""

    rows: Sequence[dict[str, Any]]  # suite (or dataset and method), and one count a state
    drivers: Sequence[dict[str, Any]]  # name, since, beat, age, cells
    unwanted: int  # results that no suite asks for any more
    database_bytes: int
    array_files: int
    array_bytes: int


def status(store: Store, suite: str | None = None) -> Status:
    """Count the cells of every suite, or of each dataset and method of one."""
    groups = [wanted.c.suite] if suite is None else [wanted.c.dataset, wanted.c.method]
    with store.database.reading() as connection:
        drivers = living(store.database, connection)
        names = [driver["name"] for driver in drivers]
        state = case(
            (cells.c.status == "ok", "done"),
            (cells.c.status == "diverged", "diverged"),
            (claims.c.key.is_not(None), "running"),
            (cells.c.status == "failed", "failed"),
            else_="missing",
        )
        counts = [func.sum(case((state == name, 1), else_=0)).label(name) for name in STATES]
        query = select(*groups, *counts).join(cells, cells.c.key == wanted.c.key, isouter=True)
        query = query.join(claims, and_(claims.c.key == wanted.c.key, claims.c.owner.in_(names)), isouter=True)
        if suite is not None:
            query = query.where(wanted.c.suite == suite)
        found = connection.execute(query.group_by(*groups).order_by(*groups)).mappings()
        rows = [{name: int(value) if name in STATES else value for name, value in row.items()} for row in found]
        if suite is None:  # one that has no cell is still there
            known = {row["suite"] for row in rows}
            others = [name for name in connection.execute(select(suites.c.name)).scalars() if name not in known]
            rows = sorted([*rows, *({"suite": name} | dict.fromkeys(STATES, 0) for name in others)], key=_by_suite)
        held = connection.execute(select(claims.c.owner, func.count()).group_by(claims.c.owner))
        working = {row[0]: int(row[1]) for row in held}
        asked = select(wanted.c.key).where(wanted.c.key == cells.c.key).exists()
        unwanted = connection.execute(select(func.count()).select_from(cells).where(~asked)).scalar_one()
    files, size = store.arrays.usage()
    told = [{**driver, "cells": working.get(driver["name"], 0)} for driver in drivers]
    return Status(rows, told, int(unwanted), store.database.size(), files, size)


def _by_suite(row: dict[str, Any]) -> str:
    return str(row["suite"])
