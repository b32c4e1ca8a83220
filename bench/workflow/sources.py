"""What the functions take: names and files, suites, stores by path or URL, and plug-in files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bench.plugins.registry import Registry
from bench.store import DEFAULT_URL

if TYPE_CHECKING:
    from bench.store.store import Store

Names = Sequence[str]
Files = Sequence[str | Path]
SuiteSource = str | Path | Mapping[str, Any]
StoreSource: TypeAlias = "str | Path | Store"
Changes = Mapping[Any, Any] | Sequence[str]  # {"training.epochs": 20}, or ["training.epochs=20"] as on the command line


def open_store(address: StoreSource = DEFAULT_URL, *, create: bool = False, writable: bool = True) -> "Store":
    """Open a store by path or URL; one that does not exist is an error unless `create` is set.

    Use it as a context manager, or call `close`. One that is not writable is never changed.
    """
    from bench.store.store import Store

    return address if isinstance(address, Store) else Store(str(address), create=create, writable=writable)


@contextmanager
def opened_store(store: StoreSource, *, create: bool = False, writable: bool = False) -> "Iterator[Store]":
    """Open a store for one call and close it afterwards, unless it was open before."""
    opened = open_store(store, create=create, writable=create or writable)
    try:
        yield opened
    finally:
        if opened is not store:
            opened.close()


def registry_of(files: Files | Registry = ()) -> Registry:
    """Return all plug-ins that can be reached, those of some files among them."""
    if isinstance(files, Registry):
        return files
    return Registry([Path(file) for file in files])
