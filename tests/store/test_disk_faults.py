"""Disks that are full or cannot be written, and power cuts: one line each, and nothing that was stored is lost."""

import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.spec.cell import Cell
from bench.store.store import Store
from tests.fixtures.numbered_cells import SUITE, cell, fill, outcome

ROOT = Path(__file__).resolve().parents[2]
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
        "import test_disk_faults\nfrom bench.errors import UserError\n"
        "try:\n    test_disk_faults._limited(sys.argv[1])\nexcept UserError as error:\n    print(error)\n"
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
