"""The documentation builds strictly, has no dead links and loads nothing from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'uqbench[test]'")
pytest.importorskip("material", reason="mkdocs-material is not installed: pip install 'uqbench[test]'")

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from tools.docs_site import adapt_links, complete_navigation, notebook_as_markdown

ROOT = Path(__file__).resolve().parents[2]


class Addresses(HTMLParser):
    """Collects what a page loads, what it links to, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: set[str] = set()
        self.linked: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if "src" in given:
            self.loaded.add(given["src"])
        if "href" in given:
            (self.loaded if tag == "link" else self.linked).add(given["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Addresses]:
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return {path.resolve(): Addresses(path.read_text("utf-8")) for path in folder.rglob("*.html")}


@pytest.mark.slow
def test_every_document_is_a_page(site: dict[Path, Addresses]) -> None:
    names = {path.stem for path in site}
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages | {"contributing", "architecture", "changelog", "notebook"} <= names


@pytest.mark.slow
def test_no_link_is_dead(site: dict[Path, Addresses]) -> None:
    checked, dead = 0, []
    for path, page in site.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        for address in page.linked | page.loaded:
            target, _, anchor = unquote(address).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            found = (path.parent / target).resolve() if target else path
            checked += 1
            if not found.is_file() or (anchor and found in site and anchor not in site[found].anchors):
                dead.append(f"{path.name}: {address}")
    assert checked > 1000
    assert dead == []


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: dict[Path, Addresses]) -> None:
    loaded = {address for page in site.values() for address in page.loaded}
    assert {one for one in loaded if re.match(r"(https?:)?//", one)} == set()


@pytest.mark.slow
def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A page\n\n[gone](#gone)\n", "utf-8")
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[0]
    settings = tmp_path / "mkdocs.yml"
    settings.write_text(text.replace("  - tools/docs_site.py", f"  - {ROOT}/tools/docs_site.py"), "utf-8")
    with pytest.raises(Abort, match="strict mode"):
        build(load_config(str(settings), site_dir=str(tmp_path / "site"), strict=True))


def test_links_become_those_of_the_site() -> None:
    known = {"api.md", "index.md", "contributing.md", "gallery/README.md", "results/toy.md"}
    text = "[a](docs/api.md#tape) [`b`](bench/api/tape.py) [c](docs/gallery) [d](#here) [f](docs/results)"
    adapted = "[a](api.md#tape) `b` [c](gallery/README.md) [d](#here) [f](results/toy.md)"
    assert adapt_links(text, "CONTRIBUTING.md", known, None) == adapted
    assert adapt_links("[e](https://x.y)", "CONTRIBUTING.md", known, None) == "[e](https://x.y)"
    assert adapt_links("[r](README.md)", "CONTRIBUTING.md", known, None) == "[r](index.md)"
    assert adapt_links("[c](../../CONTRIBUTING.md)", "docs/results/toy.md", known, None) == "[c](../contributing.md)"
    address = adapt_links("[s](../bench/x.py)", "docs/api.md", known, "https://host/owner/name")
    assert address == "[s](https://host/owner/name/blob/main/bench/x.py)"


@pytest.mark.parametrize("code", ["`x[0](bench/a.py)`", "```python\ncall[0](bench/a.py)\n```"])
def test_code_is_left_as_it_is(code: str) -> None:
    assert adapt_links(code, "CONTRIBUTING.md", set(), None) == code


def test_the_navigation_has_all_pages(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for name in ("index", "new", "results/a", "results/b"):
        (tmp_path / f"{name}.md").touch()
    assert complete_navigation(["index.md", {"Results": ["results/"]}], tmp_path) == [
        "index.md",
        {"Results": ["results/a.md", "results/b.md"]},
        {"More pages": ["new.md"]},
    ]


def test_a_notebook_becomes_a_page() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "Text."]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"data": {"text/plain": ["2"]}}]},
        {"cell_type": "code", "source": ["draw()"], "outputs": [{"data": {"image/png": "aGk=\n", "text/plain": "x"}}]},
    ]
    text = notebook_as_markdown({"cells": cells}, "page.ipynb")
    assert text.startswith("# Title\n\n*This page is [a notebook](page.ipynb)")
    assert "```python\n1 + 1\n```\n\n```text\n2\n```" in text
    assert "](data:image/png;base64,aGk=)" in text
