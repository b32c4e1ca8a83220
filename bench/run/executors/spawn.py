"""Starting worker processes from any program: a script, a notebook, a test."""

import contextlib
import multiprocessing
import sys
import threading
from collections.abc import Iterator

_starting = threading.Lock()


@contextlib.contextmanager
def hidden_main() -> Iterator[None]:
    """Hide the main module while a process is spawned.

    The new process would import the user's script to find what it sends; a script that runs a suite at its top level
    would then run it again inside every worker. Work orders name modules of `bench` only, so nothing is missed.
    """
    main, names = sys.modules["__main__"], ("__spec__", "__file__")
    with _starting:  # workers are started by several threads
        before = {name: vars(main)[name] for name in names if name in vars(main)}
        try:
            for name in before:
                setattr(main, name, None)
            yield
        finally:
            for name, value in before.items():
                setattr(main, name, value)


@contextlib.contextmanager
def children_allowed() -> Iterator[None]:
    """Let a daemonic process, as workers of a Dask cluster are, start a process.

    The rule of `multiprocessing` against it is there because such a process would outlive its parent; ours end with it.
    """
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]  # there is no public way
    before = dict(config)
    config["daemon"] = False
    try:
        yield
    finally:
        config.clear()
        config.update(before)
