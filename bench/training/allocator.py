"""Settings of the C library's memory allocator and of Python's garbage collection."""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
KEPT_BYTES = 2**28
LARGEST_ON_HEAP = 2**25


@cache
def keep_freed_memory() -> bool:
    """Keep freed memory for reuse; return whether the platform supports it.

    glibc returns freed megabytes to the system and gets them back page by page. For tensors of some megabytes that
    took longer than the arithmetic. At most 256 MiB are kept.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library
        return False
    return bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, LARGEST_ON_HEAP))


@contextmanager
def only_new_objects_collected() -> Iterator[None]:
    """Inside the block, garbage collection does not search the objects that were there before.

    They are mostly torch's modules. Tracing makes so many objects that all of them are searched, which takes a quarter
    of a second: an eighth of the time of a small study.
    """
    if gc.get_freeze_count():  # the program, or an outer block, has its own arrangement
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
