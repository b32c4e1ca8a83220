"""Damaged and hostile files: every fault is one line, and no file is believed to be what it claims."""

import contextlib
import io
import random
import tracemalloc
import zipfile
from operator import methodcaller
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from bench.errors import UserError
from bench.store.store import Store
from tests.fixtures.numbered_cells import cell, fill, outcome


def fault(path: Path) -> str:
    """Look at everything; return what is told to the user, if anything is wrong."""
    try:
        for options in ({}, {"create": False, "writable": False}):
            with contextlib.closing(Store(str(path), **options)) as store:
                store.suites()
                store.cells("tiny")
                store.values("tiny")
                store.load_arrays(cell(0).key)
    except UserError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("content", [b"these are my notes, no database " * 100, bytes(range(256)) * 64, b"\0" * 5000])
def test_a_file_that_is_no_database(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    for options in ({}, {"create": False, "writable": False}):
        with pytest.raises(UserError, match="file is not a database") as caught:
            Store(str(path), **options)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.slow
def test_a_damaged_store_is_told_in_one_line(store: Store) -> None:
    path = fill(store, 200)
    store.close()
    whole = path.read_bytes()
    pages = len(whole) // 4096
    assert pages > 20
    source = random.Random(0)
    told = 0
    damaged = [bytearray(whole[: source.randrange(100, len(whole))]) for _ in range(8)]  # cut off
    for number in range(1, pages, 2):  # a page that is nonsense, found when a query comes to it
        content = bytearray(whole)
        content[number * 4096 : (number + 1) * 4096] = source.randbytes(4096)
        damaged.append(content)
    for content in damaged:
        path.write_bytes(content)
        for beside in ("-wal", "-shm"):
            path.with_name(path.name + beside).unlink(missing_ok=True)
        said = fault(path)
        assert "\n" not in said
        assert said == "" or said.startswith("--store ")
        told += said != ""
    assert told > len(damaged) / 2  # the others hit pages that nothing here reads


def test_a_damaged_array_file_is_told(store: Store) -> None:
    store.save([(cell(0), outcome(0, arrays={"mean": np.arange(100.0)}))])
    (file,) = store.arrays.folder.iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(UserError, match="its content does not match its name"):
        store.load_arrays(cell(0).key)
    file.unlink()
    assert store.load_arrays(cell(0).key) is None


def test_rows_are_not_believed_to_name_files(store: Store, tmp_path: Path) -> None:
    np.savez(tmp_path / "secret.npz", mean=np.arange(2.0))
    np.savez(tmp_path / ("a" * 32 + ".npz"), mean=np.array([{"code": 1}], dtype=object))
    store.save([(cell(0), outcome(0, arrays={"mean": np.arange(3.0)}))])
    for name in ("../../secret", str(tmp_path / "secret"), f"../../{'a' * 32}", "", "x" * 32, "A" * 32):
        statement = text("UPDATE cells SET arrays = :name").bindparams(name=name)
        store.database.write(methodcaller("execute", statement))
        assert store.load_arrays(cell(0).key) is None


def test_no_pickle_is_ever_loaded(store: Store) -> None:
    store.save([(cell(0), outcome(0, arrays={"mean": np.arange(3.0)}))])
    content = io.BytesIO()
    np.savez(content, mean=np.array([{"code": 1}], dtype=object))
    name = store.arrays.add(content.getvalue())
    store.database.write(lambda connection: connection.execute(text(f"UPDATE cells SET arrays = '{name}'")))
    with pytest.raises(UserError, match="Python objects"):
        store.load_arrays(cell(0).key)


def zipped(**members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return content.getvalue()


def header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


def test_arrays_that_would_fill_the_memory_are_never_unpacked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.store.arrays.MOST_ARRAY_BYTES", 2**20)
    files = {
        zipped(mean=header((10**15,))): "bytes stated",  # says more than it has
        zipped(mean=header((2**18,)) + bytes(2**21)): "in memory; at most 1,048,576",
        zipped(**{f"a{n}": header((2**15,)) + bytes(2**18) for n in range(5)}): "in memory; at most 1,048,576",
        zipped(mean=header((-5, 10**9))): "not a file of arrays",
        zipped(mean=b"no array"): "not a file of arrays",
        b"no zip": "not a file of arrays",
        bytes(2**20 + 1): "larger than 1,048,576 bytes",
    }
    store.save([(cell(0), outcome(0, arrays={"mean": np.arange(3.0)}))])
    for content, reason in files.items():
        name = store.arrays.add(content)
        store.database.write(methodcaller("execute", text(f"UPDATE cells SET arrays = '{name}'")))
        tracemalloc.start()
        with pytest.raises(UserError, match=reason):
            store.load_arrays(cell(0).key)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**21
        assert store.arrays.fault(name) == "damaged"
