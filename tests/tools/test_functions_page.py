from pathlib import Path

import bench
from tools.functions_page import SECTIONS, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "functions.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page() + "\n", "run: python -m tools.functions_page docs/functions.md"


def test_every_exported_name_is_documented_once() -> None:
    names = [name for names in SECTIONS.values() for name in names.split()]
    assert sorted(names) == sorted(bench.__all__)
