"""CIFAR's files: verified, read without running what a pickle may hold, and kept as a plain copy.

The published batches are pickles of Python 2. A pickle can call any function when it is read; here every name in it
that is not one of the three an array needs is refused, and those three are stand-ins that only collect bytes.
"""

import hashlib
import os
import pickle
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.api import Array, File, Split, UserError, data_folders, find_file, verified_file

FOLDER = "cifar-10-batches-py"
ARCHIVE = File(
    "cifar-10-python.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    170_498_071,
    md5="c58f30108f718f92721af3b95e74349a",
)
# Name, bytes, md5 and sha256 of each file in the archive.
PUBLISHED = """
data_batch_1 31035704 c99cafc152244af753f735de768cd75f 54636561a3ce25bd3e19253c6b0d8538147b0ae398331ac4a2d86c6d987368cd
data_batch_2 31035320 d4bba439e000b95fd0a9bffe97cbabec 766b2cef9fbc745cf056b3152224f7cf77163b330ea9a15f9392beb8b89bc5a8
data_batch_3 31035999 54ebc095f3ab1f0389bbae665268c751 0f00d98ebfb30b3ec0ad19f9756dc2630b89003e10525f5e148445e82aa6a1f9
data_batch_4 31035696 634d18415352ddfa80567beed471001a 3f7bb240661948b8f4d53e36ec720d8306f5668bd0071dcb4e6c947f78e9682b
data_batch_5 31035623 482c414d41f54cd18b22e5b47cb7c3cb d91802434d8376bbaeeadf58a737e3a1b12ac839077e931237e0dcd43adcb154
test_batch 31035526 40351d587109b95175f43aff81a1287e f53d8d457504f7cff4ea9e021afcf0e0ad8e24a91f3fc42091b8adef61157831
batches.meta 158 5ff9c542aee3614f3951f8cda6e48888 f962466ef690d46b226450fb9aadc74ba4bc64a76aa526b5827fe4bc5c7125cb
"""


def _files() -> list[File]:
    rows = (line.split() for line in PUBLISHED.strip().splitlines())
    return [File(f"{FOLDER}/{name}", "", int(size), sha256, md5, ARCHIVE) for name, size, md5, sha256 in rows]


*TRAIN, _test, NAMES = _files()
TEST = [_test]
COPY = "cifar10/images.npz"
COPY_SHA256 = "9048fcbac9c08a64d57a7c5a5a66750a974ad4eab380914df129f7e223d823df"  # of its four arrays


@dataclass(frozen=True, eq=False)
class Images:
    """Pixels `[rows, 3, 32, 32]` from 0 to 255 and classes from 0 to 9."""

    train_x: Array
    train_y: Array
    test_x: Array
    test_y: Array

    @property
    def sha256(self) -> str:
        """A hash of all pixels and classes."""
        digest = hashlib.sha256()
        for array in (self.train_x, self.train_y, self.test_x, self.test_y):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def images() -> Images:
    """Return the images: from the plain copy if it is there and right, else from the published files."""
    copy = find_file(COPY)
    kept = _kept(copy, copy.stat().st_mtime_ns) if copy else None
    return kept or _published(tuple(str(verified_file(file)) for file in (*TRAIN, *TEST)))


@cache
def _kept(path: Path, changed: int) -> Images | None:
    """Return the plain copy, or None where it is damaged or another."""
    try:
        with path.open("rb") as content, np.load(content, allow_pickle=False) as arrays:
            kept = Images(*(arrays[name] for name in Images.__dataclass_fields__))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return kept if kept.sha256 == COPY_SHA256 else None


@cache
def _published(paths: tuple[str, ...]) -> Images:
    """Return the content of verified files, and keep a copy that needs no pickle."""
    train_x, train_y = read_batches([Path(path) for path in paths[:-1]])
    found = Images(train_x, train_y, *read_batches([Path(paths[-1])]))
    keep(found, data_folders()[-1] / COPY)
    return found


@cache
def scaled(found: Images) -> Split:
    """Return pixels of CIFAR-10 from 0 to 1. One object for all splits, because it takes 740 MB."""
    train_x, test_x = (np.divide(x, np.float32(255), dtype=np.float32) for x in (found.train_x, found.test_x))
    return Split("classification", train_x, found.train_y, test_x, found.test_y, classes=10)


def keep(found: Images, path: Path) -> None:
    """Write a copy under a temporary name, then give it its own; a cache that cannot be written is none."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as content:
            np.savez(content, allow_pickle=False, **vars(found))
            content.flush()
            os.fsync(content.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)


def read_batches(paths: Sequence[Path], labels: bytes = b"labels") -> tuple[Array, Array]:
    """Return pixels and classes of some batches, one after the other. Verify them first."""
    pixels, classes = [], []
    for path in paths:
        batch = _read(path)
        try:
            data: _Pixels = batch[b"data"]
            pixels.append(np.frombuffer(data.content, np.uint8).reshape(data.shape).reshape(-1, 3, 32, 32))
            classes.append(np.array(batch[labels], dtype=np.int64))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}: not a batch of CIFAR: {type(error).__name__}: {error}") from None
        if len(pixels[-1]) != len(classes[-1]):
            raise UserError(f"{path}: {len(pixels[-1])} images, but {len(classes[-1])} classes")
    return np.concatenate(pixels), np.concatenate(classes)


def _read(path: Path) -> Any:
    try:
        with path.open("rb") as content:
            return _Plain(content, encoding="bytes").load()
    except (pickle.UnpicklingError, EOFError, ValueError, IndexError, AttributeError, TypeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None


class _Pixels:
    """Stands for an array while a pickle is read: its shape and its bytes."""

    shape: tuple[int, ...] = ()
    content: bytes = b""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, kind, by_columns, self.content = state
        if not isinstance(kind, _Bytes) or by_columns:
            raise pickle.UnpicklingError("an array that is not of bytes in rows")


class _Bytes:
    """Stands for the type of an array's items, which has to be the unsigned byte."""

    def __init__(self, code: bytes, *_: object) -> None:
        if code != b"u1":
            raise pickle.UnpicklingError(f"an array of {code!r}, expected bytes")

    def __setstate__(self, state: object) -> None:
        """Byte order and such: a byte has none."""


def _pixels(*_: object) -> _Pixels:
    return _Pixels()


class _Plain(pickle.Unpickler):
    """Reads plain data and arrays of bytes; any other name in the file is refused."""

    def find_class(self, module: str, name: str) -> Any:
        stand_ins = {
            ("numpy.core.multiarray", "_reconstruct"): _pixels,
            ("numpy", "ndarray"): _Pixels,
            ("numpy", "dtype"): _Bytes,
        }
        if (module, name) not in stand_ins:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch of CIFAR needs: refused")
        return stand_ins[module, name]
