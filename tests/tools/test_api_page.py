from pathlib import Path

import bench.api
from bench.api import Dataset, Method, Report, Tape
from tools.api_page import SECTIONS, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == page() + "\n", "run: python -m tools.api_page docs/api.md"


def test_every_exported_name_is_documented_once() -> None:
    names = [name for names in SECTIONS.values() for name in names.split()]
    assert sorted(names) == sorted(bench.api.__all__)


def test_every_hook_and_every_method_of_the_tape_is_on_the_page() -> None:
    text = PAGE.read_text("utf-8")
    for contract in (Method, Dataset, Report, Tape):
        part = text.partition(f"\n### {contract.__name__}\n")[2].partition("\n### ")[0]
        public = [name for name in {**vars(contract), **contract.__annotations__} if not name.startswith("_")]
        assert len(public) >= 4
        for name in public:
            assert f"`{name}" in part, f"{contract.__name__}.{name}"
