"""The side of a Dask worker: computes an order and puts what becomes known into the driver's queue.

The driver sends text and numbers, and gets numbers, text and bytes (bench.run.wire). The queue belongs to the driver's
connection: with the driver it is gone, and an order that nobody waits for any longer ends at its next message.

Light to import, because the scheduler imports it, too.
"""

import os
import queue
import threading
from typing import Any

import bench
from bench.run.executors import OUT_OF_TIME, LostWorkerError, drain, limits_itself
from bench.spec.spec import HARNESS

VERSION = f"{bench.__version__}, numbers of version {HARNESS}"

_one_at_a_time = threading.Lock()


def answer(name: str, number: str, version: str, request: tuple[str, str, bool, float | None]) -> None:
    """Answer a request of the driver whose queue has this name: the call, its order, whether to check it, its limit.

    Without a call it is only asked whether this worker can be of use. Nothing is raised: Dask would send a pickle.
    """
    import distributed

    sender = _Sender(_Queue(name, distributed.get_worker()))
    try:
        # A Dask worker may have several threads, but torch's global state (generator, threads) is the process's.
        with _one_at_a_time, sender:
            _answer(sender, number, version, request)
    except _DriverGoneError:
        return
    except BaseException as error:  # of the network, or of a plug-in, which may also want to end this process
        sender.send_now("error", number, f"{type(error).__name__}: {error}")


def _answer(sender: "_Sender", number: str, version: str, request: tuple[str, str, bool, float | None]) -> None:
    if version != VERSION:
        sender.send("unfit", number, f"it has uqbench {VERSION}; the driver has {version}")
        return
    from bench.run import apart, worker
    from bench.run.wire import order_from_text, to_parcel

    name, text, check, time_limit = request
    if not name:
        sender.send("fit", number, "")
        return
    order = order_from_text(text)
    if check and (reason := worker.why_not(order)):
        sender.send("unfit", number, reason)
        return
    call = {"run_order": worker.run_order, "run_apart": apart.run_apart}[name]

    def out_of_time() -> None:
        sender.send_now("lost", number, f"{OUT_OF_TIME} ({time_limit:g} s)")
        os._exit(1)  # Dask starts another worker process in its place

    watched = time_limit is not None and not limits_itself(call)
    watchdog = threading.Timer(time_limit or 0.0, out_of_time) if watched else None
    if watchdog is not None:
        watchdog.daemon = True
        watchdog.start()
    try:
        for message in call(order):
            sender.send("message", number, to_parcel(message))
        sender.send("end", number, "")
    except LostWorkerError as error:  # of a worker that the call had
        sender.send("lost", number, str(error))
    finally:
        if watchdog is not None:
            watchdog.cancel()


class _DriverGoneError(Exception):
    """The scheduler has no queue of this name any more: its driver has left."""


class _Queue:
    """The driver's queue, written to through the worker's own connection to the scheduler.

    Not `distributed.Queue`: making one creates the queue of a driver that has gone again, and opens another connection.
    """

    def __init__(self, name: str, dask_worker: Any) -> None:
        self._name, self._worker = name, dask_worker

    def put(self, messages: list[Any]) -> None:
        from distributed.utils import sync

        try:
            sync(self._worker.loop, self._worker.scheduler.queue_put, name=self._name, data=messages, timeout=None)
        except KeyError:
            raise _DriverGoneError from None


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
