"""One base template, one palette and one stylesheet for report, history and leaderboard."""

import base64
import hashlib
import re
from importlib.resources import files

import pytest

from bench.report.page import page
from bench.web.dates import day, iso_time
from bench.web.names import readable_name
from bench.web.templating import templates

STYLES = [("web", "style.css"), *((room, f"{room}.css") for room in ("history", "leaderboard", "report"))]
INLINE = {"--lanes", "--own", "--gap", "--drawn"}  # set by a table


def text(room: str, name: str) -> str:
    return (files(f"bench.{room}") / "templates" / name).read_text("utf-8")


def declared(css: str) -> set[str]:
    return set(re.findall(r"(--[a-z0-9-]+)\s*:", css))


def history_page() -> str:
    content = {"title": "<T>", "lines": 0, "versions": 1, "changes": [], "data": "d", "table": "t"}
    metric = {"better": "lower is better", "groups": []}
    return templates("bench.history").get_template("history_metric.html").render(content, metrics=[metric])


def test_the_palette_has_every_colour_for_light_and_dark_paper() -> None:
    assert declared(text("web", "light.css")) == declared(text("web", "dark.css"))


@pytest.mark.parametrize(("room", "name"), STYLES)
def test_stylesheets_use_colours_of_the_palette_only(room: str, name: str) -> None:
    css = text(room, name)
    known = declared(text("web", "light.css")) | declared(text("web", "style.css")) | INLINE
    assert set(re.findall(r"var\((--[a-z0-9-]+)", css)) <= known
    assert not re.findall(r"#[0-9a-f]{3,6}\b", css)


def test_only_the_script_of_the_page_may_run() -> None:
    html = history_page()
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'\"" in html
    assert "<title>&lt;T&gt; · uqbench</title>" in html


def test_a_report_runs_its_own_script_and_shares_the_style_of_the_other_pages() -> None:
    report, history = page([], "a store"), history_page()
    own = text("report", "report.js") + text("web", "script.js")
    allowed = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert report.count("<script") == 1
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{allowed}'\"" in report
    shared = [re.findall(r"<style>\n(:root.*?@media print)", html, re.DOTALL)[0] for html in (report, history)]
    assert shared[0] == shared[1]
    assert "{%" not in shared[0]


def test_dates() -> None:
    assert iso_time(1e9) == "2001-09-09T01:46:40+00:00"
    assert day(1e9) == "2001-09-09"
    assert (iso_time(0.0), iso_time(1e300), day(0.0)) == (None, None, "")


def test_readable_names_are_safe_and_short() -> None:
    assert readable_name("history-ece@gaussian_noise-5") == "history-ece-gaussian_noise-5"
    assert readable_name("../../up <b>") == "up-b"
    assert readable_name("…") == "unnamed"
    assert len(readable_name("x" * 500)) == 80
