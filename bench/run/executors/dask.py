"""Workers of a Dask cluster: a running scheduler by address, or a cluster on this machine.

Orders go out and outcomes come back through Dask's own connections, so workers need no shared disk. Where a worker
dies, Dask gives its order to another; outcomes that had arrived before are received twice and stored once.
"""

import contextlib
import math
import os
import pickle
import queue
import signal
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

from bench.errors import UserError
from bench.run.executors import OUT_OF_TIME, WAKE, Call, LostWorkerError, drain, limits_itself
from bench.run.executors.spawn import hidden_main

SECONDS_BETWEEN_COUNTS = 1.0  # of the workers


class ClusterExecutor:
    """Runs calls on the workers of a Dask cluster."""

    ends_calls = True

    def __init__(
        self,
        address: str | None,
        workers: int,
        *,
        threads: int = 1,
        resources: Mapping[str, float] | None = None,
        time_limit: float | None = None,
    ) -> None:
        try:
            import distributed
        except ImportError:
            raise UserError("--engine dask: Dask is not installed here; pip install 'uqbench[cluster]'") from None
        self._cluster: Any = None
        if address is None:
            settings = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
            import dask

            # A worker's process reads these before it loads anything; the terminal's Ctrl-C is for the driver alone.
            with (
                dask.config.set({"distributed.nanny.pre-spawn-environ": settings}),
                _interrupts_ignored(),
                hidden_main(),
            ):
                self._cluster = distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    resources=dict(resources or {}) or None,
                )
        try:
            self._client = distributed.Client(self._cluster or address, timeout=10, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise UserError(f"--address {address}: no Dask scheduler answers there: {error}") from None
        self._executor = self._client.get_executor(pure=False, retries=0, resources=dict(resources or {}))
        self._time_limit = time_limit
        self._name = f"uqbench-{uuid.uuid4().hex}"
        self._queue = distributed.Queue(self._name, client=self._client)
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._calls: dict[str, Future[None]] = {}
        self._inner: dict[str, Any] = {}
        self._lost = ""  # why the scheduler cannot be reached any more
        self._closing = False
        self._workers, self._counted = 1, -math.inf
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def workers(self) -> int:
        """How many workers there are now, or were a second ago; they may come and go."""
        if time.monotonic() - self._counted > SECONDS_BETWEEN_COUNTS:
            self._workers = max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))
            self._counted = time.monotonic()
        return self._workers

    def submit(self, call: Call, /, *arguments: Any) -> "Future[None]":
        """Start a call on a worker that has the resources which the executor requires."""
        self._require_connection()
        outer: Future[None] = Future()
        number = uuid.uuid4().hex
        self._calls[number] = outer  # before it can end
        inner = self._executor.submit(_run_call, self._name, number, self._time_limit, call, arguments)
        self._inner[number] = inner

        def ended(inner: "Future[None]") -> None:
            # A good end is reported by the call's last message: only then all before it have arrived.
            if not inner.cancelled() and inner.exception() is None:
                return
            if inner.cancelled() or type(inner.exception()).__name__ == "KilledWorker":
                self._end(number, LostWorkerError("the workers that had it died, one after another"))
            else:
                self._end(number, inner.exception())

        inner.add_done_callback(ended)
        return outer

    def receive(self, seconds: float) -> list[Any]:
        """Return the messages that arrived; wait at most so many seconds for the first, less if a call ends."""
        self._require_connection()
        return drain(self._inbox, seconds)

    def close(self, *, now: bool = False) -> None:
        """Leave the cluster; one that was started for us ends."""
        self._closing = True
        for inner in list(self._inner.values()):
            inner.cancel()
        with contextlib.suppress(Exception):  # a scheduler that is gone has no queue to be closed
            self._queue.put([("close", "", b"")], timeout=5)
            self._reader.join(timeout=5)
            self._queue.close()
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def _read(self) -> None:
        """Take messages out of the scheduler's queue, for the driver's thread."""
        try:
            while True:
                # One waits, the other takes all that has gathered: a call of the scheduler takes half a millisecond.
                for sent in (self._queue.get(), *self._queue.get(batch=True)):
                    for kind, number, content in sent:
                        if kind == "close":
                            return
                        if kind == "message":
                            self._inbox.put(pickle.loads(content))  # as the scheduler itself sends calls and arguments
                        else:
                            self._end(number, None if kind == "end" else LostWorkerError(content))
        except Exception as error:  # nothing that runs would ever report: no cell's fault
            self._lost = f"{type(error).__name__}: {error}"
            self._inbox.put(WAKE)

    def _require_connection(self) -> None:
        if self._lost and not self._closing:
            raise UserError(
                f"--engine dask: the scheduler cannot be reached any more ({self._lost}); what arrived is stored"
            )

    def _end(self, number: str, error: BaseException | None) -> None:
        outer = self._calls.pop(number, None)
        if outer is None:
            return
        inner = self._inner.pop(number, None)
        if inner is not None and isinstance(error, LostWorkerError):
            inner.cancel()  # or Dask would try it again
        if error is None:
            outer.set_result(None)
        else:
            outer.set_exception(error)
        self._inbox.put(WAKE)


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes that are started inside the block ignore SIGINT for good."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _run_call(name: str, number: str, time_limit: float | None, call: Call, arguments: tuple[Any, ...]) -> None:
    """On a worker: run a call and send what it yields."""
    # A Dask worker may have several threads, but torch's global state (its generator, its threads) is the process's.
    with _one_at_a_time:
        _run_alone(name, number, time_limit, call, arguments)


_one_at_a_time = threading.Lock()


def _run_alone(name: str, number: str, time_limit: float | None, call: Call, arguments: tuple[Any, ...]) -> None:
    import distributed

    sender = _Sender(_queue(name, distributed.get_worker().id))

    def out_of_time() -> None:
        sender.send_now("lost", number, f"{OUT_OF_TIME} ({time_limit:g} s)")
        os._exit(1)  # Dask starts another worker process in its place

    watched = time_limit is not None and not limits_itself(call)
    watchdog = threading.Timer(time_limit or 0.0, out_of_time) if watched else None
    if watchdog is not None:
        watchdog.daemon = True
        watchdog.start()
    with sender:
        try:
            for message in call(*arguments):
                sender.send("message", number, pickle.dumps(message))
            sender.send("end", number, "")
        except LostWorkerError as error:  # of a worker that the call had
            sender.send("lost", number, str(error))
        finally:
            if watchdog is not None:
                watchdog.cancel()


@lru_cache(maxsize=64)
def _queue(name: str, worker: str) -> Any:
    """Return the queue of an executor; making one is a call of the scheduler."""
    import distributed

    return distributed.Queue(name)


class _Sender:
    """Sends messages in the background: those that gather while others are on their way go together."""

    def __init__(self, messages: Any) -> None:
        self._messages = messages
        self._outbox: queue.Queue[Any] = queue.Queue(maxsize=100)  # a call waits for a network that is slower than it
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "_Sender":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._outbox.put(None)
        self._thread.join()
        self._raise()

    def send(self, *message: Any) -> None:
        self._raise()
        self._outbox.put(message)

    def send_now(self, *message: Any) -> None:
        self._messages.put([message])

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        open_ = True
        while open_:
            gathered = drain(self._outbox, None)
            open_ = None not in gathered
            messages = [message for message in gathered if message is not None]
            if messages and self._error is None:
                try:
                    self._messages.put(messages)
                except BaseException as error:  # of the call that sends, which must not wait for this thread
                    self._error = error
