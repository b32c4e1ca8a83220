"""The one place where the command line turns a failure into one line and an exit code."""

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from bench.cli.output import echo, print_failure
from bench.errors import UserError
from bench.store.passwords import hide_passwords

TRACEBACK = "UQBENCH_TRACEBACK"  # set it to see where an error arose


def report_failure(error: BaseException) -> int:
    """Print why a command failed, in one line; return its exit code."""
    if os.environ.get(TRACEBACK) and not isinstance(error, KeyboardInterrupt | click.ClickException):
        with suppress(OSError, UserError):  # standard error is full, or closed
            echo(hide_passwords("".join(traceback.format_exception(error))), err=True)
    if isinstance(error, click.exceptions.Abort | KeyboardInterrupt):
        print_failure("stopped; finished cells are stored")
        return 130
    print_failure(reason(error))
    return 2


@contextmanager
def exits_raised() -> Iterator[None]:
    """Let `os._exit` in this process raise SystemExit: a plug-in would end the command without a word, with any code.

    Processes that are forked from this one end as they want.
    """
    leave, process = os._exit, os.getpid()

    def raised(status: int) -> NoReturn:
        if os.getpid() != process:
            leave(status)
        raise SystemExit(status)

    os._exit = raised
    try:
        yield
    finally:
        os._exit = leave


def reason(error: BaseException) -> str:
    """Return why a command failed."""
    for kind, explain in _REASONS:
        if isinstance(error, kind):
            return explain(error)
    return (
        f"an error in uqbench or in a plug-in: {type(error).__name__}{_detail(error)} ({_place(error)}); "
        f"with {TRACEBACK}=1 in the environment it shows where it arose"
    )


def _refused_by_the_system(error: Any) -> str:
    files = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    return f"{': '.join(files) or 'the system refused'}: {error.strerror or _cut(error)}"


def _too_deep(error: Any) -> str:
    return f"something is nested too deeply ({_place(error)}): a suite, a JSON file or an option of a plug-in"


# The first that fits.
_REASONS: tuple[tuple[type[BaseException], Callable[[Any], str]], ...] = (
    (click.ClickException, lambda error: str(error.format_message())),
    (UserError, str),
    (SystemExit, lambda error: f"a plug-in ended the command (sys.exit({error.code!r})); nothing after that was done"),
    (MemoryError, lambda error: f"out of memory{_detail(error)}; choose less at once, such as fewer seeds or draws"),
    (RecursionError, _too_deep),
    (UnicodeError, lambda error: f"a text or file name is not valid Unicode: {_cut(error)}"),
    (OSError, _refused_by_the_system),
)


def _detail(error: BaseException) -> str:
    return f": {_cut(error)}" if str(error) else ""


def _cut(error: BaseException, most: int = 300) -> str:
    text = str(error)
    return text if len(text) <= most else f"{text[:most]} ..."


def _place(error: BaseException) -> str:
    """Return the file and line where an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"
