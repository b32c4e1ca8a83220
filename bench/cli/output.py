"""What a command prints: standard output is the command's alone, what plug-ins print goes to standard error.

So what another program reads (`--json`, `export`) is never mixed with the words of a plug-in, whether they come from
`print`, from a library in C or from a worker process.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn, TextIO

import click

from bench.errors import UserError
from bench.store.passwords import hide_passwords

_STREAM = "bench.cli.output"  # its place in click's context
STANDARD_OUTPUT, STANDARD_ERROR = 1, 2  # file descriptors
CLOSED_PIPE = 141  # the exit code that a shell shows for programs that SIGPIPE ended


class Command(click.Command):
    """A command that owns the standard output while it runs."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; help texts and mistakes in the call are printed before."""
        with own_output() as stream:
            ctx.meta[_STREAM] = stream
            return super().invoke(ctx)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Parse the call; help texts are printed here."""
        with _closed_pipe_ends():
            try:
                return super().make_context(*arguments, **more)
            except click.exceptions.NoArgsIsHelpError as error:  # 'uqbench' without a command
                echo(error.format_message())
                end(0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was called."""
        with _closed_pipe_ends():
            return super().invoke(ctx)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a text as the command's own output, or as a remark on standard error."""
    stream = sys.stderr if err else output_stream()
    if stream is not None:
        with failures_named():
            click.echo(text, file=stream)


def output_stream() -> TextIO | None:
    """Return the standard output of the running command; None where there is none ('>&-')."""
    context = click.get_current_context(silent=True)
    stream: TextIO | None = sys.stdout if context is None else context.meta.get(_STREAM, sys.stdout)
    return stream


@contextlib.contextmanager
def failures_named() -> Iterator[None]:
    """Say of an error inside the block that it is about standard output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"standard output: {error.strerror or error}") from error


def fail(message: str, code: int = 2) -> NoReturn:
    """Print the message in one line and end the command."""
    print_failure(message)
    end(code)


def end(code: int) -> NoReturn:
    """End the command with an exit code. Not by `sys.exit`: that is how a plug-in would try to end it."""
    raise click.exceptions.Exit(code)


def print_failure(message: str) -> None:
    """Print why a command failed, in one line, where that is possible."""
    with contextlib.suppress(OSError, ValueError):  # standard error is full, or closed
        line = "uqbench: " + hide_passwords(" ".join(message.split()))
        click.echo(line.encode("utf-8", "backslashreplace").decode(), err=True)  # names of files may be no text


@contextlib.contextmanager
def _closed_pipe_ends() -> Iterator[None]:
    """End the command without a word if nobody reads its output any more ('uqbench list | head')."""
    try:
        yield
    except BrokenPipeError:
        end(CLOSED_PIPE)


@contextlib.contextmanager
def own_output() -> Iterator[TextIO | None]:
    """Yield a stream to standard output; all else that is printed inside the block goes to standard error.

    The file descriptor itself is replaced, too: code in C and processes that are started here have it from us.
    """
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        if not _is_standard_output(out):  # none, or one that a test or a notebook put there
            yield out
            return
        out.flush()
        with _kept_descriptor() as number:
            stream = os.fdopen(number, "w", encoding=out.encoding, errors="backslashreplace", closefd=False)
            try:
                yield stream
                with failures_named():
                    stream.flush()
            finally:
                discard_unwritable(stream)


def occupy_descriptors() -> None:
    """Open the null device where a standard stream is closed ('>&-').

    The next file that is opened, such as a store, would have its number, and whatever is printed would go into it.
    """
    for number in (0, STANDARD_OUTPUT, STANDARD_ERROR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


@contextlib.contextmanager
def _kept_descriptor() -> Iterator[int]:
    """Yield another descriptor of standard output; inside the block its own number stands for standard error."""
    number = os.dup(STANDARD_OUTPUT)  # processes that are started do not inherit this one
    try:
        os.dup2(STANDARD_ERROR, STANDARD_OUTPUT)
        yield number
    finally:
        os.dup2(number, STANDARD_OUTPUT)
        os.close(number)


def _is_standard_output(stream: Any) -> bool:
    try:
        return bool(stream.fileno() == STANDARD_OUTPUT)
    except (AttributeError, OSError, ValueError):
        return False


def discard_unwritable(stream: TextIO | None) -> None:
    """Drop what a stream still holds where it cannot be written: Python would complain about it at its end."""
    if stream is None or stream.closed:
        return
    try:
        stream.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
