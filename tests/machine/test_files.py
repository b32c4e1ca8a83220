import os
import stat
import threading
import time
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.machine.files import SECONDS_UNTIL_ABANDONED, write_output, write_whole


def parts(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix == ".part"]


def test_folders_are_made_and_the_content_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.txt"
    assert write_output(path, "old").read_text("utf-8") == "old"
    assert write_output(path, b"new").read_bytes() == b"new"
    assert parts(path.parent) == []


def test_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "private.csv"
    path.write_text("old", "utf-8")
    path.chmod(0o600)
    write_output(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link, dangling = tmp_path / "there" / "target.csv", tmp_path / "link.csv", tmp_path / "dangling.csv"
    target.write_text("old", "utf-8")
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "there" / "later.csv")
    write_output(link, "new")
    write_output(dangling, "new")
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert target.read_text("utf-8") == "new"
    assert (tmp_path / "there" / "later.csv").read_text("utf-8") == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_output(pipe, "through the pipe")
    reader.join(timeout=20)
    assert read == [b"through the pipe"]
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no such device here")
def test_a_device_is_written_to_and_stays_a_device(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/full")
    with pytest.raises(UserError, match="link: cannot be written: No space left on device"):
        write_output(link, "x")
    assert Path("/dev/full").is_char_device()
    assert link.is_symlink()
    write_output(Path("/dev/null"), "x")
    assert Path("/dev/null").is_char_device()


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept", "utf-8")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (tmp_path, tmp_path / "file" / "x", tmp_path / ("n" * 300), loop):
        with pytest.raises(UserError, match=r"cannot be written: ") as error:
            write_output(path, "x")
        assert "\n" not in str(error.value)
    assert (tmp_path / "file").read_text("utf-8") == "kept"
    assert parts(tmp_path) == []


def test_a_failed_write_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("old", "utf-8")
    for write in (write_output, write_whole):
        with pytest.raises(KeyboardInterrupt):
            write(path, _interrupted)
    assert path.read_text("utf-8") == "old"
    assert parts(tmp_path) == []


def _interrupted(file: object) -> None:
    raise KeyboardInterrupt


def test_temporary_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    old, new, foreign = (tmp_path / name for name in (f".{'0' * 16}.part", f".{'1' * 16}.part", "song.part"))
    for path in (old, new, foreign):
        path.write_text("", "utf-8")
    for path in (old, foreign):
        os.utime(path, (time.time() - 2 * SECONDS_UNTIL_ABANDONED,) * 2)
    write_output(tmp_path / "x", "")
    assert sorted(parts(tmp_path)) == sorted([new, foreign])


def test_halves_of_characters_are_escaped(tmp_path: Path) -> None:
    assert write_output(tmp_path / "x", "a\ud800b").read_bytes() == rb"a\ud800b"
