"""Every file, heading and Python name that a document refers to exists."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).resolve().parents[1]
NAMES = [
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
    "SUPPORT.md",
    "CODE_OF_CONDUCT.md",
    "results/README.md",
]
NAMES += sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))

LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)")
# Outputs of commands (report/index.html) and files that a user writes (baselines/smoke.json) are not in the tree.
PATH = re.compile(r"(?<![\w./-])(?:bench|datasets|docs|methods|reports|tests|tools)/[\w./*-]*")
DOTTED = re.compile(r"(?<![\w./-])(?:bench|tools)(?:\.[A-Za-z]\w*)+")
IMPORT = re.compile(r"^from (bench[\w.]*) import (.+)$", re.MULTILINE)
FILE_NAME = re.compile(r"\.(?:css|html|json|md|py|toml|txt)$")


@cache
def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def anchors(path: Path) -> set[str]:
    """The names by which GitHub knows the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", text_of(path), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document: Path) -> Iterator[str]:
    for target, anchor in LINK.findall(text_of(document)):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path = document.parent / target if target else document
        if not path.exists():
            yield f"link to {target}"
        elif anchor and anchor not in anchors(path):
            yield f"link to {target}#{anchor}"


def missing_paths(document: Path) -> Iterator[str]:
    for found in PATH.findall(text_of(document)):
        name = found.rstrip(".-")
        if not any(ROOT.glob(name.rstrip("/"))):
            yield name


def exists(dotted: str) -> bool:
    try:
        resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True


def missing_names(document: Path) -> Iterator[str]:
    text = text_of(document)
    names = [name for name in DOTTED.findall(text) if not FILE_NAME.search(name)]
    names += [f"{module}.{name.strip()}" for module, part in IMPORT.findall(text) for name in part.split(",")]
    return (name for name in names if not exists(name))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_document_names_exists(name: str) -> None:
    document = ROOT / name
    stale = {*broken_links(document), *missing_paths(document), *missing_names(document)}
    assert not stale, f"{name} names what does not exist: {', '.join(sorted(stale))}"


def test_stale_names_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading, here\n[a](page.md#a-heading-here) [b](gone.md) [c](#gone) [d](https://x.y/bench/z)\n"
        "`bench/api/tape.py`, `bench/plan/suites/*.toml`, `tests/gone.py`; see bench/gone.\n"
        "`bench.api.Method`, `bench.api.Gone`, python -m tools.gone\n"
        "from bench.api import Batch, Missing\n",
        "utf-8",
    )
    assert list(broken_links(page)) == ["link to gone.md", "link to #gone"]
    assert list(missing_paths(page)) == ["tests/gone.py", "bench/gone"]
    assert list(missing_names(page)) == ["bench.api.Gone", "tools.gone", "bench.api.Missing"]
