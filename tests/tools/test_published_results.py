"""Exports hold every value with its provenance and nothing else; the public leaderboard is built from them alone."""

import json
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import pytest
from pandas.testing import assert_frame_equal
from sqlalchemy import text

from bench.errors import UserError
from bench.plan.data_export import export_data
from bench.plugins.registry import Registry
from bench.stats import recalibrations
from bench.store.gc import clean
from bench.store.results import StoredResults
from bench.store.store import Store
from bench.workflow import recalibrate
from tests.fixtures.banks import filled
from tools.gallery_results import unpacked
from tools.published_results import build_site, merged, pack

ROOT = Path(__file__).resolve().parents[2]
EXPORTS = ROOT / "results"
KEPT = ("key", "spec", "status", "training", "cpu_seconds", "environment", "code", "dirty")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with several suites, arrays and a driver that was killed."""
    with unpacked(ROOT / "docs" / "gallery" / "results.tar.xz") as store:
        path = Path(str(store.address).removeprefix("sqlite:///"))
        with closing(sqlite3.connect(path)) as database:
            database.execute("INSERT INTO drivers VALUES ('secret-host:1:ab', 0, 0)")
            database.commit()
        yield path


def content(store: Store, suite: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    cells = [{name: cell[name] for name in KEPT} for cell in store.cells(suite)]
    return store.values(suite), sorted(cells, key=lambda cell: str(cell["key"]))


def test_an_export_has_all_values_and_their_provenance(source: Path, tmp_path: Path) -> None:
    pack(str(source), tmp_path / "digits.tar.xz", ["digits"])
    with Store(str(source), writable=False) as store, merged(tmp_path) as exported:
        assert content(exported, "digits") == content(store, "digits")
        assert set(exported.suites()) == {"digits"}
        assert all(exported.load_arrays(cell["key"]) is None for cell in exported.cells("digits"))
        assert sum(len(cell["training"] or "") for cell in exported.cells("digits")) > 1000


def test_an_export_keeps_scaled_values_without_the_predictions(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    with Store(str(path)) as store:
        filled(store, 7)
        before = recalibrate(StoredResults(store, "tiny"))
    pack(str(path), tmp_path / "tiny.tar.xz", [])
    with merged(tmp_path) as exported:
        results = StoredResults(exported, "tiny")
        assert all(results.kept(key) is None for key in results.cells["key"])
        after = recalibrate(results)
        kinds = ["raw", "variance scaling"]
        expected = before[before["correction"].isin(kinds)]
        order = ["key", "correction", "metric"]
        assert_frame_equal(
            after.sort_values(order, ignore_index=True),
            expected.sort_values(order, ignore_index=True),
            check_dtype=False,
            rtol=1e-3,  # raw values are those of the run, before predictions were kept in 16 bits
        )
        assert len(recalibrate(results, repeats=2)) == 2 * len(after) // 7
        found = recalibrations(results.cells, results.kept, results.frame, results.corrected)
        column = found.column("regression", ["toy"])
        assert column is not None
        assert (column.repeats, list(column.pairs)) == (7, ["m"])
        scaled = expected[(expected["metric"] == "mace") & (expected["correction"] == "variance scaling")]
        assert column.pairs["m"][1] == pytest.approx(scaled["value"].mean())
        exported.forget("tiny")
        clean(exported, unwanted=True)
        with exported.database.reading() as connection:
            assert connection.execute(text("SELECT count(*) FROM recalibrated")).scalar() == 0


def test_an_export_may_have_the_shown_metrics_alone(source: Path, tmp_path: Path) -> None:
    pack(str(source), tmp_path / "shown.tar.xz", ["shift-digits"], shown=True)
    with Store(str(source), writable=False) as store, merged(tmp_path) as exported:
        named = set(store.suites()["shift-digits"]["metrics"])
        every = {row["metric"] for row in store.values("shift-digits")}
        left = {row["metric"] for row in exported.values("shift-digits")}
    assert left == {name for name in every if {name, name.partition("@")[0]} & named}
    assert any("@" in name for name in left)


def test_an_export_names_no_machine_and_is_the_same_twice(source: Path, tmp_path: Path) -> None:
    for name in ("a.tar.xz", "b.tar.xz"):
        pack(str(source), tmp_path / name, ["digits"])
    with tarfile.open(tmp_path / "a.tar.xz") as archive:
        (member,) = archive.getmembers()
        file = archive.extractfile(member)
        assert file is not None
        content_ = file.read()
    assert (member.uname, member.uid, member.mtime) == ("", 0, 0)
    assert b"digits" in content_
    assert b"secret-host" not in content_
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()


def test_two_exports_with_other_values_are_refused(source: Path, tmp_path: Path) -> None:
    pack(str(source), tmp_path / "a.tar.xz", ["digits"])
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(source)) as database:
        database.execute("VACUUM INTO ?", (str(other),))
    with closing(sqlite3.connect(other)) as database:
        database.execute("UPDATE metrics SET value = value + 1 WHERE metric = 'accuracy'")
        database.commit()
    pack(str(other), tmp_path / "b.tar.xz", ["digits"])
    with pytest.raises(UserError, match=r"b\.tar\.xz: 40 cells with other values"), merged(tmp_path):
        pass


@pytest.mark.parametrize("few", ["a", "c"])
def test_two_exports_may_have_other_metrics_of_the_same_cells(few: str, source: Path, tmp_path: Path) -> None:
    """The first that is read, or the second, has some of the metrics alone."""
    pack(str(source), tmp_path / "b.tar.xz", ["shift-digits"])
    pack(str(source), tmp_path / f"{few}.tar.xz", ["shift-digits"], shown=True)
    with Store(str(source), writable=False) as store, merged(tmp_path) as exported:
        assert content(exported, "shift-digits") == content(store, "shift-digits")


def test_mistakes_are_one_line(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no exports \(\*\.tar\.xz\)"), merged(tmp_path):
        pass
    with pytest.raises(UserError, match=r"digit.*digits"):
        pack(str(source), tmp_path / "x.tar.xz", ["digit"])


@pytest.mark.slow
def test_the_site_is_built_from_the_exports_and_the_submissions(tmp_path: Path) -> None:
    sent = tmp_path / "submissions" / "quick" / "boosted"
    export_data("diabetes", Registry().make("dataset", "diabetes", {}), sent, 5)
    document = ['method = "boosted"\nwho = "Ada"\nhow = "by hand"\ndataset = "diabetes"\nkind = "normal"\n']
    for split, one in enumerate(json.loads((sent / "data.json").read_text("utf-8"))["splits"]):
        with np.load(sent / f"split-{split}.npz") as rows:
            std = np.full(len(rows["test_y"]), rows["train_y"].std())
            np.savez(sent / f"predictions-{split}.npz", mean=np.full(len(std), rows["train_y"].mean()), std=std)
        document.append(f'[[predictions]]\nfile = "predictions-{split}.npz"\nsplit = {split}\ndata = "{one["data"]}"\n')
    (sent / "submission.toml").write_text("\n".join(document), "utf-8")

    exports = tmp_path / "exports"  # one of them: all take a quarter of a minute more
    exports.mkdir()
    copyfile(EXPORTS / "quick.tar.xz", exports / "quick.tar.xz")
    page, found = build_site(exports, tmp_path / "submissions", tmp_path / "site")
    assert page.is_file()
    assert len(found.rows) > 50
    # A submission that is scored in a tree with changes is not listed, as any other row.
    assert "boosted (not re-run)" in {row.method for row in found.rows} | {row.method for row in found.unlisted}
    written = json.loads((tmp_path / "site" / "leaderboard.json").read_text("utf-8"))
    boards = [one for one in written["boards"] if (one["dataset"], one["metric"]) == ("diabetes", "rmse")]
    means = {entry["method"]: entry["mean"] for entry in boards[0]["entries"]}
    with merged(exports) as store:
        values = [row for row in store.values("quick") if (row["dataset"], row["metric"]) == ("diabetes", "rmse")]
    for method in ("mc-dropout", "deep-ensemble", "laplace"):
        assert means[method] == pytest.approx(np.mean([row["value"] for row in values if row["method"] == method]))


def test_every_export_is_listed_and_small() -> None:
    text = (EXPORTS / "README.md").read_text("utf-8")
    archives = list(EXPORTS.glob("*.tar.xz"))
    assert archives
    assert sum(path.stat().st_size for path in archives) < 10e6
    assert [path.name for path in archives if f"`{path.name}`" not in text] == []
