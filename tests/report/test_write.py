import base64
import hashlib
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.api import Look
from bench.errors import UserError
from bench.plugins.registry import Registry
from bench.report.page import table_cells
from bench.report.tables import text_table
from bench.report.write import write_report
from bench.spec.cell import Cell, Outcome
from bench.store.store import Store, SuiteRecord

WritePlugin = Callable[[str, str], Path]
EVIL = "<script>alert('x')</script>"


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.loaded: set[str] = set()
        self.identities: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded |= {name for name, _ in attrs}
        self.identities += [str(value) for name, value in attrs if name == "id"]
        self.sources += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        if tag not in ("meta", "img", "br", "hr", "link", "input"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.text += data


def fill(
    store: Store, suite: str = "tiny", method: str = "mc-dropout", title: str = "Tiny", *, figures: bool = False
) -> None:
    x = np.linspace(-1, 1, 5)[:, None]
    drawn = {"observed": x[:, 0], "mean": x[:, 0], "variance": np.ones(5), "x": x, "truth": x[:, 0]}
    arrays = drawn if figures else {}
    cells = [Cell(f"{suite}{seed}", "toy", seed, method, seed, "{}") for seed in range(2)]
    store.want(SuiteRecord(suite, title, None, [], "{}"), cells)
    facts = {"python": "3.11"}
    made = Outcome("ok", metrics={"rmse": 0.5, "nll": 1.0}, arrays=arrays, environment=facts)
    store.save((cell, made) for cell in cells)


@pytest.mark.slow
def test_the_page_holds_everything_it_shows(store: Store, tmp_path: Path) -> None:
    fill(store, figures=True)
    written = write_report(store, Registry(), tmp_path / "out")
    assert {path.name for path in written} >= {"index.html", "report.md"}
    assert all(path.is_file() for path in written)
    text = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "http:" not in text
    assert "https:" not in text
    page = Page(text)
    # Nothing is loaded; links lead within the page or to the files beside it.
    assert "src" not in page.loaded
    assert all(source.startswith("#") or (tmp_path / "out" / source).is_file() for source in page.sources)
    assert not {"link", "iframe", "object", "img", "image"} & set(page.tags)
    # Its own script, and no other, may run.
    allowed = re.findall(r"'sha256-([^']+)'", text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts] == allowed
    assert len(scripts) == page.tags.count("script") == 1
    assert page.tags.count("svg") == sum(path.suffix == ".svg" for path in written) == 3
    assert len(page.identities) == len(set(page.identities))  # three drawings in one page
    assert "default-src 'none'" in text
    for said in ("mc-dropout", "rmse", "3.11", "2 ok"):
        assert said in page.text


@pytest.mark.slow
def test_markdown_links_to_figures_that_exist(store: Store, tmp_path: Path) -> None:
    fill(store, figures=True)
    write_report(store, Registry(), tmp_path)
    text = (tmp_path / "report.md").read_text("utf-8")
    links = re.findall(r"!\[.*\]\((.*?)\)", text)
    assert links == [f"figures/tiny-{name}.png" for name in ("intervals-toy", "risk-coverage", "calibration-toy")]
    assert (tmp_path / links[0]).read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / links[0]).with_suffix(".svg").read_bytes()


def test_names_and_messages_are_text_never_markup(store: Store, tmp_path: Path) -> None:
    fill(store, method=f"{EVIL} $\\broken{{", title=EVIL)
    failed = Cell("f", "toy", 7, f"a|b {EVIL}", 7, "{}")
    store.want(SuiteRecord("tiny", EVIL, EVIL, [], "{}"), [failed])
    store.save([(failed, Outcome("failed", f"{EVIL}\n[link](http://evil) `x`", environment={"cpu": EVIL}))])
    write_report(store, Registry(), tmp_path)
    html = (tmp_path / "index.html").read_text("utf-8")
    page = Page(html)
    assert page.tags.count("script") == 1  # its own
    assert page.text.count(EVIL) >= 5
    assert "failed:" not in page.text  # every section was made
    markdown = (tmp_path / "report.md").read_text("utf-8")
    assert re.findall(r"(?<!\\)<", markdown) == []
    assert "a\\|b" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in rows)


def test_a_wicked_suite_name_stays_in_the_folder(store: Store, tmp_path: Path) -> None:
    fill(store, suite="../../up <b>")
    out = tmp_path / "deep" / "out"
    for path in write_report(store, Registry(), out):
        assert path.resolve().is_relative_to(out.resolve())


