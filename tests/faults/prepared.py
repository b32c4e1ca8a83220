"""Commands that start at once, and kill themselves at a chosen moment of their writing.

As a program this file imports what every command needs and waits; each command runs in a fork of it, so a start takes a
tenth of a second instead of the seconds that imports take. A command can be told to die of SIGKILL before or after its
n-th write: the commit of a transaction, the renaming of a file that is written whole, the removal of predictions.
Between two writes nothing changes that anybody reads, so these are all the moments there are, up to what a database or
a file system does by itself.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS_OF_A_COMMAND = 180.0
# The function of bench in which a write happens -> what the command was doing.
PHASES = {
    "want": "recording the plan",
    "forget": "recording the plan",
    "remark": "recording the plan",
    "save_plugins": "recording plug-ins",
    "lease": "leasing cells",
    "renew": "renewing leases",
    "release": "returning leases",
    "save_search": "storing a search",
    "save": "storing cells",
    "add": "writing predictions",
}


@dataclass(frozen=True)
class Kill:
    """Die before or after so many writes; instead of the command, one of these processes may die."""

    write: int
    before: bool
    victims: tuple[int, ...] = ()
    worker: bool = False  # of the command itself, in the place of the victims


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: the signal), its output, its writes, and whether it was killed."""

    code: int
    output: str
    writes: list[str]  # what was being done at each
    killed: str = ""  # what was being done at the kill


class Prepared:
    """The waiting program."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.prepared"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: Sequence[str], kill: Kill | None = None) -> Ended:
        """Run a command to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"arguments": list(arguments), "kill": kill and asdict(kill), "folder": str(self._folder)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the program."""
        self._process.communicate()


def main() -> None:
    """Wait for requests, a line of JSON each, and run them one after another."""
    import torch  # noqa: F401  # what commands would import themselves

    import bench.cli.run
    import bench.report.write
    import bench.run.apart
    import bench.workflow  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        folder = Path(request["folder"])
        log, output = folder / "writes.log", folder / "output.txt"
        log.write_text("")
        child = os.fork()
        if child == 0:
            _be_the_command(request["arguments"], request["kill"] and Kill(**request["kill"]), log, output)
        code = os.waitstatus_to_exitcode(_wait(child))
        lines = log.read_text().splitlines()
        writes = [text.removeprefix("write: ") for text in lines if text.startswith("write: ")]
        killed = [text.removeprefix("kill: ") for text in lines if text.startswith("kill: ")]
        print(json.dumps(asdict(Ended(code, output.read_text(), writes, "".join(killed)))), flush=True)


def _wait(child: int) -> int:
    end = time.monotonic() + SECONDS_OF_A_COMMAND
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGABRT)
    return os.waitpid(child, 0)[1]


def _be_the_command(arguments: list[str], kill: Kill | None, log: Path, output: Path) -> None:
    os.setpgid(0, 0)
    for number, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
        file = os.open(os.devnull if number == 0 else output, flags, 0o600)
        os.dup2(file, number)
    os.dup2(1, 2)
    from bench.cli.main import main as command

    _count_writes(kill, log)
    sys.argv = ["uqbench", *arguments]
    code = 0
    try:
        command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    atexit._run_exitfuncs()
    os._exit(code)


def _count_writes(kill: Kill | None, log: Path) -> None:
    """Have every write counted, and the kill done at its number."""
    from sqlalchemy.engine.default import DefaultDialect

    count, unlink = 0, Path.unlink
    file = os.open(log, os.O_WRONLY | os.O_APPEND)

    def die(phase: str, when: str) -> None:
        assert kill is not None
        victims = kill.victims
        if kill.worker:
            victims = tuple(_workers_of(os.getpid()))[:1]
        what = f"{phase}, {when}" if not (kill.worker or kill.victims) else f"a worker, while the driver was {phase}"
        if kill.worker and not victims:
            return
        os.write(file, f"kill: {what}\n".encode())
        for each in victims or (os.getpid(),):
            os.kill(each, signal.SIGKILL)

    def watched(write: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            if write is unlink and arguments[0].suffix != ".npz":  # a temporary file
                return write(*arguments, **options)
            count += 1
            phase = _phase(sys._getframe(1))
            os.write(file, f"write: {phase}\n".encode())
            here = kill is not None and count == kill.write
            if here and kill is not None and kill.before:
                die(phase, "before it was done")
            result = write(*arguments, **options)
            if here and kill is not None and not kill.before:
                die(phase, "after it was done")
            return result

        return counted

    for owner, name in ((DefaultDialect, "do_commit"), (Path, "replace"), (Path, "unlink")):
        setattr(owner, name, watched(getattr(owner, name)))


def _phase(frame: FrameType | None) -> str:
    command = "writing a file"
    while frame is not None:
        name, module = frame.f_code.co_name, str(frame.f_globals.get("__name__", ""))
        if module in ("bench.store.store", "bench.store.arrays") and name in PHASES:
            return PHASES[name]
        if module == "bench.store.schema":
            return "making the tables"
        if module in ("bench.store.merge", "bench.store.gc", "bench.store.check"):
            return f"changing the store ({module.rpartition('.')[2]})"
        frame = frame.f_back
    return command


def _workers_of(driver: int) -> list[int]:
    from tests.faults.harness import workers_of

    return workers_of(driver)


def tally(kills: Counter[tuple[str, str]]) -> str:
    """Return how many kills hit what, as a table: (where, phase) -> times."""
    phases = sorted({phase for _, phase in kills})
    lines = [f"{sum(kills.values())} kill -9 in {len(phases)} phases"]
    for phase in phases:
        where = ", ".join(f"{place} {count}" for (place, each), count in sorted(kills.items()) if each == phase)
        lines.append(f"{sum(count for (_, each), count in kills.items() if each == phase):5} {phase}: {where}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
