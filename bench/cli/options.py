"""What several commands share: options, where data is looked for, how a mistake is told."""

import os
import sys
from pathlib import Path

import click

from bench.errors import UserError
from bench.store import DEFAULT_URL

store_option = click.option(
    "--store", default=DEFAULT_URL, show_default=True, metavar="URL", help="Where results are kept."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plugin_option = click.option(
    "--plugin", "plugins", multiple=True, metavar="FILE", help="A file with a plug-in of your own; may be repeated."
)
data_option = click.option("--data", metavar="DIR", help="Where datasets look for their files first.")


def look_in(data: str | None) -> None:
    """Have datasets look for their files in a folder first."""
    from bench.machine.data_files import VARIABLE

    if data is not None:
        if not Path(data).is_dir():
            raise UserError(f"--data {data}: no such folder")
        os.environ[VARIABLE] = data


def fail(message: str, code: int = 2) -> None:
    """Say why in one line, and leave."""
    click.echo("uqbench: " + " ".join(message.split()), err=True)
    sys.exit(code)
