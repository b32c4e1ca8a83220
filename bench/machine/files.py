"""Writing files atomically, so that a file has its old content or its complete new content; outputs that users name."""

import contextlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from bench.errors import UserError
from bench.spec.sizes import MOST_DOCUMENT_BYTES

TEMPORARY = ".part"
BLOCK = 1 << 16
OWN_NAME = re.compile(r"\.[0-9a-f]{16}\.part")
SECONDS_UNTIL_ABANDONED = 3600.0  # a temporary file that nobody wrote to for so long
Writer = Callable[[IO[bytes]], object]


def cache_folder() -> Path:
    """Return the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uqbench"


def read_document(path: Path) -> str:
    """Return the text of a file that a user named; raise UserError if it is larger than a document can be.

    Pipes are read, as 'uqbench gate --baseline <(command)' makes one; what has no end, such as a device, is not.
    """
    content = bytearray()
    with path.open("rb") as file:
        while block := file.read(BLOCK):  # one call for all would take the memory of the largest at once
            content += block
            if len(content) > MOST_DOCUMENT_BYTES:
                raise UserError(f"{path}: larger than {MOST_DOCUMENT_BYTES:,} bytes; name another file")
    return content.decode("utf-8-sig")  # with or without a mark of its encoding


def write_whole(path: Path, write: Writer, *, durable: bool = True) -> None:
    """Write a file atomically: under a temporary name, synced if it is to survive a power failure, and renamed.

    A link of that name is replaced, not followed.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_output(path: Path, content: str | bytes | Writer, *, durable: bool = False) -> Path:
    """Write a file that a user named, and its folders; return it. Raises UserError where that is not possible.

    A regular file is replaced as a whole and keeps its permissions. Links are followed: what they lead to is written.
    Devices, pipes and sockets are never replaced: a device or a pipe is written to, as a shell would.
    """
    write = content if callable(content) else _writer(content)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = _kind(path)
        if kind is None or stat.S_ISREG(kind):
            target = Path(os.path.realpath(path))
            _remove_abandoned(target.parent)
            write_whole(target, _with_mode(write, kind), durable=durable)
            if durable:
                sync_folder(target.parent)
        else:
            with path.open("wb") as file:  # a folder or a socket raises
                write(file)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(f"{path}: cannot be written: a file has the name of one of its folders") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def _writer(content: str | bytes) -> Writer:
    # Names may come from a store and hold halves of characters.
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    return lambda file: file.write(data)


def _kind(path: Path) -> int | None:
    """Return the mode of what a path leads to, or None where there is nothing."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary files of processes that were killed while they wrote into this folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if OWN_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):  # removed by another process, or not ours to remove
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > SECONDS_UNTIL_ABANDONED:
                        Path(entry.path).unlink()


def _with_mode(write: Writer, mode: int | None) -> Writer:
    """Return a writer that gives the new file the permissions of the one that it replaces."""

    def written(file: IO[bytes]) -> None:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), stat.S_IMODE(mode))
        write(file)

    return written


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that renames in it survive a power failure."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
