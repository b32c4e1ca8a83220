"""Workers of a Dask cluster: a running scheduler by address, or a cluster on this machine.

Orders go out and messages come back through Dask's own connections, so workers need no shared disk; both are JSON and
arrays (bench.run.wire), and this process unpickles nothing (bench.run.executors.dask_guard). Which worker gets an order
is decided here: one that joins is first asked whether it has the same uqbench; one that cannot rebuild a cell that this
process can rebuild is left out, and its order goes to another.
"""

import contextlib
import math
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from bench.errors import UserError
from bench.run.executors import WAKE, Call, LostWorkerError, UnfitWorkerError, drain
from bench.run.executors.dask_client import QUEUE, connected, one_line
from bench.run.executors.dask_cluster import ClusterSettings, OwnCluster
from bench.run.executors.dask_guard import plain_protocol
from bench.run.executors.dask_worker import VERSION, answer
from bench.run.wire import WireError, from_parcel, order_to_text
from bench.run.worker import Message, WorkOrder, why_not

SECONDS_BETWEEN_LOOKS = 1.0  # at which workers there are
SECONDS_FOR_THE_LAST_MESSAGES = 600.0  # of a task that Dask says is done; large arrays may be on a slow network
SECONDS_FOR_AN_ANSWER = 60.0  # of a worker that joined; it may load torch first
KINDS = ("message", "fit", "unfit", "end", "error", "lost", "close")  # of what arrives in the queue


@dataclass
class _Task:
    """A call at a worker, or the question whether the worker can be of use (then there is nobody to tell)."""

    worker: str
    call: str = ""
    order: WorkOrder | None = None
    outer: "Future[None]" = field(default_factory=Future)
    inner: Any = None  # Dask's future
    done: float = math.inf  # when Dask said that it is done


