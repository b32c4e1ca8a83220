"""The report page, whatever its sections are."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from bench.plugins.registry import Registry
from bench.report.write import write_report
from bench.spec.cell import Outcome
from bench.store.store import Store
from tests.browser.conftest import PHONE, RULES, Open, Shots
from tests.browser.measures import background, foreign, too_wide
from tests.fixtures.results import HOSTILE, save_outcomes


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_stands_alone_and_axe_finds_nothing_serious(
    open_page: Open, report: Path, shots: Shots, scheme: str
) -> None:
    seen = open_page(report / "index.html", scheme=scheme)
    shots.take(seen.page, f"report-{scheme}")
    shots.take_each(seen.page.locator("section"), f"report-{scheme}")
    assert seen.violations(*RULES[scheme]) == []
    assert seen.complaints == []
    assert foreign(seen.requests, report / "index.html") == []


def test_it_fits_a_phone(open_page: Open, report: Path, shots: Shots) -> None:
    seen = open_page(report / "index.html", width=PHONE)
    seen.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    shots.take(seen.page, "report-phone")
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


def test_what_is_wider_than_the_page_says_so_while_it_is(open_page: Open, report: Path) -> None:
    """A note stands before every part that goes on to the right, and before no other."""
    measured = """() => Array.from(document.querySelectorAll("main .scroll")).filter((one) => one.checkVisibility())
        .map((one) => [one.scrollWidth > one.clientWidth + 1, one.previousElementSibling.checkVisibility()])"""
    for width in (PHONE, 1280):
        page = open_page(report / "index.html", width=width).page
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.wait_for_function(f"() => ({measured})().every(([wide, told]) => wide === told)")
        found = page.evaluate(measured)
        assert {wide for wide, _ in found} == {True, False}
        assert all(wide == told for wide, told in found)


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
def test_hostile_names_and_messages_are_text(open_page: Open, hostile_report: Path, shots: Shots, width: int) -> None:
    seen = open_page(hostile_report / "index.html", width=width)
    seen.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    shots.take(seen.page, f"report-hostile-{width}")
    text = " ".join(seen.page.evaluate("document.body.textContent").split())
    for name in HOSTILE:
        assert " ".join(name[:180].split()) in text
    assert seen.page.title() != "owned"
    assert seen.page.locator("h1").count() == 1
    assert seen.complaints == []
    assert too_wide(seen.page) == []
    assert seen.violations() == []


GLANCE = "main table:has(th:has-text('picp')) >> nth=0"  # the first table of the regression study


def rows_shown(page: Page, table: str = GLANCE) -> list[str]:
    """The methods of a table that are not hidden, from the top."""
    return [row.locator("th").inner_text() for row in page.locator(f"{table} >> tbody tr").all() if row.is_visible()]


def test_a_table_is_sorted_by_its_header_and_the_keyboard(open_page: Open, report: Path) -> None:
    page = open_page(report / "index.html").page
    before = rows_shown(page)
    header = page.locator(f"{GLANCE} >> thead th").nth(1)
    header.locator("button").press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    # Those that lack repeats are marked beside their name, and stay behind.
    whole = f"{GLANCE} >> tbody tr:not(:has(th:has-text(' of '))) td:nth-child(2)"
    values = [float(text.split()[0].strip("†‡")) for text in page.locator(whole).all_inner_texts() if text[:1] != "–"]
    assert len(values) > 5
    assert values == sorted(values)
    assert sorted(rows_shown(page)) == sorted(before)
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"


def test_sorting_keeps_means_over_fewer_repeats_behind(open_page: Open, store: Store, tmp_path: Path) -> None:
    """By their means `short` would be first and `base` last, but these are over fewer repeats than the others have."""
    levels, seeds = (
        {"long": 6.0, "other": 7.0, "short": 5.0, "base": 8.0},
        {"long": 8, "other": 8, "short": 6, "base": 6},
    )
    outcomes = {
        ("d", method, seed): Outcome("ok", metrics={"rmse": levels[method] + 0.01 * seed})
        for method in levels
        for seed in range(seeds[method])
    }
    save_outcomes(store, "made", outcomes, ["rmse"], "base")
    write_report(store, Registry(), tmp_path)
    page = open_page(tmp_path / "index.html").page
    marked = [table for table in page.locator("main table").all() if "6 of 8" in table.locator("tbody").inner_text()]
    assert len(marked) == 3  # at a glance, on the only dataset, results by dataset
    for table in marked:
        button = table.locator("thead th", has_text="rmse").locator("button")
        button.click()
        for expected in (["long", "other"], ["other", "long"]):  # up, then down
            methods = [name.split()[0] for name in table.locator("tbody th").all_inner_texts()]
            assert methods[:2] == expected
            button.click()
        table.locator("thead th").first.locator("button").click()  # by name, all of them
        assert [name.split()[0] for name in table.locator("tbody th").all_inner_texts()] == sorted(levels)


def test_a_filter_hides_methods_and_changes_no_number(open_page: Open, report: Path) -> None:
    seen = open_page(report / "index.html")
    page = seen.page
    cells = {row.locator("th").inner_text(): row.inner_text() for row in page.locator(f"{GLANCE} >> tbody tr").all()}
    page.fill("#methods input", "mcni, swag")
    kept = rows_shown(page)
    assert set(kept) == {"mcni-learned", "mcni-fixed", "swag"}
    assert page.inner_text("#methods-status").endswith("methods; tests are those of all")
    for row in page.locator(f"{GLANCE} >> tbody tr").all():
        if row.is_visible():
            assert row.inner_text() == cells[row.locator("th").inner_text()]
    faded = page.locator("main svg .faded title").all_text_contents()
    assert faded
    assert not any(text.startswith(("mcni", "swag")) for text in faded)
    labels = set(page.locator("main svg text.faded").all_text_contents())
    assert "Deep ensemble" in labels
    assert not labels & {"MCNI (fixed)", "SWAG"}
    page.fill("#methods input", "")
    assert len(rows_shown(page)) == len(cells)
    assert seen.complaints == []


def test_a_metric_can_be_hidden_and_shown_again(open_page: Open, report: Path) -> None:
    page = open_page(report / "index.html").page
    fold = page.locator(".block:has(th:has-text('picp')) .fold").first
    fold.locator("summary").click()
    box = fold.locator("input").first
    header = page.locator(f"{GLANCE} >> thead th").nth(1)
    box.uncheck()
    assert not header.is_visible()
    assert not page.locator(f"{GLANCE} >> tbody tr td:nth-child(2)").first.is_visible()
    box.check()
    assert header.is_visible()


def test_points_of_figures_say_their_values_to_the_pointer(open_page: Open, report: Path) -> None:
    page = open_page(report / "index.html").page
    titles = page.locator("main svg use title").all_text_contents()
    assert any(text.startswith("deep-ensemble: rmse on boston, gain +") for text in titles)


def test_without_scripts_everything_is_there_but_the_controls(open_page: Open, report: Path) -> None:
    plain = open_page(report / "index.html", scripts=False).page
    assert not plain.locator("#methods").is_visible()
    assert plain.locator(".sort, .fold").count() == 0
    scripted = open_page(report / "index.html").page
    assert plain.locator("main tr").count() == scripted.locator("main tr").count()
    assert plain.locator("main svg").count() == scripted.locator("main svg").count()


def test_it_answers_on_the_first_screen(open_page: Open, report: Path, shots: Shots) -> None:
    """The first section is the table with its sentences, above what a window of 1280 x 900 shows."""
    page = open_page(report / "index.html").page
    shots.take(page, "report-first-screen", whole=False)
    assert page.locator("section h3").first.inner_text() == "Results at a glance"
    table = page.locator("section table").first.bounding_box()
    assert table is not None
    assert table["y"] < 400
    words = page.locator("section table thead").first.inner_text()
    assert all(name in words for name in ("method", "accuracy", "ece"))
    answers = page.locator("section dl.answers").first.bounding_box()
    assert answers is not None
    assert answers["y"] < 900


def test_nothing_that_print_keeps_whole_is_higher_than_half_a_page(open_page: Open, report: Path, shots: Shots) -> None:
    """A4 with margins of 14 mm is 182 mm x 269 mm; a block kept whole leaves at most its own height empty."""
    page = open_page(report / "index.html", width=round(182 * 96 / 25.4)).page
    page.emulate_media(media="print")
    shots.print(page, "report")
    kept = page.evaluate(
        """() => Array.from(document.querySelectorAll("main *"))
        .filter((one) => getComputedStyle(one).breakInside === "avoid")
        .map((one) => [one.getBoundingClientRect().height * 25.4 / 96, one.outerHTML.slice(0, 120)])"""
    )
    assert len(kept) > 20
    assert [about for height, about in kept if height > 269 / 2] == []
    assert not page.locator("#methods").is_visible()
