"""The sources of plug-in files in a store: kept by content with the results, merged, exported, shown and removed."""

import json
from pathlib import Path

import pytest
from sqlalchemy import text

from bench.plugins.files import PluginSource
from bench.spec.cell import Cell, Outcome
from bench.store.export import write_plugins
from bench.store.gc import clean
from bench.store.lookup import describe
from bench.store.merge import merge
from bench.store.store import Store, SuiteRecord

MINE = PluginSource("mine.py", "# ünïcode \x00\n".encode())
OTHER = PluginSource("../../evil.py", b"# other\n")
SUITE = SuiteRecord("tiny", "Tiny", None, [], "{}")


def cell(number: int, source: PluginSource) -> Cell:
    return Cell(f"{number:032x}", "toy", number, "m", number, json.dumps({"method": {"origin": source.hash}}))


def fill(store: Store) -> None:
    cells = [cell(0, MINE), cell(1, OTHER)]
    store.want(SUITE, cells[:1])
    store.save_plugins([MINE, OTHER])
    store.save([(each, Outcome("ok", metrics={"rmse": 1.0})) for each in cells])


def test_a_source_is_kept_once_by_its_content(any_store: Store) -> None:
    any_store.save_plugins([MINE, OTHER])
    any_store.save_plugins([MINE, PluginSource("renamed.py", MINE.content)])
    assert any_store.plugins() == {MINE.hash: MINE, OTHER.hash: OTHER}
    assert any_store.plugins([MINE.hash]) == {MINE.hash: MINE}


def test_a_source_that_does_not_match_its_hash_is_nobodys(any_store: Store, tmp_path: Path) -> None:
    any_store.save_plugins([MINE, OTHER])
    change = text("UPDATE plugins SET content = :content WHERE hash = :hash")
    any_store.database.write(lambda c: c.execute(change, {"content": b"evil()", "hash": MINE.hash}))
    assert any_store.plugins() == {OTHER.hash: OTHER}
    own = Store(str(tmp_path / "own.db"))
    assert merge(own, any_store).plugins == 1
    assert own.plugins() == {OTHER.hash: OTHER}


def test_a_merge_brings_the_sources(any_store: Store, tmp_path: Path) -> None:
    fill(any_store)
    own = Store(str(tmp_path / "own.db"))
    own.save_plugins([MINE])
    assert merge(own, any_store).plugins == 1
    assert own.plugins() == any_store.plugins()
    assert merge(own, any_store).plugins == 0


def test_gc_removes_what_no_cell_names(any_store: Store) -> None:
    fill(any_store)
    any_store.save_plugins([PluginSource("unused.py", b"# unused\n")])
    assert clean(any_store, dry_run=True).plugins == 1
    assert len(any_store.plugins()) == 3
    assert clean(any_store).plugins == 1
    assert any_store.plugins() == {MINE.hash: MINE, OTHER.hash: OTHER}
    assert clean(any_store, unwanted=True, dry_run=True).plugins == 1
    assert clean(any_store, unwanted=True).plugins == 1
    assert any_store.plugins() == {MINE.hash: MINE}


def test_a_cell_shows_its_source(any_store: Store) -> None:
    fill(any_store)
    (shown,) = describe(any_store, cell(0, MINE).key)["plugins"]
    assert shown == {"hash": MINE.hash, "file": "mine.py", "source": MINE.content.decode()}


def test_an_export_writes_files_inside_of_its_folder(any_store: Store, tmp_path: Path) -> None:
    fill(any_store)
    (path,) = write_plugins(any_store, "tiny", tmp_path / "out")
    assert path == tmp_path / "out" / MINE.hash / "mine.py"
    assert path.read_bytes() == MINE.content
    any_store.want(SUITE, [cell(1, OTHER)])
    (path,) = write_plugins(any_store, None, tmp_path / "out")
    assert path == tmp_path / "out" / OTHER.hash / f"plugin_{OTHER.hash}.py"


@pytest.mark.parametrize("name", ["mine.py", "my-own.py", "größe.py"])
def test_ordinary_file_names_stay(name: str) -> None:
    assert PluginSource(name, b"").file_name == name
