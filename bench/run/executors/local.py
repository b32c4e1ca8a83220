"""Worker processes on this machine.

Each worker is a process of its own with its own pipe, and a thread here that feeds it. A worker that dies (killed, out
of memory, a crash in native code) therefore takes nothing down but the call it was at: the others do not notice, and a
new one takes its place. (`ProcessPoolExecutor` ends all its workers when one of them dies.)

Nothing here imports torch: a worker first sets what torch reads when it is loaded.
"""

import atexit
import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import queue
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bench.run.executors import OUT_OF_TIME, WAKE, Call, LostWorkerError, drain, limits_itself
from bench.run.executors.spawn import children_allowed, hidden_main

SPAWN = multiprocessing.get_context("spawn")  # a fork of a process with threads is not safe


@dataclass(frozen=True)
class Settings:
    """What a worker sets before torch is loaded."""

    threads: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    time_limit: float | None = None  # seconds a call may take; then the worker ends itself


class LocalExecutor:
    """A fixed number of worker processes, started in the way of the context `processes`."""

    ends_calls = True

    def __init__(self, settings: list[Settings], processes: BaseContext = SPAWN) -> None:
        self.workers = len(settings)
        self._calls: queue.SimpleQueue[tuple[Future[None], Call, tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._feeders = [_Feeder(each, self._calls, self._inbox, processes) for each in settings]
        for feeder in self._feeders:
            feeder.start()
        # Workers ignore the signal that multiprocessing would end them with.
        atexit.register(self._kill)

    def submit(self, call: Call, /, *arguments: Any) -> "Future[None]":
        """Start a call on the next free worker."""
        future: Future[None] = Future()
        future.add_done_callback(lambda _: self._inbox.put(WAKE))
        self._calls.put((future, call, arguments))
        return future

    def receive(self, seconds: float) -> list[Any]:
        """Return the messages that arrived; wait at most so many seconds for the first, less if a call ends."""
        return drain(self._inbox, seconds)

    def notes(self) -> list[str]:
        """Return nothing: there is nothing to be said of workers that are started for the run."""
        return []

    def pids(self) -> list[int]:
        """Return the workers that are alive."""
        processes = [feeder.process for feeder in self._feeders]
        return [p.pid for p in processes if p is not None and p.pid is not None and p.is_alive()]

    def close(self, *, now: bool = False) -> None:
        """End the workers; now: without waiting for what they are doing."""
        for feeder in self._feeders:
            feeder.closing = now
            self._calls.put(None)
        for feeder in self._feeders:
            while feeder.is_alive():
                if now:  # again and again: it may be starting another one
                    self._kill()
                feeder.join(timeout=0.1)
        atexit.unregister(self._kill)

    def _kill(self) -> None:
        for feeder in self._feeders:
            if feeder.process is not None:
                feeder.process.kill()


class _Feeder(threading.Thread):
    """Feeds one worker process, and starts another when it dies."""

    def __init__(
        self,
        settings: Settings,
        calls: "queue.SimpleQueue[Any]",
        inbox: "queue.SimpleQueue[Any]",
        processes: BaseContext,
    ) -> None:
        super().__init__(daemon=True)
        self.settings, self.calls, self.inbox, self.processes = settings, calls, inbox, processes
        self.process: BaseProcess | None = None
        self.pipe: Connection | None = None
        self.closing = False
        self.began = 0.0
        handle, self.stack_file = tempfile.mkstemp(prefix="uqbench-worker-")
        os.close(handle)

    def run(self) -> None:
        """Run calls until there are no more."""
        while (item := self.calls.get()) is not None and not self.closing:
            future, call, arguments = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                self._run_call(call, arguments)
                future.set_result(None)
            except (EOFError, OSError) as error:
                future.set_exception(LostWorkerError(self._reason(error)))
            except Exception as error:  # of the call, or of sending it
                future.set_exception(error)
        if self.process is not None and self.pipe is not None:
            with contextlib.suppress(OSError):
                self.pipe.send(None)
            self.process.join(timeout=5)
            self.process.kill()
            self.process.join()
        Path(self.stack_file).unlink(missing_ok=True)

    def _run_call(self, call: Call, arguments: tuple[Any, ...]) -> None:
        if self.process is None or not self.process.is_alive() or self.pipe is None:
            self.process = None
            self.pipe, theirs = self.processes.Pipe()
            processes: Any = self.processes  # every context has `Process`, but their base class does not declare it
            process = processes.Process(target=_serve, args=(theirs, self.settings, self.stack_file), daemon=False)
            with hidden_main(), children_allowed():
                process.start()
            self.process = process  # one that was started, for those who want to end it
            theirs.close()  # only the worker holds that end: its death is the end of the pipe
        if self.closing:
            raise EOFError
        self.began = time.monotonic()
        self.pipe.send((call, arguments))
        while True:
            kind, content = self.pipe.recv()
            if kind == "end":
                return
            if kind == "lost":
                raise LostWorkerError(content)
            if kind == "error":
                raise RuntimeError(content)
            self.inbox.put(pickle.loads(content))  # as the pipe itself sends calls and arguments

    def _reason(self, error: Exception) -> str:
        """Return how the worker ended, in words."""
        if self.process is None:
            return f"its worker could not be started: {error}"
        self.process.join(timeout=5)
        code, limit = self.process.exitcode, self.settings.time_limit
        if limit is not None and code == 1 and time.monotonic() - self.began >= limit:
            file = Path(self.stack_file)
            where = file.read_text("utf-8", "replace") if file.is_file() else ""
            return f"{OUT_OF_TIME} ({limit:g} s)\n\n{where}"
        if code is not None and code < 0:
            named = {each.value: each.name for each in signal.Signals}
            name = named.get(-code, f"signal {-code}")
            return f"its worker died of {name}" + (", killed or out of memory" if name == "SIGKILL" else "")
        return f"its worker ended with exit code {code}"


def _serve(pipe: Connection, settings: Settings, stack_file: str) -> None:
    """Be a worker: run calls until the driver sends None or is gone."""
    # Ctrl-C and a cluster's SIGTERM reach the whole group; the driver decides what becomes of the workers.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    os.environ.update(settings.environment)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"):
        os.environ[name] = str(settings.threads)
    threading.Thread(target=end_with_the_driver, daemon=True).start()
    with contextlib.suppress(EOFError, OSError), Path(stack_file).open("w") as stack:
        while (item := pipe.recv()) is not None:
            call, arguments = item
            if settings.time_limit is not None and not limits_itself(call):
                # A thread of C: it also ends a call that never lets Python's own threads run.
                faulthandler.dump_traceback_later(settings.time_limit, exit=True, file=stack)
            for answer in _answers(call, arguments):
                pipe.send(answer)
            faulthandler.cancel_dump_traceback_later()


def _answers(call: Call, arguments: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    messages, answer = call(*arguments), ("", None)
    while answer[0] not in ("end", "lost", "error"):
        answer = _answer(messages)
        yield answer


def _answer(messages: Iterator[Any]) -> tuple[str, Any]:
    try:
        return "message", pickle.dumps(next(messages))  # here, where one that is not plain data is the call's error
    except StopIteration:
        return "end", None
    except LostWorkerError as error:  # of a worker that the call had
        return "lost", str(error)
    except BaseException as error:  # of any type: a worker ends when its driver says so
        return "error", f"{type(error).__name__}: {error}"


def end_with_the_driver() -> None:
    """Wait for the end of the process that started this one, and end it, too."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
