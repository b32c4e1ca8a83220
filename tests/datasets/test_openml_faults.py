"""Broken and hostile answers of OpenML, options and servers that cannot be used: one line each."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from tests.fixtures.commands import Command
from tests.fixtures.openml import FOLDS_AT, Service, fetched, make

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
