from pathlib import Path

from bench.cli.main import app
from tools.cli_page import commands, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page() + "\n", "run: python -m tools.cli_page docs/cli.md"


def test_every_command_and_every_option_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    found = list(commands(app, "uqbench"))
    assert len(found) > 25
    for name, command in found:
        part = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        for option in (flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")):
            assert option in part, f"{name} {option}"
