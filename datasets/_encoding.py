"""Turns the columns of a table into features; everything that is fitted is fitted on training rows.

`fit_encoding` is given the training rows alone, as a table of their own, and `encode` knows of them only what is in
the encodings: no value, category or gap of a test row can reach a training row. What fills a gap is no part of it:
gaps stay NaN, and the harness fills them with the mean of the rows that train (`Split.gaps`), when it scales.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

import numpy as np

from bench.api import Array, UserError
from bench.datasets._table import Column, Table, by_size, comma_message, is_missing, not_a_number

MOST_CATEGORIES = 200  # of one column that becomes a feature each
Categories = Literal["refuse", "one-hot", "ordinal"]
Missing = Literal["refuse", "impute"]


@dataclass(frozen=True)
class Rules:
    """What a user says about the columns of a table."""

    categories: Categories
    missing: Missing
    categorical: tuple[str, ...]  # columns of numbers that name categories
    dates: tuple[str, ...]
    commas: str  # what to do about a decimal comma


@dataclass(frozen=True)
class Encoding:
    """How one column becomes features."""

    name: str
    kind: Literal["number", "one-hot", "ordinal", "date"]
    categories: tuple[str, ...] = ()  # of the training rows
    indicator: bool = False  # whether one more feature is 1 where the cell is missing

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        if self.kind == "one-hot":
            made = tuple(f"{self.name}={category}" for category in self.categories)
        elif self.kind == "date":
            made = tuple(f"{self.name}:{part}" for part in DATE_PARTS)
        else:
            made = (self.name,)
        return (*made, f"{self.name}:missing") if self.indicator else made


def rows_of(table: Table, rows: Array) -> Table:
    """Return some rows of a table as a table that gives nothing of the others."""
    return replace(table, columns=_SomeRows(table.columns, rows), lines=table.lines[rows])


class _SomeRows(Mapping[str, Column]):
    """Some rows of columns; each column is cut out when it is read, so that a large table is not held twice."""

    def __init__(self, columns: Mapping[str, Column], rows: Array) -> None:
        self._columns, self._rows = columns, rows

    def __getitem__(self, name: str) -> Column:
        column = self._columns[name]
        if column.codes is None:
            return Column(column.numbers[self._rows])
        codes = column.codes[self._rows]
        found = np.unique(codes[codes >= 0])
        renumbered = np.full(len(column.words) + 1, -1, dtype=np.int32)  # the last: of code -1
        renumbered[found] = np.arange(len(found))
        return Column(column.numbers[self._rows], renumbered[codes], tuple(column.words[place] for place in found))

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def refuse(table: Table, names: Sequence[str], rules: Rules) -> None:
    """Raise for the first cell, in the order of the file, of which the rules say nothing."""
    refused = {}
    for name in names:
        if name not in (*rules.categorical, *rules.dates) and (message := comma_message(table, name, rules.commas)):
            raise UserError(message)
        missing = missing_cells(table, name)
        words = np.isnan(table.columns[name].numbers) & ~missing
        takes_words = rules.categories != "refuse" or name in rules.dates
        bad = np.flatnonzero(missing & (rules.missing == "refuse") | words & (not takes_words))
        if len(bad):
            refused[name] = bad
    if refused:
        name = min(refused, key=lambda each: (refused[each][0], names.index(each)))
        row, count = int(refused[name][0]), sum(map(len, refused.values()))
        gap = missing_cells(table, name)[row]
        gaps = rules.missing == "refuse" and any(missing_cells(table, each).any() for each in refused)
        advice = "" if gap else "categories = 'one-hot', or dates"
        advice = ", ".join(part for part in (advice, "missing = 'impute'" if gaps else "") if part)
        raise UserError(f"{not_a_number(table, name, row, count)} (options: {advice}, ignore)")


def fit_encoding(training: Table, names: Sequence[str], rules: Rules) -> list[Encoding]:
    """Return how each of these columns becomes features, from the training rows alone."""
    return [_fit(training, name, rules) for name in names]


def _fit(training: Table, name: str, rules: Rules) -> Encoding:
    column, missing = training.columns[name], missing_cells(training, name)
    if missing.all():
        raise UserError(f"{training.path}: column {name!r} has no value in the training rows; leave it out: ignore")
    gaps = bool(missing.any())
    if name in rules.dates:
        return Encoding(name, "date", indicator=gaps)
    is_word = np.isnan(column.numbers) & ~missing
    named = name in rules.categorical
    if not named and not is_word.any():
        return Encoding(name, "number", indicator=gaps)
    if not named and not (is_word | missing).all():
        row = int(np.flatnonzero(is_word)[0])
        advice = f"if it holds categories, categorical = ['{name}']"
        raise UserError(f"{not_a_number(training, name, row, int(is_word.sum()))}; {advice}")
    if rules.categories == "refuse":  # `refuse` has seen to it
        raise UserError(f"{training.path}: column {name!r} holds words; categories = 'one-hot' or 'ordinal'")
    categories = tuple(sorted((word for word in column.words if not is_missing(word)), key=by_size))
    if rules.categories == "one-hot" and len(categories) > MOST_CATEGORIES:
        raise UserError(
            f"{training.path}: column {name!r} has {len(categories)} categories, at most {MOST_CATEGORIES} become a "
            "feature each; leave it out (ignore), or categories = 'ordinal'"
        )
    return Encoding(name, rules.categories, categories, gaps)


def encode(table: Table, encodings: Sequence[Encoding]) -> Array:
    """Return the features of a table's rows [rows, features]; NaN where a value is missing or was never seen."""
    x = np.empty((len(table), sum(len(each.features) for each in encodings)))
    first = 0
    for each in encodings:
        missing = missing_cells(table, each.name)
        values = _values(table, each, missing)
        last = first + values.shape[1]
        x[:, first:last] = values
        if each.indicator:
            x[:, last] = missing
        first = last + each.indicator
    return x


