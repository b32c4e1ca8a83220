import copy
import json
import tomllib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest

from bench.errors import UserError
from bench.leaderboard import collect
from bench.leaderboard.document import schema
from bench.leaderboard.pages import settings, variants
from bench.leaderboard.site import write_site
from bench.plugins.describe import options_of
from bench.plugins.registry import Registry
from bench.spec.plugin import PluginSpec
from bench.store.store import Store
from bench.web.names import file_name
from tests.fixtures.commands import Command
from tests.fixtures.results import ENVIRONMENT, HOSTILE, cell, fill, spec, steps


@pytest.fixture(scope="module")
def site(shown_site: Path) -> Path:
    return shown_site


@pytest.fixture(scope="module")
def document(site: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((site / "leaderboard.json").read_text("utf-8"))
    return found


class Page(HTMLParser):
    """The links, anchors and words of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._inside = tag
        self.links += [given["href"] or ""] if tag == "a" and "href" in given else []
        self.sources += [given[name] or "" for name in ("src", "data", "srcset") if name in given]
        self.ids += [given["id"] or ""] if "id" in given else []

    def handle_data(self, data: str) -> None:
        if self._inside not in ("style", "script"):
            self.text += data


@pytest.mark.slow
def test_every_link_of_every_page_leads_somewhere(site: Path) -> None:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    assert len(pages) == 4 + 9 + 5  # two suites, reading and history; methods; datasets
    for path, page in pages.items():
        assert page.sources == []
        assert len(page.ids) == len(set(page.ids))
        for link in page.links:
            if link.startswith("https://"):  # a publication
                assert link.startswith(("https://arxiv.org/abs/", "https://doi.org/10.", "https://icml.cc/")), link
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / unquote(name)).resolve() if name else path
            assert target.is_file(), f"{path}: {link}"
            assert not anchor or anchor in pages[target].ids, f"{path}: {link}"


def test_boards_say_what_a_method_is_beside_its_name(site: Path) -> None:
    for page in ("index.html", "datasets/yacht.html"):
        text = (site / page).read_text("utf-8")
        assert '</a><span class="small wide" dir="auto">Plain deep ensemble, of points or softmax, <a href=' in text
        assert '<a href="https://arxiv.org/abs/1612.01474" rel="noreferrer">Lakshminarayanan et al. 2017</a>' in text
        assert 'title="Plain deep ensemble, of points or softmax. Lakshminarayanan, Pritzel and Blundell 2017, ' in text
    makers = {
        name: Registry().plugins("method")[name].module().__doc__
        for name in ("deep-ensemble", "mean-variance-ensemble")
    }
    assert [str(doc).partition(":")[0] for doc in makers.values()] == [
        "Plain deep ensemble, of points or softmax",
        "Deep ensemble of mean-variance networks, Lakshminarayanan's in regression",
    ]


def test_the_document_keeps_its_schema(document: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(document, schema(), cls=jsonschema.Draft202012Validator)
    assert {board["suite"] for board in document["boards"]} == {"regression-study", "digits-study"}
    assert len(document["history"]) == 2 * 3 * 3  # methods, datasets, metrics that have two versions


BREAK: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a missing part": lambda d: d.pop("boards"),
    "a part that is not described": lambda d: d.update(more=1),
    "a row without data": lambda d: d["rows"][0].update(data=[]),
    "a row without code": lambda d: d["rows"][0].update(code=[""]),
    "a place below one": lambda d: d["boards"][0]["entries"][0].update(place=0),
    "a mean on an overall board": lambda d: d["boards"][0]["entries"][0].update(mean=1.0),
}


@pytest.mark.parametrize("case", BREAK)
def test_the_schema_refuses(document: dict[str, Any], case: str) -> None:
    broken = copy.deepcopy(document)
    assert broken["boards"][0]["dataset"] is None
    BREAK[case](broken)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema(), cls=jsonschema.Draft202012Validator)


def test_a_build_from_the_same_store_is_the_same(tmp_path: Path, store: Store) -> None:
    fill(store, steps(["a", "b"]), methods=["a", "b"], datasets=["one", "two"])
    contents = []
    for name in ("first", "second"):
        written = write_site(collect(store), Registry(), tmp_path / name)
        contents.append({path.relative_to(tmp_path / name): path.read_bytes() for path in written})
    assert contents[0] == contents[1]


def test_a_row_without_full_provenance_is_on_no_page(store: Store, tmp_path: Path) -> None:
    lacking = {
        "dirty": {**ENVIRONMENT, "code": "abc-dirty"},
        "codeless": {**ENVIRONMENT, "code": "", "packages": {"torch": "2", "numpy": "2"}},
        "packageless": {**ENVIRONMENT, "packages": {"uqbench": "1"}},
        "nowhere": {**ENVIRONMENT, "cpu": ""},
        "empty": {},
    }
    fill(store, steps(["good", "better"]), methods=["good", "better"])
    for name, environment in lacking.items():
        fill(store, steps([name]), methods=[name], environment=environment)
    found = collect(store)
    assert {row.method for row in found.rows} == {"good", "better"}
    assert {one.method: one.reason.partition(" (")[0] for one in found.unlisted} == {
        "dirty": "the code: it was changed since its last commit",
        "codeless": "the version of the code",
        "packageless": "the versions of the packages",
        "nowhere": "the machine",
        "empty": "the version of the code",
    }
    assert all(entry.method in ("good", "better") for board in found.boards for entry in board.entries)
    written = write_site(found, Registry(), tmp_path / "out")
    assert {path.name for path in written if path.parent.name == "methods"} == {"good.html", "better.html"}
    assert "5 rows are not listed" in Page(tmp_path / "out" / "index.html").text


def test_one_result_without_provenance_keeps_its_row_out(store: Store) -> None:
    from bench.spec.cell import Cell, Outcome
    from bench.store.store import SuiteRecord

    cells = fill(store, steps(["good", "mixed"]), methods=["good", "mixed"])
    own = [cell for cell in cells if cell.method == "mixed"]
    foreign = Cell("foreign", "one", 9, "mixed", 9, "{}")
    store.want(SuiteRecord("made", "t", None, [], "{}"), [*own, foreign])
    store.save([(foreign, Outcome("ok", metrics={"rmse": 0.0}, environment=ENVIRONMENT))])
    (unlisted,) = collect(store).unlisted
    assert unlisted.method == "mixed"
    assert unlisted.reason == (
        "the seed (1 of 7 results); the hash of the data (1 of 7 results); "
        "what was run (plug-ins, options, protocol) (1 of 7 results)"
    )


def test_a_package_without_a_checkout_has_its_number_as_code(store: Store) -> None:
    fill(store, steps(["a"]), methods=["a"], environment={**ENVIRONMENT, "code": ""})
    (row,) = collect(store).rows
    assert row.codes == ("uqbench 0.1.0",)


def test_rows_without_results_are_told(store: Store) -> None:
    from bench.store.store import SuiteRecord

    fill(store, steps(["a"]), methods=["a"])
    store.want(SuiteRecord("made", "t", None, [], "{}"), [cell(spec("one", "late", 0))])
    (unlisted,) = collect(store).unlisted
    assert (unlisted.method, unlisted.reason, unlisted.provenance) == ("late", "no result: 1 not run", False)


def test_names_of_files_are_safe_and_never_meet() -> None:
    names = [*HOSTILE, "../../up", "a b", "a/b", "A", "a", "", ".", "con" * 100, "é"]
    made = [file_name(name) for name in names]
    assert len({name.lower() for name in made}) == len(names)
    for name in made:
        assert name
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_")
        assert len(name) < 80
    assert file_name("mc-dropout") == "mc-dropout"


def test_metrics_that_are_asked_for(store: Store) -> None:
    fill(store, steps(["a", "b"]), methods=["a", "b"], metrics=["rmse", "nll", "crps"], shown=["nll"])
    assert {board.metric for board in collect(store).boards} == {"nll"}
    assert {board.metric for board in collect(store, metrics=["rmse"]).boards} == {"rmse"}
    assert {board.metric for board in collect(store, metrics=["all"]).boards} == {"rmse", "nll", "crps"}
    with pytest.raises(UserError, match=r"unknown metric 'rsme'; did you mean rmse"):
        collect(store, metrics=["rsme"])
    with pytest.raises(UserError, match=r"unknown suite 'mad'; did you mean made"):
        collect(store, suites=["mad"])


def test_metrics_under_conditions(store: Store) -> None:
    stored = ["accuracy@fog:1", "accuracy@fog:2"]
    fill(store, steps(["a", "b"]), methods=["a", "b"], metrics=stored, shown=["accuracy"])
    boards = collect(store).boards
    assert {board.metric for board in boards} == set(stored)
    assert {board.task for board in boards} == {"classification"}


def test_the_command(command: Command, store: Store, tmp_path: Path) -> None:
    fill(store, steps(["a", "b"]), methods=["a", "b"])
    fill(store, steps(["c"]), methods=["c"], environment={**ENVIRONMENT, "code": "abc-dirty"})
    done = command("leaderboard", "--store", str(store.path), "--out", "site")
    assert done.code == 0, done.err
    assert done.out.startswith("leaderboard: site/index.html, 2 rows listed\n")
    assert "not listed: 1 row without full provenance" in done.out
    assert (tmp_path / "site" / "leaderboard.json").is_file()


def test_mistakes_are_told_in_one_line(store: Store, tmp_path: Path) -> None:
    fill(store, steps(["a"]), methods=["a"])
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file.index.html: cannot be written: a file has"):
        write_site(collect(store), Registry(), tmp_path / "file")
    empty = Store(str(tmp_path / "empty.db"))
    with pytest.raises(UserError, match="no results yet"):
        collect(empty)


def test_pages_tell_what_the_plugins_say(store: Store, tmp_path: Path) -> None:
    registry = Registry()
    fill(store, steps(["mc-dropout", "nowhere"]), methods=["mc-dropout", "nowhere"], datasets=["diabetes"])
    write_site(collect(store), registry, tmp_path)
    known = Page(tmp_path / "methods" / "mc-dropout.html").text
    assert registry.plugins("method")["mc-dropout"].summary in known
    assert "Gal and Ghahramani" in known
    assert "rate" in known
    foreign = Page(tmp_path / "methods" / "nowhere.html").text
    assert "The plug-in cannot be loaded here: unknown method 'nowhere'" in foreign
    assert "rate = 0.1" in foreign
    dataset = Page(tmp_path / "datasets" / "diabetes.html").text
    assert "442" in dataset
    assert registry.load("dataset", "diabetes").source in dataset


def test_a_default_is_not_the_value_that_was_given() -> None:
    registry = Registry()
    usual = {option.name: option.default for option in options_of(registry.make("method", "mc-dropout", {}))}
    made = {option.name: option.default for option in options_of(registry.make("method", "mc-dropout", {"rate": 0.77}))}
    assert made == usual
    assert "rate" in usual


def test_options_stand_as_a_suite_file_has_them() -> None:
    options = {one.name: (one.kind, one.default) for one in options_of(Registry().make("method", "laplace", {}))}
    assert options["structure"] == ('"last-layer" or "kronecker" or "diagonal"', '"last-layer"')
    assert options["prior_precision"] == ("float or none", "none")
    assert options["precisions"][0] == "list of float"
    written = tomllib.loads(f"precisions = {options['precisions'][1]}")["precisions"]
    assert written == list(Registry().make("method", "laplace", {}).precisions)


def test_the_page_of_a_variant_says_what_it_is_a_variant_of() -> None:
    registry = Registry()
    spec = PluginSpec("mcni-fixed", "built in", "1", {"alpha": 0.05, "noise_in": "test"})
    assert variants("mcni-fixed", [spec], registry) == []
    assert variants("in-draws", [spec, spec], registry) == [("mcni-fixed", (("noise_in", '"test"', '"both"'),))]


def test_suites_with_the_same_options_share_a_column() -> None:
    """Seven columns of the same values hid the meanings."""
    same, other = {"options": {"alpha": 0.1}, "space": {}}, {"options": {"alpha": 0.05}, "space": {}}
    found = settings({"first": same, "second": other, "third": dict(same)})
    assert {name: one["options"]["alpha"] for name, one in found.items()} == {"first, third": 0.1, "second": 0.05}
