"""The page docs/cli.md: every command with its usage and its options.

python -m tools.cli_page docs/cli.md
"""

import inspect
from collections.abc import Iterator

import click

from bench.cli.main import app
from bench.text_tables import markdown_table
from tools.pages import write_page

INTRODUCTION = """# Commands

*Written by `python -m tools.cli_page docs/cli.md` from the commands in `bench/cli/`; edit those.*

`uqbench COMMAND --help` prints the same. [commands.md](commands.md) shows the commands at work, by what you want to do.

Exit codes: 0: success; 1: a cell failed, or a check such as `gate` or `verify` did not pass; 2: an error in the call,
or anything else that failed, explained in one line; 130 or 143: stopped by Ctrl-C or SIGTERM; 141: the reader of the
output has gone. Standard output is the command's alone; what plug-ins print goes to standard error. With
`UQBENCH_TRACEBACK=1` in the environment an error also shows where it arose.
"""


def page() -> str:
    """Return the page."""
    found = list(commands(app, "uqbench"))
    rows = [(f"[`{name}`](#{name.replace(' ', '-')})", command.get_short_help_str(200)) for name, command in found]
    parts = [INTRODUCTION, *markdown_table(["command", "what it does"], rows), ""]
    for name, command in found:
        parts += [f"## {name}", "", *_entry(name, command)]
    return "\n".join(parts).rstrip()


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below a group under its whole name; groups themselves only say what they hold."""
    for own, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {own}")
        elif not command.hidden:
            yield f"{name} {own}", command


def _entry(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"], max_content_width=110)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from ["```text", usage, "```", ""]
    yield from [inspect.cleandoc(command.help or "").replace("\b\n", ""), ""]
    # Not `get_params`: a command keeps the help option of its first call, whose names may be others.
    options = [one for one in command.params if isinstance(one, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context))]
    records.append(("-h, --help", "Show this message and exit."))
    rows = [(f"`{flags}`".replace("|", "\\|"), text.replace("|", "\\|")) for flags, text in records]
    yield from [*markdown_table(["option", "meaning"], rows), ""]


if __name__ == "__main__":
    write_page(__doc__, page)
