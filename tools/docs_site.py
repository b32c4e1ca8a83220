"""Hooks of mkdocs (mkdocs.yml): what the documentation site has beyond the files of docs/.

- The documents at the top of the repository (CONTRIBUTING.md and others) and the notebook become pages.
- Links to them and to source files are adapted. A source file has an address only if pyproject.toml names the
  repository (`[project.urls]`, Repository); without one its name stays as text.
- Pages that the navigation does not list are put into it: those of a folder where the navigation names the folder
  (`results/`), others at its end. So a new page is never out of reach.
"""

import json
import os.path
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
TOP = {
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "SUPPORT.md": "support.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "README.md": "index.md",  # the landing page takes its place
}
SOURCES = {page: name for name, page in TOP.items() if name != "README.md"}  # of pages that are not in docs/
# Code, which is left as it is, or a link: mark of an image, label (which may hold code), target, anchor.
CODE_OR_LINK = re.compile(
    r"^ *```.*?^ *```$|`[^`\n]+`|(!?)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^)\s#]*)(#[^)\s]*)?\)", re.MULTILINE | re.DOTALL
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the repository, if the package does, and complete the navigation."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    if address := project.get("urls", {}).get("Repository"):
        config.repo_url = address
    config.nav = complete_navigation(config.nav or [], Path(config.docs_dir))
    return config


def complete_navigation(nav: list[Any], docs: Path) -> list[Any]:
    """Return the navigation with the pages of named folders, and with those that it lacks at its end."""
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    listed = set(_targets(nav))
    folders = [target for target in listed if target.endswith("/")]
    whole = _expand(nav, {folder: [p for p in pages if p.startswith(folder) and p not in listed] for folder in folders})
    more = [page for page in pages if page not in set(_targets(whole))]
    return [*whole, {"More pages": more}] if more else whole


def _targets(nav: list[Any]) -> Iterator[str]:
    for item in nav:
        for inside in item.values() if isinstance(item, Mapping) else [item]:
            yield from _targets(inside) if isinstance(inside, list) else [inside]


def _expand(nav: list[Any], folders: Mapping[str, list[str]]) -> list[Any]:
    whole: list[Any] = []
    for item in nav:
        if isinstance(item, str):
            whole += folders.get(item, [item])
        else:
            whole.append({t: _expand(part, folders) if isinstance(part, list) else part for t, part in item.items()})
    return whole


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not files of docs/."""
    for page, name in SOURCES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            text = notebook_as_markdown(json.loads(file.content_string), PurePosixPath(file.src_uri).name)
            files.append(File.generated(config, str(PurePosixPath(file.src_uri).with_suffix(".md")), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapt the links of a page."""
    source = SOURCES.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return adapt_links(markdown, source, {file.src_uri for file in files}, config.repo_url)


def adapt_links(markdown: str, source: str, known: set[str], repository: str | None) -> str:
    """Return the text of the document `source` with links as the site needs them; code is left as it is."""

    def adapt(match: re.Match[str]) -> str:
        image, label, target, anchor = match.groups(default="")
        if not target or re.match(r"[a-z]+:", target):
            return match.group()
        path = os.path.normpath(PurePosixPath(source).parent / target)
        place = TOP.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if place == "results" or (place and place not in known and f"{place}/README.md" in known):
            place = f"{place}/README.md" if f"{place}/README.md" in known else _first_below(known, f"{place}/")
        if place in known:
            here = TOP.get(source, source.removeprefix("docs/"))
            return f"{image}[{label}]({os.path.relpath(place, PurePosixPath(here).parent)}{anchor})"
        return f"[{label}]({repository}/blob/main/{path}{anchor})" if repository else label

    return CODE_OR_LINK.sub(adapt, markdown)


def _first_below(known: set[str], folder: str) -> str:
    """Return the page that stands for a folder: its index, or else its first page."""
    pages = sorted(page for page in known if page.startswith(folder) and page.endswith(".md"))
    return next((page for page in pages if page == f"{folder}index.md"), pages[0] if pages else folder)


def notebook_as_markdown(notebook: Mapping[str, Any], name: str) -> str:
    """Return the cells of a notebook with the outputs that it holds."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            parts.append(_output(output))
    heading, _, rest = "\n\n".join(part for part in parts if part).partition("\n")
    return f"{heading}\n\n*This page is [a notebook]({name}) that a test executes.*\n{rest}\n"


def _output(output: Mapping[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![A figure of the cell above](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""
