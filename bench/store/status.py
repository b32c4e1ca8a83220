"""The progress of the suites in a store, counted by the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, case, func, select

from bench.store.bank import BankUsage, files_beside, usage
from bench.store.leases import live_drivers
from bench.store.store import Store
from bench.store.tables import cells, leases, suites, wanted

STATES = ("done", "diverged", "running", "failed", "missing")


@dataclass(frozen=True)
class Status:
    """Counts of cells by state, the live drivers, and the size of the store."""

    rows: Sequence[dict[str, Any]]  # suite (or dataset and method), and one count per state
    drivers: Sequence[dict[str, Any]]  # name, since, beat, age, cells
    unwanted: int  # results that no suite contains any more
    database_bytes: int
    array_files: int
    array_bytes: int
    predictions: BankUsage  # part of the array files
    network_files: int = 0
    network_bytes: int = 0


def status(store: Store, suite: str | None = None) -> Status:
    """Count the cells of every suite, or of each dataset and method of one."""
    groups = [wanted.c.suite] if suite is None else [wanted.c.dataset, wanted.c.method]
    with store.database.reading() as connection:
        drivers = live_drivers(store.database, connection)
        names = [driver["name"] for driver in drivers]
        state = case(
            (cells.c.status == "ok", "done"),
            (cells.c.status == "diverged", "diverged"),
            (leases.c.key.is_not(None), "running"),
            (cells.c.status == "failed", "failed"),
            else_="missing",
        )
        counts = [func.sum(case((state == name, 1), else_=0)).label(name) for name in STATES]
        query = select(*groups, *counts).join(cells, cells.c.key == wanted.c.key, isouter=True)
        query = query.join(leases, and_(leases.c.key == wanted.c.key, leases.c.owner.in_(names)), isouter=True)
        if suite is not None:
            query = query.where(wanted.c.suite == suite)
        found = connection.execute(query.group_by(*groups).order_by(*groups)).mappings()
        rows = [{name: int(value) if name in STATES else value for name, value in row.items()} for row in found]
        if suite is None:  # also suites without a cell
            known = {row["suite"] for row in rows}
            others = [name for name in connection.execute(select(suites.c.name)).scalars() if name not in known]
            rows += [{"suite": name} | dict.fromkeys(STATES, 0) for name in others]
            rows.sort(key=lambda row: str(row["suite"]))
        held = connection.execute(select(leases.c.owner, func.count()).group_by(leases.c.owner))
        working = {row[0]: int(row[1]) for row in held}
        is_wanted = select(wanted.c.key).where(wanted.c.key == cells.c.key).exists()
        bank = usage(connection)
        unwanted = connection.execute(select(func.count()).select_from(cells).where(~is_wanted)).scalar_one()
    files, size = store.arrays.usage()
    busy = [{**driver, "cells": working.get(driver["name"], 0)} for driver in drivers]
    networks = [path.stat().st_size for path in files_beside(store, "networks")]
    sizes = (store.database.size(), files, size, bank, len(networks), sum(networks))
    return Status(rows, busy, int(unwanted), *sizes)
