"""The files of datasets: where they are searched, and whether their content is the published one.

Searched, in this order: `--data` (or, without it, `UQBENCH_DATA`), then the user's cache folder. A dataset declares
each file it reads as a `File`; `verified_file` returns the path of one whose checksums were compared in this process.
"""

import hashlib
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.errors import UserError
from bench.machine.files import cache_folder

VARIABLE = "UQBENCH_DATA"
MOST_BYTES = 2**30  # of a file whose size is not published


@dataclass(frozen=True)
class File:
    """One published file: its path in a data folder, its URL, size and checksums.

    Where the size is not published (None), a download of more than `most` bytes is refused. A document that has no
    published checksum either, such as the answer of a service, is `unverified`: whoever reads it checks its content.
    """

    name: str  # relative, with forward slashes
    url: str
    size: int | None
    sha256: str = ""
    md5: str = ""
    archive: "File | None" = None  # the tar file that contains it under its name; `url` is then empty
    most: int = MOST_BYTES
    unverified: bool = False

    def __post_init__(self) -> None:
        parts = Path(self.name).parts
        if not parts or ".." in parts or Path(self.name).is_absolute():
            raise ValueError(f"a file's name must be a relative path inside the data folder, got {self.name!r}")
        if not self.sha256 and not self.md5 and not self.unverified:
            raise ValueError(f"{self.name}: a checksum is needed, sha256 or md5")

    @property
    def size_text(self) -> str:
        """The size in words."""
        return "size not published" if self.size is None else f"{self.size:,} bytes"

    @property
    def origin(self) -> "File":
        """What is downloaded for this file: itself, or its archive."""
        return self.archive or self

    def fault(self, path: Path) -> str | None:
        """Return what is wrong with the file at a path (its size, then its checksums), or None."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"{size:,} bytes instead of {self.size:,}"
        for algorithm, expected in (("sha256", self.sha256), ("md5", self.md5)):
            if expected:
                # usedforsecurity=False: md5 is compared only if no sha256 is published.
                new = partial(hashlib.new, algorithm, usedforsecurity=False)
                with path.open("rb") as content:
                    found = hashlib.file_digest(content, new).hexdigest()
                if found != expected:
                    return f"{algorithm} {found} instead of {expected}"
        return None


def data_folders() -> list[Path]:
    """Return the folders to search, in order. The command line's `--data` sets the variable."""
    named = os.environ.get(VARIABLE)
    return [Path(named), cache_folder()] if named else [cache_folder()]


def find_file(name: str) -> Path | None:
    """Return the first file or folder with this relative name, or None."""
    return next((folder / name for folder in data_folders() if (folder / name).exists()), None)


def missing_file(name: str) -> str:
    """Return the message for a file that is not found."""
    places = " or ".join(str(folder) for folder in data_folders())
    return f"{name} was not found in {places}; put it there, or name its folder with --data DIR or {VARIABLE}=DIR"


_seen: set[tuple[File, Path, int, int]] = set()  # verified in this process: a file, its path, size and time


def verified_file(file: File) -> Path:
    """Return the path of a file with the right checksum, which is computed once per process and after changes."""
    path = find_file(file.name)
    if path is None:
        raise UserError(missing_file(file.name))
    try:
        facts = path.stat()
        stamp = (file, path.resolve(), facts.st_size, facts.st_mtime_ns)
        if stamp not in _seen:
            if fault := file.fault(path):
                advice = "remove it and run 'uqbench data fetch' again"
                raise UserError(f"{path} is not the published file: {fault}; {advice}")
            _seen.add(stamp)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    return path
