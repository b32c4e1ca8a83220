"""Array files: predictions beside the database, each named by the hash of its content.

A file is written under a temporary name, synced and renamed, so a file with its final name is complete. A name read
from a (foreign) database is used only if it looks like a hash: no row can point outside the folder.
"""

import contextlib
import hashlib
import io
import os
import re
import time
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.machine.array_file import stated_array
from bench.machine.files import TEMPORARY, sync_folder, write_whole
from bench.spec.sizes import MOST_ARRAY_BYTES

NAME = re.compile(r"(?:[0-9a-f]{2}){16,32}")
ADVICE = "restore it from a backup, or see 'uqbench store check'"
# What zipfile, zlib and numpy raise for content that somebody made up; encrypted members are a RuntimeError.
UNREADABLE = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError, RuntimeError, SyntaxError)
GRACE = 3600.0  # seconds in which the row of a new file may still be written

Arrays = Mapping[str, NDArray[Any]]


class DamagedArraysError(UserError):
    """An array file whose content cannot be used."""


class ArrayFiles:
    """A folder of array files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path | None:
        """Return the file with this hash, or None if the name is no hash or the file does not exist."""
        path = self.folder / f"{name}.npz" if NAME.fullmatch(name) else None
        return path if path is not None and path.is_file() else None

    def save(self, arrays: Arrays) -> str:
        """Write arrays and return the name of their file; call `sync` afterwards."""
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **arrays)
        return self.add(content.getvalue())

    def add(self, content: bytes) -> str:
        """Write the content of an array file unless it exists, and return its name."""
        name = hashlib.blake2b(content, digest_size=16).hexdigest()
        path = self.folder / f"{name}.npz"
        if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
            os.utime(path)  # new again, so that gc does not remove it before its row is written
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, lambda file: file.write(content))
        return name

    def load(
        self, name: str, only: Collection[str] | None = None, *, skip: str | None = None
    ) -> dict[str, NDArray[Any]] | None:
        """Return the arrays in the file of this name, or None if it does not exist.

        All of them, `only` some, or those whose names do not begin with `skip`.
        """
        path = self.path(name)
        if path is None:
            return None
        content = self.read(path)
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                names = [key for key in arrays.files if only is None or key in only]
                return {key: arrays[key] for key in names if skip is None or not key.startswith(skip)}
        except UNREADABLE as error:
            raise _not_arrays(path, error) from error

    def read(self, path: Path) -> bytes:
        """Return the content of an array file; raise if it is not what its name says, or would be too large in memory.

        Nothing of it is unpacked before: a file of some megabytes can state arrays of many gigabytes.
        """
        if path.stat().st_size > MOST_ARRAY_BYTES:
            raise DamagedArraysError(f"{path}: larger than {MOST_ARRAY_BYTES:,} bytes")
        content = path.read_bytes()
        if hashlib.blake2b(content, digest_size=len(path.stem) // 2).hexdigest() != path.stem:
            raise DamagedArraysError(f"{path}: damaged: its content does not match its name; {ADVICE}")
        try:
            stated = stated_bytes(content)
        except UNREADABLE as error:
            raise _not_arrays(path, error) from error
        if stated > MOST_ARRAY_BYTES:
            most = f"at most {MOST_ARRAY_BYTES:,} are allowed"
            raise DamagedArraysError(f"{path}: its arrays have {stated:,} bytes in memory; {most}")
        return content

    def fault(self, name: str) -> str | None:
        """Return 'lost' or 'damaged' where the arrays of this name cannot be read, or None."""
        path = self.path(name)
        if path is None:
            return "lost"
        try:
            self.read(path)
        except DamagedArraysError:
            return "damaged"
        return None

    def sync(self) -> None:
        """Sync the folder, so that files written so far survive a power failure."""
        if self.folder.is_dir():
            sync_folder(self.folder)

    def usage(self) -> tuple[int, int]:
        """Return the number of files and their total size in bytes."""
        sizes = [size for _, size, _ in self._files()]
        return len(sizes), sum(sizes)

    def orphans(self, referenced: set[str], *, idle: bool) -> list[tuple[Path, int]]:
        """Return files that no cell refers to and abandoned temporary files, with their sizes.

        If the store is not `idle` (a driver is alive), new files are kept: their rows may still be written.
        """
        found = []
        for path, size, changed in self._files():
            old = time.time() - changed > GRACE
            if path.suffix == TEMPORARY:
                lost = old
            else:
                lost = bool(NAME.fullmatch(path.stem)) and path.stem not in referenced and (old or idle)
            if lost:
                found.append((path, size))
        return sorted(found)

    def _files(self) -> Iterator[tuple[Path, int, float]]:
        if not self.folder.is_dir():
            return
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith((".npz", TEMPORARY)) and entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):  # renamed or removed by another process
                        facts = entry.stat(follow_symlinks=False)
                        yield Path(entry.path), facts.st_size, facts.st_mtime


def _not_arrays(path: Path, error: Exception) -> DamagedArraysError:
    return DamagedArraysError(f"{path}: not a file of arrays ({' '.join(str(error).split())[:100]})")


def stated_bytes(content: bytes) -> int:
    """Return the size in memory that the headers of an array file state; raise ValueError for any other content."""
    total = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                size = stated_array(file, member.filename)
                stored = member.file_size - file.tell()
                if size != stored:  # an array that is cut off, or with something behind it
                    raise ValueError(f"{member.filename}: {size:,} bytes stated, {stored:,} stored")
                total += member.file_size
    return total
