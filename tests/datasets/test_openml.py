"""Tables of OpenML over a server on the loopback address, which answers in OpenML's format."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import _openml as reference
from sklearn.externals import _arff as liac

from bench.api import Dataset
from bench.datasets._arff import read_arff, read_header
from bench.errors import UserError
from bench.plan.cells import checked
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from tests.fixtures.commands import Command
from tests.fixtures.sites import Site

ROWS, FOLDS = 60, 5
FOLDS_AT = "/api_splits/get/501/Task_501_splits.arff"
HEADER = r"""% A comment
@RELATION 'houses of a town'

@ATTRIBUTE id INTEGER
@ATTRIBUTE area NUMERIC
@attribute 'kind of house' {flat, 'detached, with garden', "d'Artagnan"}
@ATTRIBUTE zone {1,2,10}
@ATTRIBUTE agent STRING
@ATTRIBUTE note REAL
@ATTRIBUTE rooms real
@ATTRIBUTE empty NUMERIC
@ATTRIBUTE price NUMERIC

@DATA
"""
KINDS = ["flat", "'detached, with garden'", '"d\'Artagnan"', "?"]


def table() -> pd.DataFrame:
    """The cells as an ARFF file has them."""
    random = np.random.default_rng(0)
    area = random.uniform(40, 200, ROWS).round(1)
    return pd.DataFrame(
        {
            "id": np.arange(ROWS),
            "area": np.where(random.random(ROWS) < 0.15, "?", area.astype(str)),
            "kind of house": random.choice(KINDS, ROWS),
            "zone": random.choice(["1", "2", "10", "?"], ROWS),
            "agent": random.choice(["Ann", "'Bo b'", "Cy"], ROWS),
            "note": random.integers(0, 9, ROWS),
            "rooms": random.integers(1, 7, ROWS),
            "empty": "?",
            "price": (3 * area + random.normal(0, 5, ROWS)).round(3),
        }
    )


def arff() -> bytes:
    return (HEADER + "\n".join(",".join(map(str, row)) for row in table().to_numpy()) + "\n\n").encode()


def folds() -> bytes:
    fold = np.random.default_rng(1).permutation(ROWS) % FOLDS
    lines = [
        f"{'TEST' if fold[row] == number else 'TRAIN'},{row},0,{number}"
        for number in range(FOLDS)
        for row in range(ROWS)
    ]
    head = "@RELATION splits\n@ATTRIBUTE type {TRAIN,TEST}\n@ATTRIBUTE rowid INTEGER\n@ATTRIBUTE repeat INTEGER\n"
    return (head + "@ATTRIBUTE fold INTEGER\n@DATA\n" + "\n".join(lines) + "\n").encode()


class Service:
    """The answers of the service, as values that a test may change, and the site that gives them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.arff, self.folds = arff(), folds()
        self.description: dict[str, Any] = {
            "id": "77",
            "name": "houses",
            "version": "1",
            "description": "Houses.",
            "format": "ARFF",
            "upload_date": "2023-05-05T12:00:00",
            "licence": "CC BY 4.0",
            "url": f"{site.address}/data/v1/download/9/houses.arff",
            "file_id": "9",
            "default_target_attribute": "price",
            "row_id_attribute": "id",
            "ignore_attribute": ["note"],
            "visibility": "public",
            "status": "active",
            "processing_date": "2023-05-05 12:01:00",
            "md5_checksum": hashlib.md5(self.arff).hexdigest(),
        }
        names: list[str] = [str(name) for name in table()]
        kinds = {"kind of house": "nominal", "zone": "nominal", "agent": "string"}
        self.features: list[Any] = [
            {
                "index": str(index),
                "name": name,
                "data_type": kinds.get(name, "numeric"),
                "is_target": str(name == "price").lower(),
                "is_ignore": str(name == "note").lower(),
                "is_row_identifier": str(name == "id").lower(),
                "number_of_missing_values": "0",
            }
            for index, name in enumerate(names)
        ]
        self.task: dict[str, Any] = {
            "task_id": "501",
            "task_type": "Supervised Regression",
            "input": [
                {"name": "source_data", "data_set": {"data_set_id": "77", "target_feature": "price"}},
                {
                    "name": "estimation_procedure",
                    "estimation_procedure": {
                        "id": "7",
                        "type": "crossvalidation",
                        "data_splits_url": site.address + FOLDS_AT,
                        "parameter": [{"name": "number_repeats", "value": "1"}, {"name": "number_folds", "value": "5"}],
                    },
                },
                {"name": "cost_matrix", "cost_matrix": []},
            ],
        }
        self.publish()

    def publish(self) -> None:
        """Give the site the answers."""
        api, files = "/api/v1/json", self.site.files
        files[f"{api}/data/77"] = json.dumps({"data_set_description": self.description}).encode()
        files[f"{api}/data/features/77"] = json.dumps({"data_features": {"feature": self.features}}).encode()
        files[f"{api}/data/qualities/77"] = json.dumps({"data_qualities": {"quality": []}}).encode()
        files[f"{api}/task/501"] = json.dumps({"task": self.task}).encode()
        files["/data/v1/download/9/houses.arff"] = self.arff
        files[FOLDS_AT] = self.folds


