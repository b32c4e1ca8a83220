import hashlib
import io
import os
import socket
import sys
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.machine import download as module
from bench.machine.data_files import File
from bench.machine.download import download, extract, fetch
from tests.fixtures.sites import CONTENT, Site


def declared(address: str, content: bytes = CONTENT, name: str = "set/file.bin") -> File:
    return File(name, address, len(content), hashlib.sha256(content).hexdigest(), hashlib.md5(content).hexdigest())


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_arrives_whole_under_its_name_only(site: Site, tmp_path: Path) -> None:
    file = declared(f"{site.address}/file")
    assert download(file, tmp_path).read_bytes() == CONTENT
    assert names(tmp_path) == ["set/file.bin"]
    download(file, tmp_path)
    assert len(site.asked) == 1  # what is there and right is not asked for again


def test_a_cut_connection_is_resumed_where_it_ended(site: Site, tmp_path: Path) -> None:
    site.cut = [100_000, 50_000]
    assert download(declared(f"{site.address}/file"), tmp_path).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_a_later_command_goes_on_from_the_part(site: Site, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.bin.part").write_bytes(CONTENT[:123_456])
    assert download(declared(f"{site.address}/file"), tmp_path).read_bytes() == CONTENT
    assert site.asked == ["bytes=123456-"]
    assert names(tmp_path) == ["set/file.bin"]


def test_a_server_that_knows_no_ranges_sends_everything_again(site: Site, tmp_path: Path) -> None:
    site.cut, site.ranges = [100_000], False
    assert download(declared(f"{site.address}/file"), tmp_path).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=100000-"]


def test_a_download_that_never_ends_whole_keeps_its_part(site: Site, tmp_path: Path) -> None:
    site.files["/file"] = CONTENT[:200_000]
    with pytest.raises(UserError, match="after 200,000 of 300,000 bytes") as caught:
        download(declared(f"{site.address}/file"), tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "set" / "file.bin").exists()
    assert len(site.asked) < 20


def test_a_connection_that_breaks_before_the_first_byte_each_time(site: Site, tmp_path: Path) -> None:
    site.cut = [200_000] + [0] * 10
    with pytest.raises(UserError, match="after 200,000 of 300,000 bytes; fetch it by hand"):
        download(declared(f"{site.address}/file"), tmp_path)
    assert len(site.asked) == 1 + module.ATTEMPTS
    assert names(tmp_path) == ["set/file.bin.part"]
    site.cut = []
    assert download(declared(f"{site.address}/file"), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_wrong_content_is_never_given_the_name(site: Site, tmp_path: Path, algorithm: str) -> None:
    site.files["/file"] = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    file = declared(f"{site.address}/file")
    file = replace(file, sha256="") if algorithm == "md5" else replace(file, md5="")
    with pytest.raises(UserError, match=f"not the published file: {algorithm} ") as caught:
        download(file, tmp_path)
    assert names(tmp_path) == []
    for said in (file.url, str(tmp_path / "set" / "file.bin")):
        assert said in str(caught.value)


def test_a_longer_file_is_another_file(site: Site, tmp_path: Path) -> None:
    site.files["/file"] = CONTENT * 2
    with pytest.raises(UserError, match="more than 300,000 bytes"):
        download(declared(f"{site.address}/file"), tmp_path)
    assert names(tmp_path) == []
    assert len(site.asked) == 1


@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "fifo", "folder"])
def test_a_part_that_is_no_file_of_ours_is_never_written(kind: str, site: Site, tmp_path: Path) -> None:
    victim, part = tmp_path / "victim", tmp_path / "set" / "file.bin.part"
    victim.write_bytes(b"precious")
    part.parent.mkdir()
    make: dict[str, Callable[[], object]] = {
        "link": lambda: part.symlink_to(victim),
        "dangling link": lambda: part.symlink_to(tmp_path / "nothing"),
        "hard link": lambda: part.hardlink_to(victim),
        "fifo": lambda: os.mkfifo(part),
        "folder": part.mkdir,
    }
    make[kind]()
    with pytest.raises(UserError, match=r"file.bin.part: a link, or not a file of yours; remove it"):
        download(declared(f"{site.address}/file"), tmp_path)
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "nothing").exists()
    assert site.asked == []


