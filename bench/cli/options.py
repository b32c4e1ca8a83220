"""Options that several commands share."""

import gc
import os
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from bench.cli.output import STANDARD_OUTPUT
from bench.errors import UserError
from bench.store import DEFAULT_URL

defaulted = partial(click.option, show_default=True)
repeated = partial(click.option, multiple=True, metavar="NAME")
store_option = defaulted("--store", default=DEFAULT_URL, metavar="URL", help="The store.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plugin_option = click.option(
    "--plugin", "plugins", multiple=True, metavar="FILE", help="A file with plug-ins of your own; may be repeated."
)
repository_option = click.option(
    "--repository", metavar="URL", help="Where commits are linked to.  [default: this folder's remote 'origin']"
)


def suite_argument(*, required: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the argument SUITE, which may also be written as `--suite NAME`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def merged(*, suite: str | None, suite_option: str | None, **options: Any) -> None:
            if suite is not None and suite_option is not None and suite != suite_option:
                raise UserError(f"SUITE {suite} and --suite {suite_option}: name one suite")
            chosen = suite_option if suite is None else suite
            if required and chosen is None:
                ctx = click.get_current_context()
                raise click.MissingParameter(ctx=ctx, param_hint="'SUITE'", param_type="argument")
            command(suite=chosen, **options)

        option = click.option("--suite", "suite_option", metavar="NAME", help="The same as SUITE.")
        argument = click.argument("suite", required=False, metavar="SUITE" if required else "[SUITE]")
        return argument(option(merged))

    return decorate


def suites_argument(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments SUITE..., which may also be written as `--suite NAME`, repeatedly."""

    @wraps(command)
    def merged(*, suites: Sequence[str], suite_options: Sequence[str], **options: Any) -> None:
        command(suites=tuple(dict.fromkeys((*suites, *suite_options))), **options)

    option = repeated("--suite", "suite_options", help="The same as SUITE; repeatable.")
    return click.argument("suites", nargs=-1, metavar="[SUITE]...")(option(merged))


def _output_name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the name of a file or folder to write to; an empty one would mean the current folder."""
    if value is not None and not value.strip():
        raise click.BadParameter("the name is empty; name a file or a folder", ctx, param)
    if value in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        # While a command runs, the descriptor of this name is not the command's own output: see bench.cli.output.
        return f"/dev/fd/{os.dup(STANDARD_OUTPUT)}"
    return value


output_option = partial(click.option, callback=_output_name)
data_option = click.option("--data", metavar="DIR", help="The folder that datasets search first.")


def set_data_folder(data: str | None) -> None:
    """Let datasets search this folder first."""
    from bench.machine.data_files import VARIABLE

    if data is not None:
        if not Path(data).is_dir():
            raise UserError(f"--data {data}: no such folder")
        os.environ[VARIABLE] = data


def collect_garbage_rarely() -> None:
    """Look for cyclic garbage after 100,000 new objects instead of 700, for the rest of the process.

    For commands that read and print: most of their objects are modules, rows and parts of figures that live to the end,
    and looking through them again and again took a sixth of the time of a report. Training needs the default: garbage
    may hold large tensors.
    """
    gc.set_threshold(100_000)
