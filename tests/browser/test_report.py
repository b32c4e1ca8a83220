"""The report page, whatever its sections are."""

from pathlib import Path

import pytest

from tests.browser.conftest import PHONE, Open
from tests.browser.measures import background, foreign, too_wide
from tests.fixtures.results import HOSTILE


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_stands_alone_and_axe_finds_nothing_serious(
    open_page: Open, report: Path, shots: Path, scheme: str
) -> None:
    seen = open_page(report / "index.html", scheme=scheme)
    seen.page.screenshot(path=shots / f"report-{scheme}.png", full_page=True)
    for number, section in enumerate(seen.page.locator("section").all()):
        section.screenshot(path=shots / f"report-{scheme}-{number:02}.png")
    assert seen.violations() == []
    assert seen.complaints == []
    assert foreign(seen.requests, report / "index.html") == []


def test_it_fits_a_phone(open_page: Open, report: Path, shots: Path) -> None:
    seen = open_page(report / "index.html", width=PHONE)
    seen.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    seen.page.screenshot(path=shots / "report-phone.png", full_page=True)
    assert too_wide(seen.page) == []


def test_every_section_and_table_has_a_name(open_page: Open, report: Path) -> None:
    page = open_page(report / "index.html").page
    assert page.locator("section").count() >= 2
    assert page.locator("section:not(:has(h2, h3))").count() == 0
    assert page.locator("table").count() >= 2
    assert page.locator("table:not(:has(caption)), table:not(:has(thead th[scope=col]))").count() == 0
    assert page.locator("img:not([alt])").count() == 0


def test_parts_that_scroll_are_reached_by_the_keyboard(open_page: Open, report: Path) -> None:
    page = open_page(report / "index.html", width=PHONE).page
    for region in page.locator(".scroll").all():
        if region.evaluate("(one) => one.scrollWidth > one.clientWidth && one.checkVisibility()"):
            region.focus()
            assert region.evaluate("(one) => document.activeElement === one")


def test_light_and_dark(open_page: Open, report: Path) -> None:
    light = background(open_page(report / "index.html", scheme="light").page)
    dark = background(open_page(report / "index.html", scheme="dark").page)
    assert light != dark
    page = open_page(report / "index.html", scheme="light").page
    if not page.locator("#theme-dark").count():
        pytest.skip("this report has no switch; it follows the system")
    page.check("#theme-dark")
    assert background(page) == dark
    page.check("#theme-light")
    assert background(page) == light


@pytest.mark.parametrize("width", [1280, PHONE])
def test_hostile_names_and_messages_are_text(open_page: Open, hostile_report: Path, shots: Path, width: int) -> None:
    seen = open_page(hostile_report / "index.html", width=width)
    seen.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    seen.page.screenshot(path=shots / f"report-hostile-{width}.png", full_page=True)
    text = " ".join(seen.page.evaluate("document.body.textContent").split())
    for name in HOSTILE:
        assert " ".join(name[:180].split()) in text
    assert seen.page.title() != "owned"
    assert seen.page.locator("h1").count() == 1
    assert seen.complaints == []
    assert too_wide(seen.page) == []
    assert seen.violations() == []
