"""Settings of the C library's memory allocator."""

import ctypes
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
