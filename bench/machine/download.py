"""Downloads published files: resumable, and verified before they get their final name.

A file is written under a temporary name (`.part`), and an interrupted download continues there. Only a file with the
right checksum gets its final name. Data folders may be shared: a temporary file is made exclusively, and only a regular
file of this user is continued, never what a link leads to.
"""

import http.client
import json
import os
import secrets
import shutil
import stat
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from bench.errors import UserError
from bench.machine.data_files import File
from bench.machine.files import TEMPORARY, sync_folder

BLOCK = 1 << 16
ATTEMPTS = 3  # in a row without a new byte
TIMEOUT = 30.0  # seconds of silence


def fetch(files: Sequence[File], folder: Path) -> None:
    """Download files into a data folder, except those that are there and have the right checksum."""
    wanted = [file for file in files if not is_there(file, folder)]
    for origin in dict.fromkeys(file.origin for file in wanted):
        members = [file for file in wanted if file.archive == origin]
        is_new = not is_there(origin, folder)
        path = download(origin, folder)
        if members:
            extract(path, members, folder)
            if is_new:  # an archive that the user put there is kept
                path.unlink()


def is_there(file: File, folder: Path) -> bool:
    """Return whether the file is in the data folder, with the right checksum."""
    path = folder / file.name
    return path.is_file() and file.fault(path) is None


def by_hand(file: File, folder: Path, reason: str) -> UserError:
    """Return an error that says how to fetch the file by hand."""
    then = " and run the same command again" if file.archive else ""
    return UserError(f"{file.origin.url}: {reason}; fetch it by hand and put it at {folder / file.origin.name}{then}")


def download(file: File, folder: Path) -> Path:
    """Download one file into a data folder and return its path."""
    target = folder / file.name
    part = target.with_name(target.name + ".part")
    try:
        if is_there(file, folder):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        _check_own(part)
        _complete(file, part, folder)
        if fault := file.fault(part):
            part.unlink()
            raise by_hand(file, folder, f"the download is not the published file: {fault}")
        _put(part, target)
    except OSError as error:
        raise UserError(f"{error.filename or target}: {error.strerror or error}") from None
    return target


def extract(archive: Path, files: Iterable[File], folder: Path) -> None:
    """Unpack files of a tar archive into a data folder, each verified before it gets its name.

    Only these files are written. An archive with a path outside the folder is refused.
    """
    try:
        with tarfile.open(archive) as tar:
            members = {member.name: member for member in tar.getmembers()}
            for member in members.values():
                tarfile.data_filter(member, str(folder))  # raises if it leaves the folder or is not a plain file
            for file in files:
                content = tar.extractfile(members[file.name]) if file.name in members else None
                if content is None:
                    raise UserError(f"{archive}: does not contain {file.name}")
                with content:
                    _store(content, file, folder)
    except tarfile.FilterError as error:
        raise UserError(f"{archive}: refused, it is not safe to unpack: {error}") from None
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"{archive}: cannot be unpacked: {error}") from None
    except OSError as error:
        raise UserError(f"{error.filename or archive}: {error.strerror or error}") from None


def _store(content: IO[bytes], file: File, folder: Path) -> None:
    target = folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with part.open("xb") as copy:
            shutil.copyfileobj(content, copy, BLOCK)
        if fault := file.fault(part):
            raise UserError(f"{file.name} in the archive is not the published file: {fault}")
        _put(part, target)
    finally:
        part.unlink(missing_ok=True)


def _put(finished: Path, target: Path) -> None:
    """Rename a finished file, so that a crash leaves either no file or the complete file."""
    with finished.open("rb+") as content:
        os.fsync(content.fileno())
    finished.replace(target)
    sync_folder(target.parent)


def _complete(file: File, part: Path, folder: Path) -> None:
    """Download until the partial file has its full size, continuing what is there."""
    from tqdm import tqdm

    size, most = file.size, file.most if file.size is None else file.size
    if _size(part) > most or file.unverified:
        part.unlink(missing_ok=True)  # left by another file, or of a document that may have changed since
    idle, longest, reason = 0, _size(part), ""
    # tqdm's `disable=None`: no bar if stderr is not a terminal.
    with tqdm(total=size, unit="B", unit_scale=True, desc=file.name, disable=None, file=sys.stderr) as bar:
        while (have := _size(part)) != size:
            if idle == ATTEMPTS:
                of = "" if size is None else f" of {size:,}"
                raise by_hand(file, folder, f"{reason} after {have:,}{of} bytes")
            try:
                stated = _append(file.url, part, have, most, bar)
                size = stated if file.size is None else file.size
                reason = "the connection ended"
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
                        part.unlink()
                        continue
                    says = f"the server says {error.code} {error.reason}{_explanation(error)}"
                    raise by_hand(file, folder, says) from None
            except urllib.error.URLError as error:
                raise by_hand(file, folder, f"cannot be reached ({error.reason})") from None
            except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
                reason = f"the connection broke ({type(error).__name__})"
            if _size(part) > most:
                part.unlink()
                what = "it is too large" if file.size is None else "the download is not the published file"
                raise by_hand(file, folder, f"{what}: more than {most:,} bytes")
            idle = 0 if _size(part) > longest else idle + 1
            longest = max(longest, _size(part))


def _append(url: str, part: Path, have: int, most: int, bar: Any) -> int:
    """Request the missing bytes, append them, and return the size of the whole file as the server states it.

    A server may send the whole file again. One that states no size has sent all of it when it ends its answer.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "uqbench"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        sent = answer.headers.get("Content-Range", "")
        resumed = answer.status == http.HTTPStatus.PARTIAL_CONTENT and sent.startswith(f"bytes {have}-")
        count = have if resumed else 0
        length = answer.length  # None: not stated
        bar.update(count - bar.n)
        if not resumed:
            part.unlink(missing_ok=True)
        first = count
        with open(part, "ab" if resumed else "xb", opener=_without_links) as content:  # Path has no opener
            # One byte too many shows that it is another file.
            while count <= most and (block := answer.read1(BLOCK)):
                content.write(block)
                count += len(block)
                bar.update(len(block))
    return count if length is None else first + length


def _explanation(error: urllib.error.HTTPError) -> str:
    """Return the reason that services state in a JSON answer, `{"error": {"message": ...}}`, in brackets."""
    try:
        message = str(json.loads(error.read(BLOCK))["error"]["message"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError, http.client.HTTPException):
        return ""
    text = "".join(letter if letter.isprintable() else " " for letter in message)[:100].strip()
    return f" ({text})" if text else ""


def _without_links(path: str, flags: int) -> int:
    """Open a file; raise OSError if it is a link, also one that was put there since it was looked at."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _check_own(part: Path) -> None:
    """Raise UserError if the file of an interrupted download is not a regular file of this user's own."""
    try:
        facts = part.lstat()
    except FileNotFoundError:
        return
    foreign = hasattr(os, "getuid") and facts.st_uid != os.getuid()
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1 or foreign:
        raise UserError(f"{part}: a link, or not a file of yours; remove it and run the same command again")


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0