def test_an_empty_store_is_an_error(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing is stored yet"):
        write_report(store, Registry(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unknown_suite(store: Store, tmp_path: Path) -> None:
    fill(store, "first")
    with pytest.raises(UserError, match=r"unknown suite 'frist'; did you mean first"):
        write_report(store, Registry(), tmp_path, ["frist"])


@pytest.mark.slow
def test_only_the_suites_that_were_asked_for(store: Store, tmp_path: Path) -> None:
    fill(store, "first", title="The first")
    fill(store, "second", title="The second")
    write_report(store, Registry(), tmp_path, ["second"])
    markdown = (tmp_path / "report.md").read_text("utf-8")
    assert "The second" in markdown
    assert "The first" not in markdown
    write_report(store, Registry(), tmp_path)
    assert "The first" in (tmp_path / "report.md").read_text("utf-8")


def test_a_suite_of_which_nothing_ran(store: Store, tmp_path: Path) -> None:
    store.want(SuiteRecord("tiny", "Tiny", "m", ["rmse"], "{}"), [Cell("k", "toy", 0, "m", 0, "{}")])
    write_report(store, Registry(), tmp_path)
    assert "1 not run" in (tmp_path / "report.md").read_text("utf-8")


BROKEN_SECTIONS = {
    "raises": "raise ValueError('no luck <b>')",
    "not-a-section": "return 3",
    "strange-block": "return Section('t', [3])",
    "bad-table": "from bench.api import Table\n        return Section('t', [Table('c', 'no frame')])",
    "bad-figure": "from bench.api import Figure\n        return Section('t', [Figure('n', 'c', None)])",
    "exits": "raise SystemExit(0)",
    "no-title": "return Section(None, [Text('x')])",
    "no-text": "return Section('t', [Text(5)])",
    "no-words": "from bench.api import Facts\n        return Section('t', [Facts({'a': 5})])",
    # These fail when the files or the page are written, not when the section is made.
    "no-caption": "import pandas as pd\n        from bench.api import Table\n"
    "        return Section('t', [Table(None, pd.DataFrame({'a': [1]}), name='t')])",
    "control-sign": "from matplotlib.figure import Figure as Drawn\n        from bench.api import Figure\n"
    "        drawn = Drawn()\n        drawn.text(0.5, 0.5, 'a\\x01b')\n"
    "        return Section('t', [Figure('n', 'c', drawn)])",
    "half-a-sign": "from matplotlib.figure import Figure as Drawn\n        from bench.api import Figure\n"
    "        drawn = Drawn()\n        drawn.text(0.5, 0.5, 'a\\ud800b')\n"
    "        return Section('t', [Figure('n', 'c', drawn)])",
}


@pytest.mark.parametrize("case", BROKEN_SECTIONS)
def test_a_broken_section_costs_no_other(case: str, store: Store, tmp_path: Path, write_plugin: WritePlugin) -> None:
    fill(store)
    body = f"    def section(self, results):\n        {BROKEN_SECTIONS[case]}\n"
    path = write_plugin("mine", f"@dataclass(frozen=True)\nclass Mine(Report):\n{body}")
    write_report(store, Registry([path]), tmp_path)
    page = Page((tmp_path / "index.html").read_text("utf-8"))
    assert "This section failed: " in page.text
    assert "mine" in page.text
    assert "rmse" in page.text
    assert "This section failed" in (tmp_path / "report.md").read_text("utf-8")


def test_a_report_that_cannot_be_built_is_told_in_the_report(
    store: Store, tmp_path: Path, write_plugin: WritePlugin
) -> None:
    fill(store)
    path = write_plugin("needy", "@dataclass(frozen=True)\nclass Needy(Report):\n    must: int\n")
    write_report(store, Registry([path]), tmp_path)
    assert "the option 'must' has no default" in Page((tmp_path / "index.html").read_text("utf-8")).text


def test_an_order_that_is_no_number_is_told_in_the_report(
    store: Store, tmp_path: Path, write_plugin: WritePlugin
) -> None:
    fill(store)
    path = write_plugin("mine", "@dataclass(frozen=True)\nclass Mine(Report):\n    order = 'first'\n")
    write_report(store, Registry([path]), tmp_path)
    assert "could not convert string to float" in Page((tmp_path / "index.html").read_text("utf-8")).text


@pytest.mark.slow
def test_a_damaged_array_file_costs_no_report(store: Store, tmp_path: Path) -> None:
    fill(store, figures=True)
    for path in store.arrays.folder.glob("*.npz"):
        path.write_bytes(b"damaged")
    write_report(store, Registry(), tmp_path)
    page = Page((tmp_path / "index.html").read_text("utf-8"))
    assert "damaged: its content does not match its name" in page.text
    assert "rmse" in page.text


def test_methods_are_drawn_as_their_plug_ins_declare(store: Store, tmp_path: Path, write_plugin: WritePlugin) -> None:
    """Also of a file given by --plugin; a label that is no plug-in gets a look of its own."""
    fill(store)
    method = (
        "from bench.api import Look\n@dataclass(frozen=True)\nclass Own(Method):\n    look = Look('red', ':', 'h')\n"
    )
    looks = "'; '.join(str(style.look(name)) for name in ('own-noise', 'a label'))"
    section = f"    def section(self, results):\n        return Section('Looks', [Text({looks})])\n"
    report = f"from bench.api import style\n@dataclass(frozen=True)\nclass Looks(Report):\n{section}"
    write_report(store, Registry([write_plugin("own_noise", method), write_plugin("looks", report)]), tmp_path)
    text = Page((tmp_path / "index.html").read_text("utf-8")).text
    assert str(Look("red", ":", "h")) in text
    assert text.count("filled=True") == text.count("filled=False") == 1


def test_sections_stand_in_their_order(store: Store, tmp_path: Path, write_plugin: WritePlugin) -> None:
    fill(store)
    body = "    order = {}\n    def section(self, results):\n        return Section('Own {}', [Text('x')])\n"
    files = [
        write_plugin(f"own{order}", f"@dataclass(frozen=True)\nclass Own(Report):\n{body.format(order, order)}")
        for order in (95, 1)
    ]
    write_report(store, Registry(files), tmp_path)
    titles = re.findall(r"^### (.*)$", (tmp_path / "report.md").read_text("utf-8"), re.MULTILINE)
    assert titles == ["Own 1", "Results at a glance", "Results by dataset", "Provenance", "Own 95"]


def test_what_a_suite_is_about_follows_the_first_screen(
    store: Store, tmp_path: Path, write_plugin: WritePlugin
) -> None:
    """Sections about all suites come behind it on the page of one suite, else behind all suites."""
    fill(store)
    own = "    subject = True\n    order = 80\n"
    own += "    def section(self, results):\n        return Section('Subject', [Text('x')])\n"
    both = "    def overall(self, suites):\n        return Section('Together', [Text('x')])\n"
    both += "    def section(self, results):\n        return None\n"
    files = [
        write_plugin(name, f"@dataclass(frozen=True)\nclass Own(Report):\n{body}")
        for name, body in (("about", own), ("both", both))
    ]

    def titles() -> list[str]:
        return re.findall(r"^###? (.*)$", (tmp_path / "report.md").read_text("utf-8"), re.MULTILINE)

    write_report(store, Registry(files), tmp_path)
    assert titles()[1:] == ["Results at a glance", "Together", "Subject", "Results by dataset", "Provenance"]
    fill(store, "second", title="The second")
    write_report(store, Registry(files), tmp_path)
    each = ["Results at a glance", "Subject", "Results by dataset", "Provenance"]
    assert titles() == ["tiny: Tiny", *each, "second: The second", *each, "All suites", "Together"] or titles() == [
        *("second: The second", *each, "tiny: Tiny", *each, "All suites", "Together")
    ]


def section_of_figures(names: list[str]) -> str:
    """Return a plug-in whose section has empty figures of these names."""
    return (
        "@dataclass(frozen=True)\nclass Mine(Report):\n"
        "    def section(self, results):\n"
        "        from bench.api import Figure\n"
        "        from matplotlib.figure import Figure as F\n"
        f"        return Section('t', [Figure(name, 'c', F()) for name in {names}])\n"
    )


@pytest.mark.parametrize("pdf", [False, True])
def test_figures_are_pdf_files_and_links_where_they_are_asked_for(
    pdf: bool, store: Store, tmp_path: Path, write_plugin: WritePlugin
) -> None:
    fill(store)
    path = write_plugin("mine", section_of_figures(["one"]))
    written = write_report(store, Registry([path]), tmp_path, pdf=pdf)
    assert [p.name for p in written if p.suffix == ".pdf"] == ["tiny-one.pdf"] * pdf
    assert ("figures/tiny-one.pdf" in Page((tmp_path / "index.html").read_text("utf-8")).sources) == pdf


def test_figures_of_one_name_do_not_overwrite_each_other(
    store: Store, tmp_path: Path, write_plugin: WritePlugin
) -> None:
    fill(store)
    path = write_plugin("mine", section_of_figures(["A b", "a b", "a/b"]))
    written = write_report(store, Registry([path]), tmp_path)
    assert len(written) == len(set(written))
    assert sorted(p.name for p in written if p.suffix == ".svg") == ["tiny-A-b.svg", "tiny-a-b-2.svg", "tiny-a-b-3.svg"]


def test_a_place_that_cannot_be_written(store: Store, tmp_path: Path) -> None:
    fill(store)
    (tmp_path / "file").write_text("mine", "utf-8")
    with pytest.raises(UserError, match="cannot be written: a file has"):
        write_report(store, Registry(), tmp_path / "file")
    with pytest.raises(UserError, match="cannot be written: a file has"):
        write_report(store, Registry(), tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text("utf-8") == "mine"


def test_columns_of_words_may_break_their_lines_and_others_not() -> None:
    words = {
        "claim": ["short"],
        "numbers": ["a long account of what was found and of what was not " * 2],
        "place": ["Section VI-A, Table IV"],
        "value": ["1,234.5"],
    }
    kinds = [cell["kind"] for cell in table_cells(text_table(pd.DataFrame(words)))["rows"][0]]
    assert kinds == ["", "wide", "words", "n"]
    alone = {name: values for name, values in words.items() if name != "numbers"}
    assert [cell["kind"] for cell in table_cells(text_table(pd.DataFrame(alone)))["rows"][0]] == ["", "", "n"]


def test_the_arrow_of_a_metric_stays_beside_its_name() -> None:
    header = table_cells(text_table(pd.DataFrame({"method": ["a"], "expected error ↓": [1.0]})))["header"]
    assert [name["text"] for name in header] == ["method", "expected error\N{NO-BREAK SPACE}↓"]
