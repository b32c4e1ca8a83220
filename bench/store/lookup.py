"""Finds one cell in a store, by its key or its place in a suite, with everything stored about it."""

import json
import re
from typing import Any

from sqlalchemy import ColumnElement, select

from bench.errors import UserError
from bench.spec.spec import spec_or_none
from bench.store.store import Store, plugin_hashes
from bench.store.tables import cells, environments, metrics, predictions, rescored, wanted

SHORTEST = 4  # characters of a key that identify it


def find_key(store: Store, name: str, suite: str | None = None) -> str:
    """Return the key of a cell named by its key, by the first characters of it, or as DATASET/METHOD/SEED."""
    conditions = [] if suite is None else [wanted.c.suite == suite]
    if name.count("/") >= 2:
        dataset, method, seed = name.rsplit("/", 2)
        if not re.fullmatch(r"\d{1,18}", seed):
            raise UserError(f"{name}: the seed must be a number, as in DATASET/METHOD/SEED")
        conditions += [wanted.c.dataset == dataset, wanted.c.method == method, wanted.c.seed == int(seed)]
        found = _keys(store, conditions)
        hint = "more than one suite has such a cell; name one with --suite"
    else:
        if len(name) < SHORTEST:
            raise UserError(f"{name!r}: give at least {SHORTEST} characters of a key, or DATASET/METHOD/SEED")
        found = _keys(store, [wanted.c.key == name, *conditions]) | _stored(store, cells.c.key == name, suite)
        if not found and re.fullmatch("[0-9a-f]+", name):
            after = name + "g"  # keys are hexadecimal: greater than all keys with this beginning
            found = _keys(store, [wanted.c.key >= name, wanted.c.key < after, *conditions])
            found |= _stored(store, (cells.c.key >= name) & (cells.c.key < after), suite)
        hint = "give more characters of the key"
    if not found:
        where = f"suite {suite} of the store" if suite else "the store"
        raise UserError(f"{name}: {where} {store.address} has no such cell; 'uqbench export' lists all with their keys")
    if len(found) > 1:
        some = ", ".join(sorted(found)[:3])
        raise UserError(f"{name}: {len(found)} cells match ({some}{', ...' if len(found) > 3 else ''}); {hint}")
    return found.pop()


def _keys(store: Store, conditions: list[ColumnElement[bool]]) -> set[str]:
    return {row["key"] for row in store.database.rows(select(wanted.c.key).where(*conditions))}


def _stored(store: Store, condition: ColumnElement[bool], suite: str | None) -> set[str]:
    """Return keys of results, including those that no suite contains any more."""
    if suite is not None:
        return set()
    return {row["key"] for row in store.database.rows(select(cells.c.key).where(condition))}


def describe(store: Store, key: str) -> dict[str, Any]:
    """Return everything stored about a cell, as plain data."""
    with store.database.reading() as connection:
        query = select(cells, environments.c.content.label("environment_json"))
        query = query.join(environments, environments.c.hash == cells.c.environment, isouter=True)
        row = dict(connection.execute(query.where(cells.c.key == key)).mappings().one_or_none() or {})
        columns = [column for column in wanted.c if column.name != "key"]
        order = (wanted.c.suite, wanted.c.dataset, wanted.c.method, wanted.c.seed)
        places = connection.execute(select(*columns).where(wanted.c.key == key).order_by(*order)).mappings()
        sources = store.plugins(plugin_hashes(row.get("spec")))
        later = select(*(c for c in rescored.c if c.name != "key")).where(rescored.c.key == key)
        bank = select(*(c for c in predictions.c if c.name != "key")).where(predictions.c.key == key)
        values = connection.execute(select(metrics).where(metrics.c.key == key).order_by(metrics.c.metric))
        return {
            "key": key,
            "places": [dict(place) for place in places],
            "status": row.get("status", "missing"),
            "message": row.get("message") or "",
            "spec": spec.plain() if (spec := spec_or_none(row.get("spec"))) else row.get("spec") or {},
            "training": json.loads(row.get("training") or "{}"),
            "timing": {name: row.get(name) for name in ("seconds", "cpu_seconds", "started", "finished")},
            **{name: row.get(name) for name in ("code", "dirty", "suite_hash", "arrays")},
            "environment": json.loads(row.get("environment_json") or "{}"),
            "plugins": [
                {"hash": name, "file": source.name, "source": source.content.decode("utf-8", "backslashreplace")}
                for name, source in sources.items()
            ],
            "metrics": {value.metric: value.value for value in values},
            "rescored": [dict(row) for row in connection.execute(later.order_by(rescored.c.metric)).mappings()],
            "predictions": dict(kept) if (kept := connection.execute(bank).mappings().one_or_none()) else None,
        }