def _values(table: Table, encoding: Encoding, missing: Array) -> Array:
    column = table.columns[encoding.name]
    if encoding.kind == "number":
        bad = np.flatnonzero(np.isnan(column.numbers) & ~missing)
        if len(bad):
            raise UserError(not_a_number(table, encoding.name, bad[0], len(bad)))
        return column.numbers[:, None]
    if encoding.kind == "date":
        return date_features(dates_of(table, encoding.name, missing))
    known = {category: place for place, category in enumerate(encoding.categories)}
    # The last is that of numbers, which a column of words has at rows that were not seen.
    places = np.array([*(known.get(word, -1) for word in column.words), -1])
    code = places[-1:].repeat(len(table)) if column.codes is None else places[column.codes]
    if encoding.kind == "one-hot":
        hot: Array = (code[:, None] == np.arange(len(encoding.categories))).astype(np.float64)
        return hot
    return np.where(code >= 0, code, np.nan)[:, None]


def missing_cells(table: Table, name: str) -> Array:
    """Return at which rows a cell is missing."""
    column = table.columns[name]
    return column.which([word for word in column.words if is_missing(word)])


DATE_PARTS = ("days", "year-sin", "year-cos", "week-sin", "week-cos")


def dates_of(table: Table, name: str, missing: Array) -> Array:
    """Return days since 1970 (NaN: missing) of a column of ISO dates, with or without a time, which was read as text.

    Times with a zone are compared in UTC.
    """
    column = table.columns[name]
    days = np.full(len(column.words) + 1, np.nan)
    for place, word in enumerate(column.words):
        if not is_missing(word):
            try:
                moment = datetime.fromisoformat(word)
            except ValueError:
                row = int(np.flatnonzero(column.which((word,)))[0])
                form = "write dates as 2026-01-31 or 2026-01-31T13:45"
                raise UserError(f"{table.place(row, name)}: {word!r} is not a date; {form}") from None
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
            days[place] = (moment - EPOCH).total_seconds() / 86_400
    found: Array = days[column.codes]
    found[missing] = np.nan
    return found


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def date_features(days: Array) -> Array:
    """Return days since 1970, and where in the year and in the week they are, as points on circles."""
    year, week = 2 * np.pi * days / 365.2425, 2 * np.pi * days / 7
    return np.column_stack([days, np.sin(year), np.cos(year), np.sin(week), np.cos(week)])
