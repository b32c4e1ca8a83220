"""What a check of a store finds, and that a repair loses nothing."""

import json
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from bench.errors import UserError
from bench.spec.cell import Cell, Outcome
from bench.store.check import Checked, check, repair
from bench.store.leases import new_owner
from bench.store.store import Store, SuiteRecord
from tests.fixtures.commands import Command


def cell(number: int) -> Cell:
    return Cell(f"{number:032x}", "toy", number, "m", number, "{}")


def fill(store: Store) -> None:
    """Store five cells with a file each, of which the last two share theirs, and one that no suite contains."""
    cells = [cell(number) for number in range(6)]
    store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), cells[:5])
    store.save((c, Outcome("ok", metrics={"rmse": 1.0}, arrays={"a": np.arange(3.0 + min(c.seed, 3))})) for c in cells)


def file_of(store: Store, number: int) -> Path:
    query = text("SELECT arrays FROM cells WHERE key = :key").bindparams(key=cell(number).key)
    path = store.arrays.path(str(store.database.rows(query)[0]["arrays"]))
    assert path is not None
    return path


def test_a_whole_store(any_store: Store) -> None:
    assert check(any_store) == Checked(0, (), 0, 0, 0, ())
    fill(any_store)
    assert check(any_store) == Checked(6, (), 0, 0, 0, ())
    repair(any_store, check(any_store))
    assert check(any_store) == Checked(6, (), 0, 0, 0, ())
    assert any_store.failed() == []


def test_what_is_lost_damaged_or_left_over_is_found_and_repaired(any_store: Store) -> None:
    fill(any_store)
    values = any_store.values("tiny")
    file_of(any_store, 0).unlink()
    damaged = file_of(any_store, 1)
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    file_of(any_store, 3).write_bytes(b"")
    any_store.arrays.save({"a": np.arange(99.0)})
    stray = text("INSERT INTO metrics VALUES ('no cell', 'rmse', 1.0)")
    any_store.database.write(lambda connection: connection.execute(stray))
    found = check(any_store)
    faults = {fault.key: (fault.fault, [place["seed"] for place in fault.places]) for fault in found.faults}
    assert faults == {
        cell(0).key: ("lost", [0]),
        cell(1).key: ("damaged", [1]),
        cell(3).key: ("damaged", [3]),
        cell(4).key: ("damaged", [4]),
        cell(5).key: ("damaged", []),
    }
    assert (found.cells, found.orphan_files, found.orphan_values) == (6, 1, 1)
    assert found.orphan_bytes > 0
    assert check(any_store) == found  # looking changes nothing
    repair(any_store, found)
    assert [failed.seed for failed in any_store.failed()] == [0, 1, 3, 4]
    assert any_store.values("tiny") == values  # they stay until the cells ran again
    assert check(any_store) == Checked(1, (), 0, 0, 0, ())
    assert not damaged.exists()
    fill(any_store)
    assert check(any_store) == Checked(6, (), 0, 0, 0, ())
    assert any_store.values("tiny") == values


def test_a_damaged_file_is_replaced_by_a_result_of_the_same_size(store: Store) -> None:
    fill(store)
    whole = file_of(store, 1).read_bytes()
    file_of(store, 1).write_bytes(bytes(len(whole)))
    store.arrays.add(whole)
    assert file_of(store, 1).read_bytes() == whole


def test_nothing_is_repaired_while_a_driver_works(store: Store) -> None:
    fill(store)
    file_of(store, 0).unlink()
    store.renew(new_owner())
    with pytest.raises(UserError, match="is working on this store"):
        repair(store, check(store))
    assert store.failed() == []


def test_a_damaged_database_is_told(store: Store) -> None:
    fill(store)
    store.database.write(lambda connection: connection.execute(text("CREATE INDEX other ON cells (finished)")))
    store.close()
    assert store.path is not None
    content = bytearray(store.path.read_bytes())
    content[-4096:] = bytes(4096)  # the page of the index, which nothing reads
    store.path.write_bytes(content)
    with Store(store.url, create=False, writable=False) as damaged:
        found = check(damaged)
        assert found.database
        assert found.faults == ()
    with Store(store.url, create=False) as damaged, pytest.raises(UserError, match="restore it from a backup"):
        repair(damaged, found)


def test_lost_arrays_are_computed_again_with_the_same_values(command: Command, tiny_file: Path, tmp_path: Path) -> None:
    run = ("--engine", "inline", "--store", "s.db")
    assert command("run", str(tiny_file), "--keep", "moments", *run).code == 0
    before = command("export", "--store", "s.db").out
    files = {path.name: path.read_bytes() for path in (tmp_path / "s.db.arrays").iterdir()}
    lost, damaged, *_ = sorted((tmp_path / "s.db.arrays").iterdir())
    lost.unlink()
    damaged.write_bytes(b"half")
    answer = command("store", "check", "--store", "s.db")
    assert answer.code == 1
    assert answer.out.count("LOST: tiny: toy, split ") == answer.out.count("DAMAGED: tiny: toy, split ") == 1
    assert answer.out.endswith("2 cells to run again: 'uqbench store check --repair' plans it\n")
    assert command("run", str(tiny_file), "--dry-run", "--store", "s.db").out.endswith("0 cells to run, 4 stored\n")
    told = json.loads(command("store", "check", "--json", "--store", "s.db").out)
    assert ([fault["fault"] for fault in told["faults"]].count("lost"), told["cells"]) == (1, 4)
    repaired = command("store", "check", "--repair", "--store", "s.db")
    assert (repaired.code, "'uqbench retry --failed' runs them" in repaired.out) == (0, True)
    assert command("run", str(tiny_file), "--dry-run", "--store", "s.db").out.endswith("2 cells to run, 2 stored\n")
    assert command("retry", "--failed", "--keep", "moments", *run).code == 0
    assert command("export", "--store", "s.db").out == before
    assert {path.name: path.read_bytes() for path in (tmp_path / "s.db.arrays").iterdir()} == files
    assert command("store", "check", "--store", "s.db").code == 0
