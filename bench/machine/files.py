"""Files that are whole under their name, whatever happens while they are written."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO

TEMPORARY = ".part"


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file so that under its name there is the old content or the new one, and never a part of it."""
    temporary = path.with_name(f".{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
