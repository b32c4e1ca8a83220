"""Tables of OpenML over a server on the loopback address."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import _openml as reference

from bench.errors import UserError
from bench.plan.cells import checked
from bench.plan.suite import load_suite
from tests.fixtures.commands import Command
from tests.fixtures.openml import FOLDS, ROWS, Service, fetched, make, table


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


def test_the_suite_lists_the_35_tables_of_the_study_once_each() -> None:
    suite = load_suite("openml-ctr23")
    options = [entry.options for entry in suite.datasets.values()]
    assert {entry.use for entry in suite.datasets.values()} == {"openml"}
    assert len(options) == len({each["path"] for each in options}) == len({each["task_id"] for each in options}) == 35
