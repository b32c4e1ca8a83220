"""Array files: predictions beside the database, each named by the hash of its content.

A file is written under a temporary name, synced and renamed, so under its own name it is whole. What a (foreign)
database calls a file is believed only where it looks like a hash: no row can lead out of the folder.
"""

import contextlib
import hashlib
import io
import os
import re
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError
from bench.machine.files import TEMPORARY, sync_folder, write_whole

NAME = re.compile(r"(?:[0-9a-f]{2}){16,32}")
GRACE = 3600.0  # seconds in which a file without a row may still be waiting for it

Arrays = Mapping[str, NDArray[Any]]


class ArrayFiles:
    """A folder of array files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path | None:
        """Return the file of a content hash, or None where that is no hash or there is no file."""
        path = self.folder / f"{name}.npz" if NAME.fullmatch(name) else None
        return path if path is not None and path.is_file() else None

    def save(self, arrays: Arrays) -> str:
        """Write arrays and return their name; the folder is to be synced afterwards."""
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **arrays)
        return self.add(content.getvalue())

    def add(self, content: bytes) -> str:
        """Write the content of an array file and return its name; what is there already is not written again."""
        name = hashlib.blake2b(content, digest_size=16).hexdigest()
        path = self.folder / f"{name}.npz"
        if path.is_file() and path.stat().st_size == len(content):
            os.utime(path)  # young again, so that nobody cleans it up before its row is written
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, lambda file: file.write(content))
        return name

    def load(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Return the arrays of that name, or None where there is no such file."""
        path = self.path(name)
        if path is None:
            return None
        try:
            with np.load(io.BytesIO(self.read(path)), allow_pickle=False) as content:
                return {key: content[key] for key in content.files}
        except (zipfile.BadZipFile, EOFError) as error:
            raise UserError(f"{path}: not a file of arrays ({error})") from error

    def read(self, path: Path) -> bytes:
        """Return the content of an array file, compared with its name."""
        content = path.read_bytes()
        if hashlib.blake2b(content, digest_size=len(path.stem) // 2).hexdigest() != path.stem:
            raise UserError(f"{path}: damaged: its content is not what its name says; bring it back from a copy")
        return content

    def sync(self) -> None:
        """Make the names of all files written so far survive a power cut."""
        if self.folder.is_dir():
            sync_folder(self.folder)

    def of_schema_1(self, key: str) -> Path | None:
        """Return the file of a cell in a store of schema 1, which had another folder and the key for a name."""
        folder = self.folder.with_name(Path(self.folder.stem).stem + ".arrays")
        path = folder / f"{key}.npz" if NAME.fullmatch(str(key)) else None
        return path if path is not None and path.is_file() else None

    def adopt(self, path: Path) -> str:
        """Give a file that is there its name in this folder too, and return it."""
        return self.add(path.read_bytes())

    def usage(self) -> tuple[int, int]:
        """Return how many files there are and how many bytes they take."""
        sizes = [size for _, size, _ in self._listed()]
        return len(sizes), sum(sizes)

    def orphans(self, referred: set[str], *, quiet: bool) -> list[tuple[Path, int]]:
        """Return files that no cell refers to and temporary ones that nobody writes any more, with their sizes.

        Where the store is not `quiet` (a driver is alive) a young file may be one whose row is still to be written.
        """
        found = []
        for path, size, changed in self._listed():
            old = time.time() - changed > GRACE
            if path.suffix == TEMPORARY:
                lost = old
            else:
                lost = bool(NAME.fullmatch(path.stem)) and path.stem not in referred and (old or quiet)
            if lost:
                found.append((path, size))
        return sorted(found)

    def _listed(self) -> Iterator[tuple[Path, int, float]]:
        if not self.folder.is_dir():
            return
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith((".npz", TEMPORARY)) and entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):  # renamed or cleaned up by another process
                        about = entry.stat(follow_symlinks=False)
                        yield Path(entry.path), about.st_size, about.st_mtime
