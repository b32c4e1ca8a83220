"""What disks, files and servers do: every fault is one line, and nothing that was stored is lost."""

import contextlib
import io
import random
import re
import resource
import shutil
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from bench.errors import UserError
from bench.spec.cell import Cell, Outcome
from bench.store.gc import clean
from bench.store.status import status
from bench.store.store import Store, SuiteRecord
from tests.fixtures.stores import PASSWORD

SUITE = SuiteRecord("tiny", "Tiny", None, [], "{}")
ROOT = Path(__file__).resolve().parents[2]


def cell(number: int) -> Cell:
    return Cell(f"{number:032x}", "toy", number, "m", number, "{}")


def outcome(number: int, **more: Any) -> Outcome:
    return Outcome("ok", metrics={f"m{i}": float(number * 10 + i) for i in range(5)}, **more)


def fill(store: Store, count: int) -> Path:
    store.want(SUITE, (cell(i) for i in range(count)))
    for start in range(0, count, 4):
        store.save((cell(i), outcome(i)) for i in range(start, min(start + 4, count)))
    assert store.path is not None
    return store.path


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


READ_ONLY = """
import os, sys, tempfile
sys.path.insert(0, sys.argv[2])
from bench.errors import UserError
from bench.spec.cell import Cell, Outcome
from bench.store.store import Store
with tempfile.TemporaryDirectory() as folder:  # loads all that another user may not be allowed to read
    other = Store(folder + "/other.db")
    other.save([(Cell("x", "toy", 0, "m", 0, "{}"), Outcome("ok"))])
    other.close()
    Store(folder + "/other.db", writable=False).close()
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)  # root may write everywhere
reader = Store(sys.argv[1], create=False, writable=False)
print(len(reader.values("tiny")), sorted(reader.suites()))
reader.close()
try:
    Store(sys.argv[1]).save([(Cell("x", "toy", 0, "m", 0, "{}"), Outcome("ok"))])
except UserError as error:
    print(error)
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that another user can come to."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="uqbench-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("writing", [False, True])
def test_a_folder_that_cannot_be_written(public: Path, writing: bool) -> None:
    """Reading works, beside a writer or alone; writing is refused in one line."""
    store = Store(str(public / "store.db"))
    path = fill(store, 4)
    if not writing:
        store.close()
    public.chmod(0o555)
    path.chmod(0o444)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(path), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        timeout=60,
    )
    store.close()
    lines = done.stdout.splitlines()
    assert lines[:1] == ["20 ['tiny']"], done.stderr
    assert len(lines) == 2, done.stderr
    assert "cannot be written" in lines[1] or "unable to open" in lines[1]


@pytest.mark.slow
def test_changes_that_cannot_be_seen_are_not_left_out_in_silence(public: Path) -> None:
    store = Store(str(public / "store.db"))
    path = fill(store, 4)
    copy = public / "copy"
    copy.mkdir()
    for name in (path.name, path.name + "-wal"):
        shutil.copy(path.with_name(name), copy / name)
    store.close()
    copy.chmod(0o555)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(copy / path.name), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        timeout=60,
    )
    copy.chmod(0o755)
    assert done.stdout.startswith("20 "), done.stderr
    assert sorted(path.name for path in copy.iterdir()) == [path.name, path.name + "-wal"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=1m", "none", str(place)], capture_output=True, check=False
    )
    if not made or made.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill_up(store: Store, part: str, stored: list[int]) -> None:
    source = np.random.default_rng(0)
    for number in range(300):
        big: dict[str, Any] = {"training": {"x": source.random(1500).tolist()}}
        if part == "arrays":
            big = {"arrays": {"mean": source.random(8000)}}
        store.want(SUITE, [Cell(cell(number).key, "toy", number, f"m{number}", number, "{}")])
        store.save([(cell(number), outcome(number, **big))])
        stored.append(number)


@pytest.mark.parametrize("part", ["rows", "arrays"])
def test_a_full_disk_is_told_and_loses_nothing(part: str, small_disk: Path) -> None:
    store = Store(str(small_disk / "store.db"))
    done: list[int] = []
    with pytest.raises(UserError, match="No space left on device") as caught:
        fill_up(store, part, done)
    stored = len(done)
    assert "\n" not in str(caught.value)
    assert stored > 3
    store.close()
    copy = small_disk.parent / "copy.db"
    for beside in ("", "-wal"):
        if (small_disk / f"store.db{beside}").exists():
            shutil.copy(small_disk / f"store.db{beside}", f"{copy}{beside}")
    again = Store(str(copy))
    assert again.done(cell(i).key for i in range(300)) == {cell(i).key for i in range(stored)}
    assert len(again.values("tiny")) == 5 * stored
    again.close()
    if part == "arrays":
        assert not list(small_disk.glob("store.db.arrays/.*"))
        reader = Store(str(small_disk / "store.db"), create=False, writable=False)
        assert all(reader.load_arrays(cell(i).key) is not None for i in range(stored))
        reader.close()


def _limited(path: str) -> None:
    """In a child: files may not grow beyond 300 kB."""
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    store = Store(path)
    source = np.random.default_rng(0)
    for number in range(200):
        store.save([(cell(number), outcome(number, training={"x": source.random(1500).tolist()}))])
        print(number, flush=True)


@pytest.mark.slow
def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(Path(__file__).parent)!r}]\n"
        "import test_faults\nfrom bench.errors import UserError\n"
        "try:\n    test_faults._limited(sys.argv[1])\nexcept UserError as error:\n    print(error)\n"
    )
    path = tmp_path / "store.db"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    *numbers, last = done.stdout.splitlines()
    assert last.startswith("--store "), done.stderr
    assert "still there" in last
    assert len(numbers) > 1
    again = Store(str(path))
    # The one that failed may have reached the disk before the fault; what was acknowledged must have.
    assert {cell(int(number)).key for number in numbers} <= again.done(cell(i).key for i in range(200))
    again.close()


@pytest.mark.slow
def test_a_power_cut_leaves_whole_commits(store: Store, tmp_path: Path) -> None:
    """The log, cut off anywhere, holds the first commits and no part of another."""
    path = fill(store, 40)  # ten commits of four cells; the store stays open, so nothing is moved out of the log
    database, log = path.read_bytes(), path.with_name(path.name + "-wal").read_bytes()
    source = random.Random(1)
    seen = set()
    for number, length in enumerate([0, 1, len(log), *(source.randrange(len(log)) for _ in range(40))]):
        copy = tmp_path / f"copy{number}.db"
        copy.write_bytes(database)
        copy.with_name(copy.name + "-wal").write_bytes(log[:length])
        cut = Store(str(copy))
        stored = cut.done(cell(i).key for i in range(40))
        assert stored == {cell(i).key for i in range(len(stored))}
        assert len(stored) % 4 == 0
        wanted = cut.cells("tiny")
        assert len(wanted) in (0, 40)
        assert len(cut.values("tiny")) == 5 * len(stored)
        seen.add(len(stored))
        cut.close()
    assert {0, 40} < seen
    assert len(seen) > 5


def test_a_server_that_does_not_let_us_in(server: Any) -> None:
    with pytest.raises(UserError, match="password authentication failed") as caught:
        Store(server.url(password="wrong-secret"))
    assert "wrong-secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match='database "nowhere" does not exist'):
        Store(server.url("nowhere"))


def test_no_server() -> None:
    pytest.importorskip("psycopg")
    for url in ("postgresql://me:pass-word@127.0.0.1:1/db", "postgresql://me:pass-word@/db?host=/nowhere"):
        with pytest.raises(UserError, match="connection") as caught:
            Store(url)
        assert "pass-word" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_user_of_a_server_who_may_only_read(server: Any, tmp_path: Path) -> None:
    import psycopg

    url = server.new_url(arrays=str(tmp_path / "arrays"))
    with Store(url) as store:
        store.want(SUITE, [cell(0)])
        store.save([(cell(0), outcome(0))])
    schema = re.search(r"search_path%3D(\w+)", url)
    assert schema is not None
    with psycopg.connect(server.url(), autocommit=True) as connection:
        for statement in (
            f"CREATE ROLE reader_{schema[1]} LOGIN PASSWORD 'r'",
            f"GRANT USAGE ON SCHEMA {schema[1]} TO reader_{schema[1]}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema[1]} TO reader_{schema[1]}",
        ):
            connection.execute(statement.encode())
    theirs = url.replace(f"uqbench:{PASSWORD}@", f"reader_{schema[1]}:r@")
    with Store(theirs, create=False, writable=False) as reader:
        assert len(reader.values("tiny")) == 5
        assert status(reader).rows[0]["done"] == 1
        assert clean(reader, dry_run=True).results == 0
        assert reader.drivers() == []
    with Store(theirs, create=False) as writer, pytest.raises(UserError, match="permission denied"):
        writer.save([(cell(1), outcome(1))])