class ClusterExecutor:
    """Runs orders on the workers of a Dask cluster."""

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
        self._time_limit, self._resources = time_limit, dict(resources or {})
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()  # from Dask's threads, for the driver's
        self._tasks: dict[str, _Task] = {}
        self._waiting: deque[tuple[Future[None], str, WorkOrder]] = deque()  # for a free worker
        self._known: dict[str, str] = {}  # address -> name, of all workers that are there
        self._fit: set[str] = set()
        self._left_out: set[str] = set()
        self._notes: list[str] = []
        self._looked, self._alone_since, self._said = -math.inf, math.inf, ""
        self._lost = ""  # why the scheduler cannot be reached any more
        self._closing = False
        self._open = contextlib.ExitStack()
        try:
            own = None
            if address is None:
                own = OwnCluster(ClusterSettings(workers, threads, resources))
                self._open.callback(own.close)
            self._own, self._address = own is not None, address or (own.address if own is not None else "")
            self._open.enter_context(plain_protocol())
            self._client = connected(self._address, own.security if own is not None else None)
            self._open.callback(self._client.close)
            self._name = QUEUE + self._client.id
            self._queue = distributed.Queue(self._name, client=self._client)
        except BaseException:
            self._open.close()
            raise
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def workers(self) -> int:
        """How many workers are not left out, as of a second ago; they may come and go."""
        self._look()
        return len(self._known.keys() - self._left_out)

    def submit(self, call: Call, /, *arguments: Any) -> "Future[None]":
        """Start a call, whose argument is an order, on the next free worker."""
        self._require_connection()
        (order,) = arguments
        outer: Future[None] = Future()
        self._waiting.append((outer, call.__name__, order))
        self._assign()
        return outer

    def receive(self, seconds: float) -> list[Any]:
        """Return the messages that arrived; wait at most so many seconds for the first, less if a call ends."""
        self._require_connection()
        found = [message for event in drain(self._events, seconds) for message in self._handle(*event)]
        self._look()
        self._assign()
        return found

    def notes(self) -> list[str]:
        """Return what happened to workers since the last time, in one line each."""
        notes, self._notes = self._notes, []
        return notes

    def close(self, *, now: bool = False) -> None:
        """Leave the cluster; one that was started for us ends."""
        self._closing = True
        for task in self._tasks.values():
            with contextlib.suppress(Exception):
                task.inner.cancel()
        with contextlib.suppress(Exception):  # a scheduler that is gone has no queue to be closed
            self._queue.put([("close", "", "")], timeout=5)
            self._reader.join(timeout=5)
            self._queue.close()
        self._open.close()

    def _look(self) -> None:
        """See which workers have come, are to be asked, or have gone."""
        if time.monotonic() - self._looked < SECONDS_BETWEEN_LOOKS:
            return
        self._looked = time.monotonic()
        try:
            found = self._client.scheduler_info(n_workers=-1)["workers"]
        except Exception as error:  # told where the driver's thread waits for messages
            self._lost = self._lost or one_line(f"{type(error).__name__}: {error}")
            return
        usable = {
            address: one_line(about.get("name", address))
            for address, about in found.items()
            if all(about.get("resources", {}).get(name, 0) >= count for name, count in self._resources.items())
        }
        for address in self._known.keys() - usable.keys():
            self._fit.discard(address)
            self._left_out.discard(address)
        for number, task in list(self._tasks.items()):
            if task.worker not in usable:
                self._end(number, LostWorkerError("its worker died or left the cluster"))
            elif time.monotonic() - task.done > SECONDS_FOR_THE_LAST_MESSAGES:
                self._end(number, LostWorkerError("its worker ended without a last message"))
        new = usable.keys() - self._known.keys()
        self._known = usable
        for address in new:
            self._start(_Task(address))
        self._say_whether_alone()

    def _say_whether_alone(self) -> None:
        """Tell the user, once each time, that no worker can be given anything; one that joined may take its time."""
        silent = self._known.keys() - self._left_out
        if self._fit:
            self._alone_since, self._said = math.inf, ""
            return
        if self._own and self._left_out and not silent:
            raise UserError("--engine dask: no worker of the cluster on this machine can be used; " + self._notes[-1])
        self._alone_since = min(self._alone_since, time.monotonic())
        if silent and time.monotonic() - self._alone_since < SECONDS_FOR_AN_ANSWER:
            return
        have = {"left out": len(self._left_out), "without an answer": len(silent)}
        which = ", ".join(f"{count} {what}" for what, count in have.items() if count)
        needs = "".join(f" with the resource {name}" for name in self._resources)
        text = f"waiting for workers{needs} of {self._address} ({which or 'none has joined'})"
        if text != self._said:
            self._notes.append(text)
            self._said = text

    def _assign(self) -> None:
        """Hand waiting orders to workers that have none."""
        while self._waiting:
            free = sorted(self._fit - {task.worker for task in self._tasks.values()})
            if not free:
                return
            outer, call, order = self._waiting.popleft()
            if outer.set_running_or_notify_cancel():
                self._start(_Task(free[0], call, order, outer))

    def _start(self, task: _Task, *, check: bool = True) -> None:
        number = uuid.uuid4().hex
        text = "" if task.order is None else order_to_text(task.order)
        request = (task.call, text, check, self._time_limit)
        self._tasks[number] = task
        task.inner = self._client.submit(
            answer,
            self._name,
            number,
            VERSION,
            request,
            key=f"uqbench-{number}",
            workers=[task.worker],
            allow_other_workers=False,
            retries=0,
            resources=self._resources or None,
        )
        task.inner.add_done_callback(lambda inner: self._events.put(("task", number, inner.status)))

    def _handle(self, kind: str, number: str, content: Any) -> list[Message]:
        """Deal with one event; return the message that it brings, if any."""
        task = self._tasks.get(number)
        if task is None:  # of a call that was given up
            return []
        if kind == "message":
            try:
                return [from_parcel(content)]
            except WireError as error:
                self._leave_out(task.worker, f"it sent what is no message of this version ({one_line(error)})")
                self._end(number, UnfitWorkerError("it sent what is no message of this version"))
        elif kind == "fit":
            self._fit.add(task.worker)
            self._end(number, None)
        elif kind == "unfit":
            self._unfit(number, task, one_line(content))
        elif kind == "task" and content == "finished":
            task.done = time.monotonic()  # a good end is reported by the last message: all before it have arrived then
        elif kind == "task" and task.order is None:
            self._unfit(number, task, "it has another version of uqbench or none")
        elif kind == "end":
            self._end(number, None)
        elif kind == "error":
            self._end(number, RuntimeError(one_line(content)))
        else:
            self._end(number, LostWorkerError(str(content) if kind == "lost" else "its worker died or gave it up"))
        return []

    def _unfit(self, number: str, task: _Task, reason: str) -> None:
        """Leave a worker out that cannot rebuild what this process can; else it is the fault of the cells."""
        if task.order is not None and task.order.items and why_not(task.order):
            del self._tasks[number]
            self._start(task, check=False)  # then it reports which cell fails, and why
            return
        self._leave_out(task.worker, reason)
        self._end(number, UnfitWorkerError(reason))

    def _leave_out(self, worker: str, reason: str) -> None:
        self._fit.discard(worker)
        self._left_out.add(worker)
        name = self._known.get(worker, worker)
        which = worker if name in (worker, "") else f"{worker} ({name})"
        self._notes.append(f"worker {which} is left out: {reason}")

    def _read(self) -> None:
        """Take messages out of the scheduler's queue, for the driver's thread."""
        try:
            while True:
                # One waits, the other takes all that has gathered: a call of the scheduler takes half a millisecond.
                for sent in (self._queue.get(), *self._queue.get(batch=True)):
                    for event in _events(sent):
                        if event[0] == "close":
                            return
                        self._events.put(event)
        except Exception as error:  # nothing that runs would ever report: no cell's fault
            self._lost = one_line(f"{type(error).__name__}: {error}")
            self._events.put(WAKE)

    def _require_connection(self) -> None:
        if self._lost and not self._closing:
            raise UserError(
                f"--engine dask: the scheduler cannot be reached any more ({self._lost}); what arrived is stored"
            )

    def _end(self, number: str, error: BaseException | None) -> None:
        task = self._tasks.pop(number)
        if isinstance(error, LostWorkerError):
            task.inner.cancel()  # or Dask would try it again
        if error is None:
            task.outer.set_result(None)
        else:
            task.outer.set_exception(error)
        self._events.put(WAKE)


def _events(sent: Any) -> list[tuple[str, str, Any]]:
    """Return what has the form of events; anybody who reaches the scheduler can put anything into a queue."""
    if not isinstance(sent, (list, tuple)):
        return []
    return [
        (kind, number, content)
        for kind, number, content in (event for event in sent if isinstance(event, (list, tuple)) and len(event) == 3)
        if kind in KINDS and isinstance(number, str)
    ]
