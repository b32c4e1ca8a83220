"""The demonstration of the gate in the documents is what the gate says."""

from pathlib import Path

from tools.gate_demonstration import table
from tools.pages import replace_part

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gate.md"


def test_the_page_says_what_the_gate_says() -> None:
    page = PAGE.read_text("utf-8")
    assert replace_part(page, "demonstration", table()) == page, "run python -m tools.gate_demonstration docs/gate.md"
