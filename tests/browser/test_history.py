"""Histories in a browser: the page of the site, and the page of one metric."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, RULES, Open, Shots
from tests.browser.measures import background, foreign, too_wide
from tests.fixtures.results import HOSTILE

OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_metric_stands_alone_and_axe_finds_nothing_serious(
    open_page: Open, history: Path, shots: Shots, scheme: str
) -> None:
    seen = open_page(history, scheme=scheme)
    shots.take(seen.page, f"history-rmse-{scheme}")
    seen.page.evaluate(OPEN)
    assert seen.violations(*RULES[scheme]) == []
    assert seen.complaints == []
    assert foreign(seen.requests, history) == []


def test_it_fits_a_phone(open_page: Open, history: Path, shots: Shots) -> None:
    seen = open_page(history, width=PHONE)
    shots.take(seen.page, "history-rmse-phone")
    seen.page.evaluate(OPEN)
    assert too_wide(seen.page) == []
    assert seen.complaints == []


def test_the_page_of_the_site_is_whole_when_all_of_it_is_open(open_page: Open, site: Path, shots: Shots) -> None:
    for width in (1280, PHONE):
        seen = open_page(site / "history.html", width=width)
        seen.page.evaluate(OPEN)
        shots.take(seen.page, f"leaderboard-history-open-{width}")
        assert too_wide(seen.page) == []
        assert seen.violations() == []


def test_the_index_leads_to_the_history_and_that_to_a_method(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html").page
    page.get_by_role("navigation").get_by_role("link", name="History").click()
    expect(page.locator("h1")).to_have_text("History")
    rows = page.locator("#changes-table tbody tr")
    expect(rows).to_have_count(6)
    rows.filter(has_text="mcni-learned").first.get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("mcni-learned")
    expect(page.locator("section[aria-labelledby=history]")).to_be_in_viewport()
    page.get_by_role("link", name="All change points").click()
    expect(page.locator("h1")).to_have_text("History")


def test_change_points_are_told_in_words_and_marked_in_the_picture(open_page: Open, site: Path) -> None:
    page = open_page(site / "history.html").page
    first = page.locator("section", has=page.get_by_role("heading", name="rmse", exact=True)).locator("figure").first
    expect(first.locator("ol.changed li")).to_contain_text("better since 0123456789ab")
    expect(first.locator("svg path.b")).to_have_count(1)
    expect(first.locator("svg text.b")).to_have_text("1")
    expect(page.locator("section[aria-labelledby=changes] > p").first).to_contain_text("corrected after Bonferroni")
    # A mark lies between two versions, not on one of them.
    x = first.locator("svg path.b").evaluate("(one) => one.getBBox().x")
    circles = first.locator("svg circle").evaluate_all("(all) => all.map((one) => one.cx.baseVal.value)")
    assert circles[1] < x < circles[2]


def test_change_points_are_sorted_by_the_reader(open_page: Open, site: Path) -> None:
    page = open_page(site / "history.html").page
    header = page.locator("#changes-table th", has=page.get_by_role("button", name="Method", exact=True))
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "ascending")
    expect(page.locator("#changes-table tbody td:nth-child(5) a")).to_have_text(
        ["deep-ensemble"] * 3 + ["mcni-learned"] * 3
    )


def test_light_and_dark(open_page: Open, history: Path) -> None:
    page = open_page(history, scheme="light").page
    light = background(page)
    page.check("#theme-dark")
    assert background(page) != light
    assert background(open_page(history, scheme="dark").page) != light


def test_without_scripts_everything_is_there(open_page: Open, history: Path) -> None:
    page = open_page(history, scripts=False).page
    expect(page.locator("figure")).to_have_count(9 * 3 + 1)
    assert page.locator("figure:visible").count() == 2 * 3  # what has several versions; the rest is folded
    page.get_by_text("22 lines of one version only").click()
    assert page.locator("figure:visible").count() == 9 * 3 + 1


@pytest.mark.parametrize("width", [1280, PHONE])
def test_hostile_names_are_text(open_page: Open, hostile_history: Path, shots: Shots, width: int) -> None:
    seen = open_page(hostile_history, width=width)
    seen.page.evaluate(OPEN)
    shots.take(seen.page, f"history-hostile-{width}")
    text = " ".join(seen.page.evaluate("document.body.textContent").split())
    for name in HOSTILE:
        assert " ".join(name[:180].split()) in text
    assert seen.page.title() == "History of rmse · uqbench"
    assert seen.page.locator("h1").count() == 1
    assert seen.page.locator("script").count() == 1
    assert seen.page.locator("#changes-table tbody tr").count() == 2 * len(HOSTILE)
    assert seen.complaints == []
    assert too_wide(seen.page) == []
    assert seen.violations() == []
