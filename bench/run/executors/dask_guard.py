"""Dask in the driver's process, restricted: it unpickles nothing but the names of a few plain types.

Dask unpickles whatever a scheduler or a worker sends, and has no setting against it; a pickle can run any code. The
driver needs none: orders and messages are JSON and arrays (bench.run.wire). So while a driver is connected, the
unpickling of Dask's protocol in this process refuses every other name. What is refused raises in Dask's own code: the
error of a task is then known as "an error", and a connection that insists on a pickle is closed.
"""

import contextlib
import io
import logging
import pickle
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from bench.errors import UserError

PLAIN = {"bytes", "bytearray", "memoryview", "str", "int", "float", "bool", "list", "tuple", "dict", "set"}
LOGGERS = ("distributed", "tornado", "asyncio")
SILENT = logging.CRITICAL + 1


class PickleRefusedError(TypeError):
    """A pickle named something else than a plain type. A TypeError, because Dask expects one of a traceback."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "builtins" and name in PLAIN:
            return super().find_class(module, name)
        raise PickleRefusedError(f"a pickle names {module}.{name}: nothing is unpickled here")


def _loads(content: Any, **options: Any) -> Any:
    return _PlainUnpickler(io.BytesIO(content), **options).load()


_plain_pickle = types.ModuleType("pickle", pickle.__doc__)
vars(_plain_pickle).update(vars(pickle), loads=_loads, Unpickler=_PlainUnpickler)
_lock = threading.Lock()
_open = 0  # how many drivers of this process are connected


@contextlib.contextmanager
def plain_protocol() -> Iterator[None]:
    """Inside the block Dask unpickles no code in this process, and writes no logs."""
    global _open  # noqa: PLW0603  # Dask's protocol is one for the process
    import distributed.client
    import distributed.protocol.pickle

    with _lock:
        _open += 1
        for module in (distributed.protocol.pickle, distributed.client):
            vars(module)["pickle"] = _plain_pickle
    try:
        with quiet_logs():
            _require_refusal()
            yield
    finally:
        with _lock:
            _open -= 1
            if not _open:
                for module in (distributed.protocol.pickle, distributed.client):
                    vars(module)["pickle"] = pickle


@contextlib.contextmanager
def quiet_logs() -> Iterator[None]:
    """Inside the block Dask writes no logs: what it has to say is said by the executor, in one line."""
    loggers = [logging.getLogger(name) for name in sorted(logging.root.manager.loggerDict) if name.startswith(LOGGERS)]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(SILENT)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


class _CanaryError(Exception):
    """An object whose pickle names a class that is no plain type."""


def _require_refusal() -> None:
    """Raise if this version of Dask unpickles in a way that is not restricted here."""
    import distributed

    dask: Any = distributed
    protocol, content = dask.protocol, pickle.dumps(_CanaryError())
    attempts: dict[str, Callable[[], Any]] = {
        "messages": lambda: protocol.loads(protocol.dumps({"x": protocol.ToPickle(_CanaryError())})),
        "values": lambda: protocol.deserialize({"serializer": "pickle", "writeable": ()}, [content]),
        "types": lambda: protocol.deserialize({"serializer": "dask", "type-serialized": content}, [b""]),
        "warnings": lambda: dask.client._handle_warn(("warn", {"message": content})),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except PickleRefusedError:
            continue
        except Exception as error:
            raise _unknown(name, f"{type(error).__name__}: {error}") from None
        raise _unknown(name, "it was not refused")


def _unknown(name: str, why: str) -> UserError:
    import distributed

    version = vars(distributed)["__version__"]
    return UserError(
        f"--engine dask: uqbench cannot keep Dask {version} from unpickling {name} ({why}); install a version that it "
        "is tested with (constraints.txt)"
    )
