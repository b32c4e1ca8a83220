"""Who is working on what: a driver claims cells before it runs them, so that two drivers share one suite.

A driver shows that it is alive by its beat. One that was killed on this machine is known to be dead at once; one on
another machine when its beat is a minute old. Its cells are then anybody's.
"""

import os
import secrets
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select

from bench.store.database import Database, chunks, insert
from bench.store.schema import cells, claims, drivers

LIFE = 60.0  # seconds after its last beat in which a driver is taken to be alive


@dataclass(frozen=True)
class Owner:
    """A driver: where it runs, and a mark that no other process has."""

    name: str  # host:pid:token

    @property
    def host(self) -> str:
        """The machine it runs on."""
        return self.name.rsplit(":", 2)[0]

    @property
    def pid(self) -> int | None:
        """The number of its process there."""
        parts = self.name.rsplit(":", 2)
        return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() else None


def living_owner() -> Owner:
    """Return the owner that this process is; another one at every call."""
    return Owner(f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}")


def is_living(owner: Owner, age: float) -> bool:
    """Is a driver alive whose last beat is this many seconds old?"""
    if age >= LIFE:
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


def living(database: Database, connection: Connection) -> list[dict[str, Any]]:
    """Return one row a driver that is alive: name, since, beat, age of the beat."""
    now = database.now(connection)
    rows = [dict(row) for row in connection.execute(select(drivers).order_by(drivers.c.name)).mappings()]
    aged = [{**row, "age": now - row["beat"]} for row in rows]
    return [row for row in aged if is_living(Owner(row["name"]), row["age"])]


def beat(database: Database, connection: Connection, owner: Owner) -> None:
    """Note that a driver is alive."""
    now = database.now(connection)
    row = insert(connection, drivers).values(name=owner.name, since=now, beat=now)
    connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"beat": now}))


def claim(database: Database, connection: Connection, keys: Sequence[str], owner: Owner) -> set[str]:
    """Make those of the keys ours that have no result and no living driver; return all that are ours then."""
    beat(database, connection, owner)
    alive = {row["name"] for row in living(database, connection)} | {owner.name}
    dead = [name for name in connection.execute(select(drivers.c.name)).scalars() if name not in alive]
    for part in chunks(dead):
        connection.execute(delete(claims).where(claims.c.owner.in_(part)))
        connection.execute(delete(drivers).where(drivers.c.name.in_(part)))
    ours: set[str] = set()
    for part in chunks(sorted(set(keys))):
        rows = [{"key": key, "owner": owner.name} for key in part]
        connection.execute(insert(connection, claims).on_conflict_do_nothing(), rows)
        # Results are looked at after the claim: who stored one a moment ago has given its claim up only then.
        known = select(cells.c.key).where(cells.c.key.in_(part), cells.c.status != "failed")
        done = list(connection.execute(known).scalars())
        connection.execute(delete(claims).where(claims.c.key.in_(done), claims.c.owner == owner.name))
        held = select(claims.c.key).where(claims.c.key.in_(part), claims.c.owner == owner.name)
        ours.update(connection.execute(held).scalars())
    return ours


def release(connection: Connection, owner: Owner, keys: Iterable[str] | None) -> None:
    """Give claims back; None: all of them, and the driver is no more."""
    if keys is None:
        connection.execute(delete(claims).where(claims.c.owner == owner.name))
        connection.execute(delete(drivers).where(drivers.c.name == owner.name))
        return
    for part in chunks(sorted(keys)):
        connection.execute(delete(claims).where(claims.c.key.in_(part), claims.c.owner == owner.name))
