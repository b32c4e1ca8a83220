"""Leases of cells: a driver leases cells before it runs them, so that several drivers can share one suite.

A driver renews its leases regularly. They end when the driver's process on this machine has ended, or, on another
machine, when it has not renewed them for a minute; other drivers may then take its cells.
"""

import os
import secrets
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select

from bench.store.database import Database, chunks, insert, insert_rows
from bench.store.tables import cells, drivers, leases

LIFETIME = 60.0  # seconds that a driver counts as alive after it has renewed its leases


@dataclass(frozen=True)
class Owner:
    """A driver: its machine, its process, and a token that no other driver has."""

    name: str  # host:pid:token

    @property
    def host(self) -> str:
        """The machine it runs on."""
        return self.name.rsplit(":", 2)[0]

    @property
    def pid(self) -> int | None:
        """Its process on that machine."""
        parts = self.name.rsplit(":", 2)
        return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else None


def new_owner() -> Owner:
    """Return an owner in this process, different at every call."""
    return Owner(f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}")


def is_alive(owner: Owner, age: float) -> bool:
    """Return whether a driver is alive that renewed its leases this many seconds ago.

    A renewal in the future (a clock was wrong, or a foreign store says so) is as good as none: it would hold for ever.
    """
    if not -LIFETIME < age < LIFETIME:
        return False
    return owner.pid is None or owner.host != socket.gethostname() or _exists(owner.pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def live_drivers(database: Database, connection: Connection) -> list[dict[str, Any]]:
    """Return the drivers that are alive, one row each: name, since, beat (last renewal), age (seconds since then)."""
    query = select(drivers, (database.clock() - drivers.c.beat).label("age")).order_by(drivers.c.name)
    rows = [dict(row) for row in connection.execute(query).mappings()]
    return [row for row in rows if row["age"] is not None and is_alive(Owner(row["name"]), row["age"])]


def renew(database: Database, connection: Connection, owner: Owner) -> None:
    """Record that a driver is alive."""
    now = database.clock()
    row = insert(connection, drivers).values(name=owner.name, since=now, beat=now)
    connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"beat": now}))


def acquire(database: Database, connection: Connection, keys: Iterable[str], owner: Owner) -> set[str]:
    """Lease those of the cells that have no result and no live driver; return all that the owner holds then."""
    renew(database, connection, owner)
    wanted = sorted(set(keys))
    held = _take(connection, wanted, owner)
    if len(held) < len(wanted):  # only then it matters who else is alive
        _end_leases_of_the_dead(database, connection, owner)
        held |= _take(connection, [key for key in wanted if key not in held], owner)
        for part in chunks([key for key in wanted if key not in held]):
            own = select(leases.c.key).where(leases.c.key.in_(part), leases.c.owner == owner.name)
            held.update(connection.execute(own).scalars())
    # Results are read after the insertion: a driver that has just stored one gave its lease up only then.
    for part in chunks(sorted(held)):
        known = select(cells.c.key).where(cells.c.key.in_(part), cells.c.status != "failed")
        done = set(connection.execute(known).scalars())
        if done:
            connection.execute(delete(leases).where(leases.c.key.in_(done), leases.c.owner == owner.name))
            held -= done
    return held


def _take(connection: Connection, keys: Sequence[str], owner: Owner) -> set[str]:
    """Lease the cells that nobody has leased; return them."""
    taken: set[str] = set()
    for part in chunks(keys):
        rows = [{"key": key, "owner": owner.name} for key in part]
        taken.update(insert_rows(connection, leases, rows, _unless_leased).scalars())
    return taken


def _unless_leased(new: Any) -> Any:
    return new.on_conflict_do_nothing().returning(leases.c.key)


def _end_leases_of_the_dead(database: Database, connection: Connection, owner: Owner) -> None:
    alive = {row["name"] for row in live_drivers(database, connection)} | {owner.name}
    dead = [name for name in connection.execute(select(drivers.c.name)).scalars() if name not in alive]
    for part in chunks(dead):
        connection.execute(delete(leases).where(leases.c.owner.in_(part)))
        connection.execute(delete(drivers).where(drivers.c.name.in_(part)))


def release(connection: Connection, owner: Owner, keys: Iterable[str] | None) -> None:
    """End the leases of these cells; None: all of the owner's, and remove the owner."""
    if keys is None:
        connection.execute(delete(leases).where(leases.c.owner == owner.name))
        connection.execute(delete(drivers).where(drivers.c.name == owner.name))
        return
    for part in chunks(sorted(keys)):
        connection.execute(delete(leases).where(leases.c.key.in_(part), leases.c.owner == owner.name))
