"""Options that several commands share, and the exit with an error message."""

import gc
import os
import sys
from functools import partial
from pathlib import Path

import click

from bench.errors import UserError
from bench.store import DEFAULT_URL
from bench.store.passwords import hide_passwords

defaulted = partial(click.option, show_default=True)
repeated = partial(click.option, multiple=True, metavar="NAME")
store_option = defaulted("--store", default=DEFAULT_URL, metavar="URL", help="The store.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plugin_option = click.option(
    "--plugin", "plugins", multiple=True, metavar="FILE", help="A file with plug-ins of your own; may be repeated."
)
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


def fail(message: str, code: int = 2) -> None:
    """Print the message in one line and exit."""
    click.echo("uqbench: " + hide_passwords(" ".join(message.split())), err=True)
    sys.exit(code)
