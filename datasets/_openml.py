"""What OpenML's service says of a dataset and of a task, and the files that it names.

`api/v1/json/data/ID` describes a dataset (the address of its ARFF file, its md5, its target), `data/features/ID` its
columns, `task/ID` a task with the address of its folds. The answers have no checksum: everything in them is checked.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from bench.api import Array, File, UserError, download, find_file, missing_file
from bench.datasets._arff import read_arff
from bench.datasets._table import Table, number

VARIABLE = "UQBENCH_OPENML"  # another server, such as a mirror
SERVER = "https://www.openml.org"
MOST_DOCUMENT_BYTES = 2**24
MOST_FOLD_BYTES = 2**27
Folds = Sequence[tuple[Array, Array]]


@dataclass(frozen=True)
class Description:
    """A dataset as OpenML describes it."""

    file: File
    target: str  # "": none is declared
    ignored: frozenset[str]  # columns that are no features, numbers of rows among them


def documents(dataset: int) -> tuple[File, File]:
    """Return the description of a dataset and that of its columns."""
    return _document(f"{dataset}/description.json", f"data/{dataset}"), _document(
        f"{dataset}/features.json", f"data/features/{dataset}"
    )


def task_document(task: int) -> File:
    """Return the description of a task."""
    return _document(f"task-{task}/task.json", f"task/{task}")


def _document(name: str, place: str) -> File:
    server = os.environ.get(VARIABLE) or SERVER
    _check_address(server, VARIABLE)
    url = f"{server.rstrip('/')}/api/v1/json/{place}"
    return File(f"openml/{name}", url, None, most=MOST_DOCUMENT_BYTES, unverified=True)


def description(dataset: int) -> Description | None:
    """Return what is known of a dataset that was fetched, or None."""
    paths = [find_file(file.name) for file in documents(dataset)]
    return None if None in paths else _description(dataset, *filter(None, paths))


def _description(dataset: int, about: Path, columns: Path) -> Description:
    found = _part(_json(about), about, "data_set_description", dict)
    if str(found.get("id")) != str(dataset):
        raise _wrong(about, f"it describes dataset {str(found.get('id'))[:20]!r}, not {dataset}")
    form = str(found.get("format", "")).lower()
    if form != "arff":
        raise _wrong(about, f"the format is {form[:20]!r}; only ARFF tables are read")
    md5 = str(found.get("md5_checksum", "")).lower()
    if not re.fullmatch("[0-9a-f]{32}", md5):
        raise _wrong(about, "it has no md5_checksum")
    url = str(found.get("url", ""))
    _check_address(url, str(about))
    features = _part(_part(_json(columns), columns, "data_features", dict), columns, "feature", list)
    if not all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in features):
        raise _wrong(columns, "a column has no name")
    chosen = {key: [each["name"] for each in features if str(each.get(key)).lower() == "true"] for key in FLAGS}
    targets = chosen["is_target"]
    return Description(
        File(f"openml/{dataset}/data.arff", url, None, md5=md5),
        targets[0] if len(targets) == 1 else "",
        frozenset(chosen["is_ignore"] + chosen["is_row_identifier"]),
    )


FLAGS = ("is_target", "is_ignore", "is_row_identifier")


@dataclass(frozen=True)
class OpenmlTask:
    """A task as OpenML describes it: the target, and the file with the rows of each fold."""

    target: str
    folds: File


def task_description(task: int, dataset: int) -> OpenmlTask | None:
    """Return what is known of a task that was fetched, or None."""
    path = find_file(task_document(task).name)
    if path is None:
        return None
    found = _part(_json(path), path, "task", dict)
    if str(found.get("task_id")) != str(task):
        raise _wrong(path, f"it describes task {str(found.get('task_id'))[:20]!r}, not {task}")
    inputs = _part(found, path, "input", list)
    named = {str(each.get("name")): each for each in inputs if isinstance(each, dict)}
    source = _part(_part(named, path, "source_data", dict), path, "data_set", dict)
    procedure = _part(named, path, "estimation_procedure", dict)
    procedure = _part(procedure, path, "estimation_procedure", dict)
    if str(source.get("data_set_id")) != str(dataset):
        raise _wrong(path, f"task {task} is on dataset {str(source.get('data_set_id'))[:20]!r}, not {dataset}")
    url = str(procedure.get("data_splits_url", ""))
    _check_address(url, str(path))
    name = f"openml/task-{task}/splits.arff"
    return OpenmlTask(
        str(source.get("target_feature", "")), File(name, url, None, most=MOST_FOLD_BYTES, unverified=True)
    )


def fetch(dataset: int, task: int, folder: Path) -> None:
    """Download what is missing of a dataset, and of a task where its number is not 0."""
    for file in documents(dataset):
        download(file, folder)
    _read_or_remove(lambda: description(dataset), [folder / file.name for file in documents(dataset)])
    if known := description(dataset):
        download(known.file, folder)
    if not task:
        return
    path = download(task_document(task), folder)
    _read_or_remove(lambda: task_description(task, dataset), [path])
    if about := task_description(task, dataset):
        path = download(about.folds, folder)
        _read_or_remove(lambda: folds_of(path), [path])


def _read_or_remove(read: Any, paths: Sequence[Path]) -> None:
    """Read documents that were downloaded; those that cannot be used are not kept."""
    try:
        read()
    except UserError:
        for path in paths:
            path.unlink(missing_ok=True)
        raise


def needed(file: File) -> Path:
    """Return the path of an unverified file; raises where it was not fetched."""
    path = find_file(file.name)
    if path is None:
        raise UserError(missing_file(file.name))
    return path


def folds_of(path: Path) -> Folds:
    """Return training and test rows of each fold, repeat by repeat."""
    return _folds_of(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _folds_of(path: Path, changed: int) -> Folds:
    table = read_arff(path, frozenset({"type"}))
    lacking = {"type", "rowid", "repeat", "fold"} - set(table.columns)
    if lacking or "sample" in table.columns:
        about = f"no column {min(lacking)!r}" if lacking else "samples of a learning curve"
        raise UserError(f"{path}: not the folds of a cross-validation: {about}")
    types = table.columns["type"]
    rows, repeats, folds = (_whole(table, name) for name in ("rowid", "repeat", "fold"))
    tests, trains = types.which(("TEST",)), types.which(("TRAIN",))
    if not (tests | trains).all():
        row = int(np.flatnonzero(~(tests | trains))[0])
        raise UserError(f"{table.place(row, 'type')}: expected TRAIN or TEST, got {types.text(row)[:20]!r}")
    found = []
    for repeat, fold in np.unique(np.column_stack([repeats, folds]), axis=0):
        here = (repeats == repeat) & (folds == fold)
        train, test = rows[here & trains], rows[here & tests]
        together = np.concatenate([train, test])
        if not len(train) or not len(test) or len(np.unique(together)) != len(together):
            about = "no training or no test rows, or a row twice"
            raise UserError(f"{path}: repeat {repeat}, fold {fold}: {about}")
        found.append((train, test))
    return found


def _whole(table: Table, name: str) -> Array:
    """Return a column of whole numbers that are not negative."""
    column = table.columns[name]
    values = column.numbers
    if column.codes is not None:  # declared as categories
        values = np.array([number(word) for word in column.words] + [np.nan])[column.codes]
    bad = np.flatnonzero(~((values >= 0) & (values < 2**31) & (values == np.floor(values))))
    if len(bad):
        raise UserError(f"{table.place(int(bad[0]), name)}: expected a whole number, got {column.text(int(bad[0]))!r}")
    whole: Array = values.astype(np.int64)
    return whole


def _json(path: Path) -> Any:
    try:
        with path.open("rb") as content:
            text = content.read(MOST_DOCUMENT_BYTES + 1)
        if len(text) > MOST_DOCUMENT_BYTES:
            raise _wrong(path, f"more than {MOST_DOCUMENT_BYTES:,} bytes")
        return json.loads(text)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise _wrong(path, "it is not JSON") from None


def _part(whole: Any, path: Path, key: str, kind: type) -> Any:
    part = whole.get(key) if isinstance(whole, Mapping) else None
    if not isinstance(part, kind):
        raise _wrong(path, f"it has no {key!r}")
    return part


def _wrong(path: Path, reason: str) -> UserError:
    return UserError(f"{path}: not usable as an answer of OpenML: {reason}")


def _check_address(url: str, where: str) -> None:
    """Raise for an address that is no plain web address: a file of this machine, for example."""
    try:
        parts = urlsplit(url)
        plain = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        plain = False
    if not plain or len(url) > 2000:
        raise UserError(f"{where}: {url[:80]!r} is not an address that begins with https:// or http://")
