"""The tables of a store."""

import math
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)


class Number(TypeDecorator[float]):
    """A float that may be NaN. SQLite has neither NaN nor -0, so they are NULL and 0 in both databases."""

    impl = Float(53)
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        """Return the value as it is stored."""
        return None if value is None or math.isnan(value) else value + 0.0

    def process_result_value(self, value: Any, dialect: Dialect) -> float:
        """Return the value that was meant."""
        return math.nan if value is None else float(value)


def _name(name: str) -> Column[str]:
    return Column(name, Text, primary_key=True)


def _whole(name: str) -> Column[int]:
    return Column(name, BigInteger, primary_key=True, autoincrement=False)


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text) for name in names]


def _floats(*names: str) -> list[Column[float]]:
    return [Column(name, Float(53)) for name in names]


meta = MetaData()
schema = Table("schema", meta, Column("version", Integer, primary_key=True))
suites = Table("suites", meta, _name("name"), *_texts("title", "baseline", "metrics", "content", "hash"))
_place = (_name("suite"), _name("dataset"), _whole("split"), _name("method"), _whole("seed"))
wanted = Table("wanted", meta, *_place, Column("key", Text, index=True))
_subject = (_name("suite"), _name("dataset"), _name("method"), _whole("number"))
remarks = Table("remarks", meta, *_subject, *_texts("text"))
environments = Table("environments", meta, _name("hash"), *_texts("content"))
cells = Table(
    "cells",
    meta,
    _name("key"),
    *_texts("spec", "status", "message", "training"),
    *_floats("seconds", "cpu_seconds"),
    *_texts("environment", "code"),
    Column("dirty", Boolean),
    *_texts("suite_hash"),
    Column("arrays", Text, index=True),
    *_floats("started", "finished"),
)
# Without a row number the metrics of a cell are stored together, and once rather than in an index too.
metrics = Table("metrics", meta, _name("key"), _name("metric"), Column("value", Number), sqlite_with_rowid=False)
# Files that were given with --plugin, by the hash of their content, which the specifications of their cells name.
plugins = Table("plugins", meta, _name("hash"), *_texts("name"), Column("content", LargeBinary))
# The files of all predictions of cells, by the key; without a file: why there is none.
predictions = Table(
    "predictions",
    meta,
    _name("key"),
    Column("file", Text, index=True),
    Column("bytes", BigInteger),
    *_texts("precision", "reason", "task"),
)
# Values that were computed from stored predictions after the run, and what they replaced.
rescored = Table(
    "rescored",
    meta,
    _name("key"),
    _name("metric"),
    *_texts("version", "precision"),
    Column("before", Number),
    *_floats("computed"),
    sqlite_with_rowid=False,
)
# Values of predictions whose calibration was corrected, where they are kept without the predictions.
recalibrated = Table(
    "recalibrated",
    meta,
    _name("key"),
    _name("correction"),
    _name("metric"),
    Column("value", Number),
    sqlite_with_rowid=False,
)
settings = Table("settings", meta, _name("name"), *_texts("value"))
searches = Table("searches", meta, _name("key"), *_texts("content"))
drivers = Table("drivers", meta, _name("name"), *_floats("since", "beat"))
leases = Table("claims", meta, _name("key"), Column("owner", Text, index=True))
