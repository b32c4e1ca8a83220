"""Settings of the C library's memory allocator."""

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
KEPT = 2**28
FROM_THE_HEAP = 2**25


@cache
def keep_freed_memory() -> bool:
    """Keep freed memory for reuse; return whether the platform supports it.

    glibc gives megabytes back to the system when they are freed, and gets them again page by page. In calls that make
    tensors of some megabytes that took longer than the arithmetic. At most 256 MiB are kept.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library
        return False
    return bool(mallopt(_TRIM_THRESHOLD, KEPT)) and bool(mallopt(_MMAP_THRESHOLD, FROM_THE_HEAP))
