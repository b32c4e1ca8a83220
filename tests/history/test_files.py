"""The files of a metric's history, and the same history on the pages of the leaderboard."""

import csv
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.errors import UserError
from bench.history.files import metric_history, write_history
from bench.leaderboard import collect
from bench.leaderboard.site import write_site
from bench.plugins.registry import Registry
from bench.store.store import Store
from bench.web.names import file_name
from tests.fixtures.commands import Command
from tests.fixtures.results import ENVIRONMENT, Value, fill, noisy, store_of_versions


class Reader(HTMLParser):
    """What a page would load, and its words."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        self.loaded += [str(given[name]) for name in ("src", "href") if name in given and given[name] != "#main"]

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


def test_the_page_stands_alone_and_its_data_beside_it(tmp_path: Path) -> None:
    store = store_of_versions(tmp_path / "s.db", noisy([1.0, 1.0, 1.5]), ["a", "b", "<c>"])
    files = write_history("rmse", metric_history([store], "rmse"), tmp_path / "out")
    assert [path.name for path in files] == ["history-rmse.html", "history-rmse.json", "history-rmse.csv"]
    page = Reader(files[0])
    assert page.loaded == []
    assert "c" not in page.tags
    assert page.tags.count("circle") == 3
    assert "worse since <c>: 1.0" in page.words
    assert "corrected after Bonferroni for the 2 places" in page.words
    content = json.loads(files[1].read_text("utf-8"))
    assert (content["alpha"], content["places"]) == (0.01, 2)
    (series,) = content["series"]
    assert np.array(series["values"]).shape == (3, 8)
    (change,) = series["changes"]
    assert (change["code"], change["at"], change["better"]) == ("<c>", 2, False)
    with files[2].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    assert {row["code"] for row in rows if row["change_point"] == "1"} == {"<c>"}
    assert float(rows[0]["value"]) == series["values"][0][0]


def test_no_formulas_in_csv(store: Store, tmp_path: Path) -> None:
    fill(store, lambda *place: -1.0, datasets=["=1+1"], methods=["@m"], environment={**ENVIRONMENT, "code": "-2+3"})
    (*_, table) = write_history("rmse", metric_history([store], "rmse"), tmp_path)
    with table.open(encoding="utf-8", newline="") as file:
        rows = {(row["dataset"], row["method"], row["code"], row["value"]) for row in csv.DictReader(file)}
    assert rows == {("'=1+1", "'@m", "'-2+3", "-1.0")}


def test_a_page_without_a_change_says_so(tmp_path: Path) -> None:
    one = store_of_versions(tmp_path / "1.db", noisy([1.0]), ["a"])
    (page, *_) = write_history("rmse", metric_history([one], "rmse"), tmp_path / "1")
    assert "There is none: the store has results of one version only." in Reader(page).words
    many = store_of_versions(tmp_path / "2.db", noisy([1.0, 1.0]), ["a", "b"])
    (page, *_) = write_history("rmse", metric_history([many], "rmse"), tmp_path / "2")
    assert "There is none." in Reader(page).words


def test_the_command_names_the_commit(tmp_path: Path, command: Command) -> None:
    store_of_versions(tmp_path / "s.db", noisy([1.0, 1.0, 1.5]), ["a", "b", "c"]).close()
    done = command("history", "--metric", "rmse", "--out", "out", "--store", "s.db")
    assert done.code == 0, done.err
    assert "rmse: 1 series, 3 versions" in done.out
    assert "worse  since c: m on toy: 1." in done.out
    assert "       changed: method 1 -> method 2" in done.out
    assert "1 % chance of any false one, Bonferroni over 2 places" in done.out
    assert (tmp_path / "out" / "history-rmse.html").is_file()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    found = metric_history([store_of_versions(tmp_path / "s.db", noisy([1.0]), ["a"])], "rmse")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file.*: cannot be written: a file has"):
        write_history("rmse", found, tmp_path / "file")


@pytest.fixture(scope="module")
def site(shown_site: Path) -> Path:
    return shown_site


def changed(site: Path) -> list[dict[str, Any]]:
    lines = json.loads((site / "leaderboard.json").read_text("utf-8"))["history"]
    return [{**line, **change} for line in lines for change in line["changes"]]


@pytest.mark.slow
def test_the_document_tells_what_changed(site: Path) -> None:
    found = changed(site)
    wanted = [("deep-ensemble", "rmse", True), ("mcni-learned", "nll", False)]
    assert {(one["method"], one["metric"], one["better"]) for one in found} == set(wanted)
    assert len(found) == 2 * 3  # each on three datasets
    for one in found:
        assert (one["point"], one["code"]) == (2, "0123456789ab")
        assert one["points"][one["point"]]["code"] == one["code"]
        size = one["after"] - one["before"]
        assert size == pytest.approx(-0.8 if one["better"] else 0.7, abs=0.1)
    settings = json.loads((site / "leaderboard.json").read_text("utf-8"))["settings"]
    assert settings["changes"] == {"alpha": 0.01, "places": 2 * 3 * 3 * 2}


def test_the_page_of_the_site_lists_all_of_them(site: Path) -> None:
    page = Reader(site / "history.html")
    assert page.tags.count("circle") == 18 * 3
    assert "the 36 places" in page.words
    for one in changed(site):
        assert f"methods/{file_name(one['method'])}.html#history" in page.loaded
    assert page.words.count("better since 0123456789ab") == 3
    assert page.words.count("worse since 0123456789ab") == 3
    index = Reader(site / "index.html")
    assert "history.html" in index.loaded
    assert "6 change points over versions of the code" in index.words


def test_the_page_of_a_method_tells_and_marks_its_own(site: Path) -> None:
    ensemble, quiet = (Reader(site / "methods" / f"{name}.html") for name in ("deep-ensemble", "swag"))
    assert ensemble.words.count("better since 0123456789ab") == 3
    assert "worse since" not in ensemble.words
    assert "the 36 places" in ensemble.words
    assert (site / "methods" / "deep-ensemble.html").read_text("utf-8").count('<path class="b"') == 3
    assert "The store has results of one version only." in quiet.words


def growing(level: float) -> Value:
    return lambda dataset, method, seed, metric: level * (1.0 + 0.001 * seed)


def test_the_newest_change_stands_first(store: Store, tmp_path: Path) -> None:
    for version, (code, level) in enumerate((("aaaa", 1.0), ("bbbb", 2.0), ("cccc", 3.0))):
        facts = {**ENVIRONMENT, "code": code}
        fill(
            store, growing(level), methods=["a"], version=str(version), finished=1e9 + version * 1e6, environment=facts
        )
    write_site(collect(store), Registry(), tmp_path / "out")
    text = (tmp_path / "out" / "history.html").read_text("utf-8")
    table = text[text.index('id="changes-table"') : text.index("</table>")]
    assert 0 < table.index("cccc") < table.index("bbbb")
    assert "aaaa" not in table


def test_a_site_of_one_version_says_that_there_is_nothing(store: Store, tmp_path: Path) -> None:
    fill(store, lambda d, m, s, k: 1.0 + s, methods=["a"])
    write_site(collect(store), Registry(), tmp_path / "out")
    page = Reader(tmp_path / "out" / "history.html")
    assert "There is nothing to compare: the store has results of one version only." in page.words
    assert "no change points" in Reader(tmp_path / "out" / "index.html").words