@pytest.fixture
def service(site: Site, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setenv("UQBENCH_OPENML", site.address)
    return Service(site)


def make(name: str = "openml:77", **options: object) -> Dataset:
    dataset: Dataset = Registry().make("dataset", name, options)
    return dataset


def fetched(data_folder: Path, name: str = "openml:77", **options: object) -> Dataset:
    dataset = make(name, **options)
    dataset.fetch(data_folder)
    return dataset


def test_a_table_is_what_scikit_learn_reads_from_the_same_server(
    service: Service, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
        address = getattr(reference, name).replace("https://www.openml.org", service.site.address)
        monkeypatch.setattr(reference, name, address)
    found = reference.fetch_openml(data_id=77, as_frame=True, parser="liac-arff", cache=False)
    assert list(found.data) == ["area", "kind of house", "zone", "agent", "rooms", "empty"]
    found.frame.drop(columns="empty").to_csv(tmp_path / "same.csv", index=False)
    as_csv = make(
        f"csv:{tmp_path / 'same.csv'}", target="price", categories="one-hot", categorical=["zone"], missing="impute"
    ).load(3)
    split = checked(fetched(data_folder).load(3))
    assert split.features == as_csv.features
    assert "kind of house=detached, with garden" in split.features
    assert {"zone=1", "zone=10", "zone:missing", "area:missing", "agent=Bo b"} <= set(split.features)
    for part in ("train_x", "train_y", "test_x", "test_y"):
        np.testing.assert_array_equal(getattr(split, part), getattr(as_csv, part))


def test_the_folds_of_a_task_are_the_splits(service: Service, data_folder: Path) -> None:
    dataset = fetched(data_folder, "openml:77?task_id=501")
    prices = table()["price"].to_numpy()
    fold = np.random.default_rng(1).permutation(ROWS) % FOLDS
    for number in range(FOLDS):
        split = checked(dataset.load(number))
        assert split.count == FOLDS
        np.testing.assert_array_equal(np.sort(split.test_y), np.sort(prices[fold == number]))
        np.testing.assert_array_equal(np.sort(split.train_y), np.sort(prices[fold != number]))
    with pytest.raises(UserError, match=r"split 5 does not exist: task 501 has 5 folds"):
        dataset.load(5)


def test_from_the_command_line(service: Service, data_folder: Path, command: Command) -> None:
    missing = command("run", "smoke", "--dataset", "openml:77", "--store", "a.db")
    assert "'uqbench data fetch \"openml:77\"' downloads it" in missing.err
    done = command("data", "fetch", "openml:77")
    assert (done.code, done.err) == (0, "")
    assert "downloaded to" in done.out
    assert command("data", "fetch", "openml:77").out == "openml:77: there already\n"
    assert "size not published" in command("data", "list", "openml:77").out
    asked = len(service.site.asked)
    run = command(
        "run", "smoke", "--dataset", "openml:77", "--store", "a.db", "--seeds", "1", "--method", "deterministic"
    )
    assert "1 cells run" in run.out.replace("1 cell run", "1 cells run"), run.out + run.err
    assert len(service.site.asked) == asked  # a run downloads nothing
    (data_folder / "openml" / "77" / "data.arff").write_bytes(service.arff + b"\n")
    assert command("data", "verify", "openml:77").code == 1
    with pytest.raises(UserError, match=r"data\.arff is not the published file: md5"):
        make().load(0)


def test_the_datasets_of_a_suite_are_fetched(service: Service, command: Command, tmp_path: Path) -> None:
    suite = 'title = "Houses"\nseeds = 2\n[datasets.houses]\nuse = "openml"\npath = "77"\ntask_id = 501\n'
    (tmp_path / "houses.toml").write_text(suite + "[datasets.toy]\n[methods.deterministic]\n")
    done = command("data", "fetch", "--suite", "houses.toml")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].startswith("houses: downloaded to")
    assert done.out.splitlines()[1] == "toy: needs no download"
    assert command("data", "verify", "--suite", "houses.toml").code == 0


Change = Callable[[Service], object]
ABOUT = "/api/v1/json/data/77"
ERROR = b'{"error":{"code":"111","message":"Unknown\\u001b dataset"}}'


def answer(content: bytes, code: int = 0) -> Change:
    """Return what makes the server answer the first question with this."""

    def change(service: Service) -> None:
        service.site.files[ABOUT] = content
        service.site.errors |= {ABOUT: code} if code else {}

    return change


def other_folds(old: bytes, new: bytes) -> Change:
    def change(service: Service) -> None:
        service.site.files[FOLDS_AT] = service.folds.replace(old, new) if old else service.folds + new

    return change


def described(**facts: object) -> Change:
    """Return what makes the server describe the dataset in another way."""

    def change(service: Service) -> None:
        service.description |= facts
        service.publish()

    return change


def without_folds(service: Service) -> None:
    service.task["input"].pop(1)
    service.publish()


def nameless_column(service: Service) -> None:
    service.features.append("x")
    service.publish()


def task(place: int, key: str, **facts: object) -> Change:
    def change(service: Service) -> None:
        service.task["input"][place][key] |= facts
        service.publish()

    return change


HOSTILE: dict[str, tuple[Change, str]] = {
    "unknown": (lambda service: service.site.files.pop(ABOUT), r"the server says 404"),
    "refused": (answer(ERROR, 412), r"the server says 412 Precondition Failed \(Unknown  dataset\)"),
    "no JSON": (answer(b"<html>"), r"description\.json: .* it is not JSON"),
    "deep JSON": (answer(b"[" * 10**6), "it is not JSON"),
    "a list": (answer(b"[]"), "it has no 'data_set_description'"),
    "endless": (answer(b" " * (2**24 + 1)), "more than 16,777,216 bytes"),
    "another": (described(id="78"), "it describes dataset '78', not 77"),
    "sparse": (described(format="Sparse_ARFF"), "only ARFF tables are read"),
    "no checksum": (described(md5_checksum=None), "it has no md5_checksum"),
    "wrong checksum": (described(md5_checksum="0" * 32), "not the published file: md5 "),
    "a local file": (described(url="file:///etc/passwd"), "'file:///etc/passwd' is not an address"),
    "no address": (described(url={"a": 1}), "is not an address"),
    "two lines": (described(url="http://a/\nb"), "is not an address"),
    "no name": (nameless_column, "a column has no name"),
    "another dataset": (task(0, "data_set", data_set_id="78"), "task 501 is on dataset '78', not 77"),
    "no folds": (without_folds, "it has no 'estimation_procedure'"),
    "local folds": (task(1, "estimation_procedure", data_splits_url="/etc/passwd"), "'/etc/passwd' is not an address"),
    "folds of words": (other_folds(b"TEST,1,", b"TEST,one,"), "expected a whole number"),
    "a row twice": (other_folds(b"", b"TEST,7,0,0\n"), "or a row twice"),
    "an unknown part": (other_folds(b"", b"BOTH,7,0,0\n"), "expected TRAIN or TEST, got 'BOTH'"),
    "no header": (other_folds(b"@DATA", b""), "expected @attribute or @data"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_broken_and_hostile_answers_are_refused_in_one_line(
    case: str, service: Service, data_folder: Path, command: Command
) -> None:
    change, reason = HOSTILE[case]
    change(service)
    with pytest.raises(UserError, match=reason) as caught:
        fetched(data_folder, "openml:77?task_id=501")
    assert str(caught.value).isprintable()
    assert not list(data_folder.rglob("*.part")), "nothing is left to be continued"
    done = command("data", "fetch", "openml:77?task_id=501")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_folds_of_another_table_are_refused(service: Service, data_folder: Path) -> None:
    service.folds += b"TEST,60,0,0\n"
    service.publish()
    with pytest.raises(UserError, match="row 60 of a table of 60 rows"):
        fetched(data_folder, "openml:77?task_id=501").load(0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"path": "../77"}, "expected the number of a dataset of OpenML"),
        ({"path": "٣"}, "expected the number of a dataset of OpenML"),
        ({"path": "77", "task_id": 501, "splits": "time", "by": "id"}, "its folds are the splits"),
        ({"path": "77", "task_id": -1}, "the number of a task"),
    ],
)
def test_wrong_options(options: dict[str, object], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        make("openml", **options)


def test_targets_and_servers_that_cannot_be_used(
    service: Service, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = fetched(data_folder)
    with pytest.raises(UserError, match=r"openml:77: the target 'zone' is a category; task = 'classification'"):
        make(target="zone").load(0)
    with pytest.raises(UserError, match=r"openml:77: target: unknown column 'prise'"):
        make(target="prise").load(0)
    assert make(target="agent", task="classification").load(0).classes == 3
    assert dataset.skip() is None
    monkeypatch.setenv("UQBENCH_OPENML", "file:///")
    with pytest.raises(UserError, match=r"UQBENCH_OPENML: 'file:///' is not an address"):
        dataset.load(0)


CELLS = [r"a,'b, c',3,?", r"'it\'s', b ,3,4", '"a b", \'c\' ,3,"d\'e"', r"do,'\\',3,'x y'", "b,c,3,'?'"]


def test_rows_are_read_as_liac_arff_reads_them(tmp_path: Path) -> None:
    head = (
        "@relation r\n@attribute one string\n@ATTRIBUTE 'a two' string\n@attribute \"3\" numeric\n@attribute d string\n"
    )
    text = head + "@data\n" + "\n".join(CELLS * 3) + "\n"
    path = tmp_path / "cells.arff"
    path.write_text(text, "utf-8")
    expected = liac.loads(text)
    found = read_arff(path, frozenset())
    assert list(found.columns) == [name for name, _ in expected["attributes"]] == ["one", "a two", "3", "d"]
    for row, cells in enumerate(expected["data"]):
        for name, cell in zip(found.columns, cells, strict=True):
            assert found.columns[name].text(row) == ("?" if cell is None else f"{cell:g}" if name == "3" else cell)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no line @data"),
        ("@data\n", "the header declares no column"),
        ("@attribute a numeric\n@attribute a real\n@data\n", "declares 'a' twice"),
        ("@attribute a\n@data\n", "line 1: not a declaration of a column"),
        ("@attribute a relational\n@data\n", "column 'a' has type 'relational'"),
        ("@attribute a numeric\n1,2\n", "line 2: expected @attribute or @data, got '1,2'"),
        ("@attribute a numeric\n@data\n{0 1}\n", "line 3: sparse rows are not read"),
        ("@attribute a numeric\n@data\n1,2\n", "line 3: 2 cells where the header declares 1 columns"),
        ("@attribute a string\n@data\n'a\n", "line 3: a quotation mark is not closed"),
        ("@attribute a string\n@data\n'a'b\n", "line 3: a quotation mark is not closed, or stands inside"),
        ("@attribute a string\n@data\n\x80\n", "not UTF-8 text"),
    ],
)
def test_files_that_are_no_arff_tables(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.arff"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=reason):
        read_arff(path, frozenset())


def test_what_a_header_declares(tmp_path: Path) -> None:
    path = tmp_path / "table.arff"
    path.write_bytes(arff())
    header = read_header(path)
    assert header.names == tuple(table())
    assert header.nominal == {"kind of house", "zone"}
    assert header.words == {"agent"}


def test_the_suite_lists_the_35_tables_of_the_study_once_each() -> None:
    suite = load_suite("openml-ctr23")
    options = [entry.options for entry in suite.datasets.values()]
    assert {entry.use for entry in suite.datasets.values()} == {"openml"}
    assert len(options) == len({each["path"] for each in options}) == len({each["task_id"] for each in options}) == 35
