"""Reads numpy's array files from anywhere: no pickles, and nothing larger than a limit is opened."""

import math
import os
import stat
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import UserError

MOST_BYTES = 2**32  # of a file
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def stated_array(file: IO[bytes], name: str) -> int:
    """Return the bytes that the header of an array states; raise ValueError for Python objects and other formats."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"{name}: format {version}")
    shape, _, dtype = HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError(f"{name}: Python objects")
    if min(shape, default=0) < 0:
        raise ValueError(f"{name}: shape {shape}")
    return math.prod(shape) * dtype.itemsize


def read_array_file(path: Path, most: int = MOST_BYTES) -> NDArray[Any]:
    """Return the array in a .npy file; raises UserError, before it is read, for what is none or is too large."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:  # a Path takes no opener
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise UserError(f"{path}: not a regular file; name a .npy file")
            if facts.st_size > most:
                raise UserError(f"{path}: {facts.st_size:,} bytes, an array has at most {most:,}")
            size = stated_array(file, path.name)
            if size != facts.st_size - file.tell():
                stored = facts.st_size - file.tell()
                raise UserError(f"{path}: damaged: its header states {size:,} bytes, the file holds {stored:,}")
            file.seek(0)
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError, SyntaxError) as error:  # what numpy raises for content that somebody made up
        raise UserError(f"{path}: not a .npy file of numbers ({' '.join(str(error).split())[:100]})") from None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe without a writer would wait for one."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
