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
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.machine.files import TEMPORARY, sync_folder, write_whole

NAME = re.compile(r"(?:[0-9a-f]{2}){16,32}")
GRACE = 3600.0  # seconds in which the row of a new file may still be written

Arrays = Mapping[str, NDArray[Any]]


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
        if path.is_file() and path.stat().st_size == len(content):
            os.utime(path)  # new again, so that gc does not remove it before its row is written
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, lambda file: file.write(content))
        return name

    def load(self, name: str, only: Collection[str] | None = None) -> dict[str, NDArray[Any]] | None:
        """Return the arrays in the file of this name, all or `only` some, or None if it does not exist."""
        path = self.path(name)
        if path is None:
            return None
        try:
            with np.load(io.BytesIO(self.read(path)), allow_pickle=False) as content:
                return {key: content[key] for key in content.files if only is None or key in only}
        except (zipfile.BadZipFile, EOFError) as error:
            raise UserError(f"{path}: not a file of arrays ({error})") from error

    def read(self, path: Path) -> bytes:
        """Return the content of an array file; raise if it does not match its name."""
        content = path.read_bytes()
        if hashlib.blake2b(content, digest_size=len(path.stem) // 2).hexdigest() != path.stem:
            raise UserError(f"{path}: damaged: its content does not match its name; restore it from a backup")
        return content

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