@pytest.mark.parametrize("beginning", [b"", CONTENT[:1000]])
def test_a_link_that_is_put_there_in_the_last_moment(
    beginning: bytes, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, part = tmp_path / "victim", tmp_path / "set" / "file.bin.part"
    victim.write_bytes(beginning)
    part.parent.mkdir()
    monkeypatch.setattr(module, "_check_own", lambda part: part.symlink_to(victim))
    monkeypatch.setattr(module, "_size", lambda part: len(part.read_bytes()) if part.exists() else 0)
    if beginning:
        with pytest.raises(UserError, match="symbolic links"):
            download(declared(f"{site.address}/file"), tmp_path)
    else:
        download(declared(f"{site.address}/file"), tmp_path)
    assert victim.read_bytes() == beginning


def test_a_part_of_another_file_costs_one_more_download(site: Site, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.bin.part").write_bytes(b"x" * 1000)
    with pytest.raises(UserError, match="not the published file"):
        download(declared(f"{site.address}/file"), tmp_path)
    assert download(declared(f"{site.address}/file"), tmp_path).read_bytes() == CONTENT
    (tmp_path / "set" / "file.bin").unlink()
    (tmp_path / "set" / "file.bin.part").write_bytes(CONTENT * 2)  # too long: not even asked to be resumed
    assert download(declared(f"{site.address}/file"), tmp_path).read_bytes() == CONTENT


def test_a_damaged_file_is_replaced(site: Site, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.bin").write_bytes(b"damaged")
    assert download(declared(f"{site.address}/file"), tmp_path).read_bytes() == CONTENT


def test_not_found(site: Site, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the server says 404 Not Found; fetch it by hand and put it at") as caught:
        download(declared(f"{site.address}/other"), tmp_path)
    assert f"{site.address}/other" in str(caught.value)
    assert names(tmp_path) == []


def test_no_network_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as free:  # bound but not listening: the connection is refused
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/file"
        with pytest.raises(UserError, match="cannot be reached") as caught:
            download(declared(address), tmp_path)
    for said in (address, "by hand", str(tmp_path / "set" / "file.bin")):
        assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_written(site: Site, tmp_path: Path) -> None:
    (tmp_path / "set").write_text("a file where a folder should be")
    with pytest.raises(UserError, match="set: "):
        download(declared(f"{site.address}/file"), tmp_path)


def test_progress_is_quiet_without_a_terminal(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    download(declared(f"{site.address}/file"), tmp_path / "quiet")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    download(declared(f"{site.address}/file"), tmp_path / "watched")
    told = capsys.readouterr()
    assert told.out == ""
    assert "set/file.bin: 100%" in told.err


def packed(path: Path, members: Sequence[tuple[tarfile.TarInfo, bytes]]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for about, content in members:
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    about.type, about.linkname = kind, link
    return about


def test_an_archive_is_downloaded_unpacked_verified_and_removed(site: Site, tmp_path: Path) -> None:
    archive = packed(
        tmp_path / "set.tar.gz", [(entry("set/a"), b"alpha"), (entry("set/b"), b"beta"), (entry("c"), b"")]
    )
    site.files["/set.tar.gz"] = archive.read_bytes()
    whole = declared(f"{site.address}/set.tar.gz", archive.read_bytes(), "set.tar.gz")
    files = [
        replace(declared("", text, name), archive=whole) for name, text in (("set/a", b"alpha"), ("set/b", b"beta"))
    ]
    folder = tmp_path / "data"
    fetch(files, folder)
    assert names(folder) == ["set/a", "set/b"]  # nothing that was not declared
    assert (folder / "set" / "b").read_bytes() == b"beta"
    fetch(files, folder)
    (folder / "set" / "a").unlink()
    fetch(files, folder)
    assert len(site.asked) == 2
    (folder / "set" / "a").unlink()
    (folder / "set.tar.gz").write_bytes(archive.read_bytes())  # by hand: used, and left where it is
    fetch(files, folder)
    assert len(site.asked) == 2
    assert names(folder) == ["set.tar.gz", "set/a", "set/b"]


@pytest.mark.parametrize(
    "evil",
    [
        entry("../evil"),
        entry("set/../../evil"),
        entry("link", tarfile.SYMTYPE, "../../evil"),
        entry("link", tarfile.SYMTYPE, "/etc/passwd"),
        entry("hard", tarfile.LNKTYPE, "../evil"),
        entry("pipe", tarfile.FIFOTYPE),
    ],
    ids=["parent", "inner parent", "symlink", "absolute symlink", "hard link", "device"],
)
def test_an_archive_that_reaches_outside_is_refused(evil: tarfile.TarInfo, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    archive = packed(tmp_path / "set.tar.gz", [(entry("set/a"), b"alpha"), (evil, b"")])
    with pytest.raises(UserError, match="not safe to unpack"):
        extract(archive, [declared("http://x", b"alpha", "set/a")], folder)
    assert names(tmp_path) == ["set.tar.gz"]


def test_an_absolute_path_in_an_archive_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    archive = packed(tmp_path / "set.tar.gz", [(entry("set/a"), b"alpha"), (entry(str(outside)), b"evil")])
    extract(archive, [declared("http://x", b"alpha", "set/a")], tmp_path / "data")
    assert names(tmp_path) == ["data/set/a", "set.tar.gz"]


def test_a_wrong_or_missing_member(tmp_path: Path) -> None:
    archive = packed(tmp_path / "set.tar.gz", [(entry("set/a"), b"alpha"), (entry("set/d", tarfile.DIRTYPE), b"")])
    with pytest.raises(UserError, match="set/a in the archive is not the published file"):
        extract(archive, [declared("http://x", b"other", "set/a")], tmp_path)
    with pytest.raises(UserError, match="does not contain set/b"):
        extract(archive, [declared("http://x", b"other", "set/b")], tmp_path)
    with pytest.raises(UserError, match="does not contain set/d"):
        extract(archive, [declared("http://x", b"other", "set/d")], tmp_path)
    assert names(tmp_path) == ["set.tar.gz"]


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "set.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(UserError, match="cannot be unpacked"):
        extract(tmp_path / "set.tar.gz", [], tmp_path)
    whole = packed(tmp_path / "cut.tar.gz", [(entry("set/a"), CONTENT)]).read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[:-1000])
    with pytest.raises(UserError, match="cannot be unpacked"):
        extract(tmp_path / "cut.tar.gz", [declared("http://x", CONTENT, "set/a")], tmp_path)
    assert names(tmp_path) == ["cut.tar.gz", "set.tar.gz"]


@pytest.mark.parametrize("lengths", [True, False])
def test_a_file_whose_size_is_not_published(lengths: bool, site: Site, tmp_path: Path) -> None:
    site.lengths = lengths
    file = replace(declared(f"{site.address}/file"), size=None)
    assert download(file, tmp_path).read_bytes() == CONTENT
    assert download(file, tmp_path).read_bytes() == CONTENT
    assert site.asked == [None]  # it is there, and has the right checksum


def test_a_download_of_unknown_size_continues_where_the_connection_ended(site: Site, tmp_path: Path) -> None:
    site.cut = [100_000, 50_000]
    assert download(replace(declared(f"{site.address}/file"), size=None), tmp_path).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_a_file_of_unknown_size_is_bounded(site: Site, tmp_path: Path) -> None:
    for lengths in (True, False):
        site.lengths = lengths
        with pytest.raises(UserError, match="it is too large: more than 1,000 bytes"):
            download(replace(declared(f"{site.address}/file"), size=None, most=1000), tmp_path)
    assert names(tmp_path) == []


def test_a_document_without_a_checksum_is_never_continued(site: Site, tmp_path: Path) -> None:
    file = File("set/file.bin", f"{site.address}/file", None, unverified=True)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "file.bin.part").write_bytes(b"an older answer")
    assert download(file, tmp_path).read_bytes() == CONTENT
    assert site.asked == [None]
