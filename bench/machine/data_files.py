"""Where datasets look for their files, and whether a file is the one that is meant.

Looked in, in this order: `--data`, then `UQBENCH_DATA`, then the user's cache folder. A dataset declares each file it
reads as a `File`; `verified` gives the path of one whose content was compared with its checksums in this process.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError

VARIABLE = "UQBENCH_DATA"


@dataclass(frozen=True)
class File:
    """One published file: its place below a data folder, where it is to be had, and what tells it from any other."""

    name: str  # relative, with forward slashes
    url: str
    size: int
    sha256: str = ""
    md5: str = ""
    archive: "File | None" = None  # the tar file that holds it under its name; `url` is then of no use and empty

    def __post_init__(self) -> None:
        parts = Path(self.name).parts
        if not parts or ".." in parts or Path(self.name).is_absolute():
            raise ValueError(f"a file's name must be a relative path inside the data folder, got {self.name!r}")
        if not self.sha256 and not self.md5:
            raise ValueError(f"{self.name}: a checksum is needed, sha256 or md5")

    @property
    def origin(self) -> "File":
        """What is downloaded to have this file: itself, or its archive."""
        return self.archive or self

    def fault(self, path: Path) -> str | None:
        """Return what is wrong with the file at a path, or None: its size, then its checksums."""
        size = path.stat().st_size
        if size != self.size:
            return f"{size:,} bytes instead of {self.size:,}"
        for algorithm, expected in (("sha256", self.sha256), ("md5", self.md5)):
            if expected:
                with path.open("rb") as content:
                    # usedforsecurity: sha256 is what is trusted; md5 only where nothing else is published.
                    found = hashlib.file_digest(
                        content,
                        lambda: hashlib.new(algorithm, usedforsecurity=False),  # noqa: B023  # called at once
                    ).hexdigest()
                if found != expected:
                    return f"{algorithm} {found} instead of {expected}"
        return None


def data_folders() -> list[Path]:
    """Return the folders that are searched, in order. The command line's `--data` sets the variable."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uqbench"
    named = os.environ.get(VARIABLE)
    return [Path(named), cache] if named else [cache]


def find_file(name: str) -> Path | None:
    """Return the first file or folder of that relative name, or None."""
    return next((folder / name for folder in data_folders() if (folder / name).exists()), None)


def missing_file(name: str) -> str:
    """Return what to tell a user whose data is not there."""
    places = " or ".join(str(folder) for folder in data_folders())
    return f"{name} was not found in {places}; put it there, or name its folder with --data DIR or {VARIABLE}=DIR"


_seen: set[tuple[File, Path, int, int]] = set()  # what was verified in this process: a file, its path, size and time


def verified_file(file: File) -> Path:
    """Return the path of a file whose checksum is right; each is read once a process, and again if it changes."""
    path = find_file(file.name)
    if path is None:
        raise UserError(missing_file(file.name))
    try:
        facts = path.stat()
        stamp = (file, path.resolve(), facts.st_size, facts.st_mtime_ns)
        if stamp not in _seen:
            if fault := file.fault(path):
                raise UserError(
                    f"{path} is not the published file: {fault}; remove it and run 'uqbench data fetch' again"
                )
            _seen.add(stamp)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    return path
