import hashlib
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.machine.data_files import VARIABLE, File, data_folders, find_file, missing_file, verified_file


def test_the_named_folder_comes_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    assert data_folders() == [tmp_path / "named", tmp_path / "cache" / "uqbench"]
    assert find_file("a/b.txt") is None
    for folder in reversed(data_folders()):
        (folder / "a").mkdir(parents=True)
        (folder / "a" / "b.txt").touch()
        assert find_file("a/b.txt") == folder / "a" / "b.txt"
    assert find_file("a") == tmp_path / "named" / "a"


def test_without_a_name_only_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in (None, ""):
        monkeypatch.delenv(VARIABLE, raising=False) if value is None else monkeypatch.setenv(VARIABLE, value)
        assert data_folders() == [tmp_path / ".cache" / "uqbench"]


def test_missing_says_where_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    told = missing_file("uci/protein")
    for said in ("uci/protein", str(tmp_path), "--data DIR", f"{VARIABLE}=DIR"):
        assert said in told


SUM = hashlib.sha256(b"content").hexdigest()


@pytest.mark.parametrize("name", ["", "../outside", "a/../../b", "/etc/passwd"])
def test_a_file_lies_inside_the_data_folder(name: str) -> None:
    with pytest.raises(ValueError, match="relative path inside the data folder"):
        File(name, "http://x", 7, SUM)


def test_a_file_without_a_checksum_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match="checksum"):
        File("a", "http://x", 7)


def test_fault_compares_size_and_every_checksum(tmp_path: Path) -> None:
    path, md5 = tmp_path / "a", hashlib.md5(b"content").hexdigest()
    path.write_bytes(b"content")
    assert File("a", "", 7, SUM, md5).fault(path) is None
    assert File("a", "", 7, "", md5).fault(path) is None
    assert str(File("a", "", 8, SUM, md5).fault(path)) == "7 bytes instead of 8"
    assert str(File("a", "", 7, "0" * 64, md5).fault(path)) == f"sha256 {SUM} instead of {'0' * 64}"
    assert str(File("a", "", 7, SUM, "0" * 32).fault(path)) == f"md5 {md5} instead of {'0' * 32}"


def test_verified_gives_the_right_file_and_refuses_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    file = File("a", "http://x", 7, SUM)
    with pytest.raises(UserError, match="a was not found"):
        verified_file(file)
    (tmp_path / "a").write_bytes(b"contend")
    with pytest.raises(UserError, match="not the published file"):
        verified_file(file)
    (tmp_path / "a").write_bytes(b"content")
    assert verified_file(file) == tmp_path / "a"
    (tmp_path / "a").unlink()
    (tmp_path / "a").mkdir()
    with pytest.raises(UserError):
        verified_file(file)
