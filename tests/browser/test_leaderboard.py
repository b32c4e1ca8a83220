import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from bench.web.names import file_name
from tests.browser.conftest import PHONE, RULES, Open, Shots
from tests.browser.measures import background, foreign, too_wide
from tests.fixtures.results import HOSTILE

PAGES = (
    "index.html",
    "suites/digits-study.html",
    "history.html",
    "reading.html",
    "methods/deep-ensemble.html",
    "methods/sgld.html",
    "datasets/boston.html",
    "datasets/digits.html",
)


def chosen(page: Page) -> Any:
    return page.locator(".board.chosen")


def choose(page: Page, control: str, value: str) -> None:
    """Choose in a form; another suite is another page."""
    page.select_option(f"select[name={control}]", value)
    if control == "suite":
        expect(page.locator("h1")).to_have_text(value if value == "digits-study" else "Leaderboard")


def names(page: Page) -> list[str]:
    """The methods of the board that is shown, from top to bottom."""
    found: list[str] = chosen(page).locator("tbody tr:visible th > a").all_inner_texts()
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_stands_alone_and_axe_finds_nothing_serious(
    open_page: Open, site: Path, shots: Shots, name: str, scheme: str
) -> None:
    seen = open_page(site / name, scheme=scheme)
    shots.take(seen.page, f"leaderboard-{Path(name).stem}-{scheme}")
    assert seen.violations(*RULES[scheme]) == []
    assert seen.complaints == []
    assert foreign(seen.requests, site / name) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(open_page: Open, site: Path, shots: Shots, name: str) -> None:
    seen = open_page(site / name, width=PHONE)
    seen.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    shots.take(seen.page, f"leaderboard-{Path(name).stem}-phone")
    assert too_wide(seen.page) == []
    assert seen.complaints == []
    assert seen.violations() == []


def test_what_is_printed(open_page: Open, site: Path, shots: Shots) -> None:
    seen = open_page(site / "index.html", width=700, anchor="#suite=regression-study&dataset=boston", scheme="dark")
    seen.page.emulate_media(media="print")
    shots.take(seen.page, "leaderboard-index-print")
    assert background(seen.page) in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    for control in (".choose", "#columns", ".theme", ".data"):
        assert seen.page.locator(f"{control}:visible").count() == 0
    assert seen.page.locator(".board:visible").count() == 1
    assert too_wide(seen.page) == []
    # Chromium leaves buttons out of heads that it repeats, and cuts tables that are much wider than a sheet.
    displays = "all => all.map((one) => getComputedStyle(one).display)"
    assert set(chosen(seen.page).locator(".sort").evaluate_all(displays)) == {"contents"}
    seen.page.set_viewport_size({"width": 794, "height": 1123})
    seen.page.evaluate("document.body.style.width = '688px'")  # a sheet of A4 without its margins
    for address in ("#dataset=boston", "#dataset=boston&metric=nll", "#dataset=&metric=nll"):
        seen.page.evaluate("(address) => { location.hash = address; }", address)
        expect(chosen(seen.page).locator("table")).to_have_count(1)
        assert chosen(seen.page).locator("table").evaluate("one => one.getBoundingClientRect().right") <= 688 * 1.1
    assert seen.page.pdf(format="A4").startswith(b"%PDF")


def test_links_lead_from_a_row_to_its_method_and_on_to_a_dataset(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html").page
    chosen(page).get_by_role("link", name="swag").click()
    expect(page.locator("h1")).to_have_text("swag")
    page.locator("#results-table").get_by_role("link", name="yacht").first.click()
    expect(page.locator("h1")).to_have_text("yacht")
    page.get_by_role("link", name="Leaderboard", exact=True).click()
    expect(chosen(page)).to_have_count(1)


def test_the_table_shows_what_the_document_holds(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html").page
    boards = json.loads((site / "leaderboard.json").read_text("utf-8"))["boards"]
    for wanted in (
        ("regression-study", "", "nll", ""),
        ("regression-study", "yacht", "picp", "Made CPU"),
        ("digits-study", "two-moons", "ece", "Made CPU"),
    ):
        for control, value in zip(("suite", "dataset", "metric", "device"), wanted, strict=True):
            choose(page, control, value)
        (board,) = (b for b in boards if (b["suite"], b["dataset"] or "", b["metric"], b["device"] or "") == wanted)
        assert chosen(page).count() == 1
        assert names(page) == [entry["method"] for entry in board["entries"]]
        places = chosen(page).locator("td.place").all_inner_texts()
        assert places == [str(entry["place"] or "–") for entry in board["entries"]]
        assert page.locator(".board:visible").count() == 1


def test_choices_offer_what_there_is(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html").page
    options = "all => Array.from(all.options, (one) => one.textContent)"
    assert page.eval_on_selector("select[name=suite]", options) == ["regression-study", "digits-study"]
    assert page.eval_on_selector("select[name=device]", options) == ["all devices", "Made CPU"]
    page.select_option("select[name=dataset]", "boston")
    assert page.eval_on_selector("select[name=device]", options) == ["all devices", "Made CPU", "Made GPU (cuda)"]
    page.select_option("select[name=device]", "Made GPU (cuda)")
    assert names(page) == ["pep"]
    choose(page, "suite", "digits-study")
    assert page.eval_on_selector("select[name=task]", options) == ["classification"]
    assert page.eval_on_selector("select[name=metric]", options) == ["all metrics", "accuracy", "ece"]
    assert page.eval_on_selector("select[name=dataset]", options) == ["all datasets", "digits", "two-moons"]


def test_sorting(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html", anchor="#dataset=yacht&metric=nll").page
    board = chosen(page)
    header = board.locator("th", has=page.get_by_role("button", name="Mean", exact=True))
    values = "all => all.map((one) => one.dataset.v)"

    def column() -> list[float]:
        # A method that diverged in some repeats has no value to sort by, and stays below the others.
        found: list[str] = board.locator("tbody tr td:nth-child(5)").evaluate_all(values)
        assert found[-1] == ""
        assert names(page)[-1] == "sgld"
        return [float(value) for value in found[:-1]]

    before = column()
    header.get_by_role("button").click()
    assert column() == sorted(before)
    expect(header).to_have_attribute("aria-sort", "ascending")
    header.get_by_role("button").click()
    assert column() == sorted(before, reverse=True)
    expect(header).to_have_attribute("aria-sort", "descending")
    by_name = board.get_by_role("button", name="Method", exact=True)
    by_name.focus()
    page.keyboard.press("Enter")
    assert names(page) == sorted(names(page))
    assert header.get_attribute("aria-sort") is None


def test_finding_a_method(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html").page
    page.fill("input[name=find]", "MCNI")
    assert sorted(names(page)) == ["mcni-fixed", "mcni-learned"]
    expect(page.locator("#status")).to_contain_text("2 methods")
    page.fill("input[name=find]", "")
    assert len(names(page)) == 8


def test_results_of_one_metric_on_the_page_of_a_method(open_page: Open, site: Path) -> None:
    page = open_page(site / "methods" / "deep-ensemble.html").page
    rows = page.locator("#results-table tbody tr:visible")
    everything = rows.count()
    page.select_option("form select[name=metric]", "picp")
    assert 0 < rows.count() < everything
    assert set(page.locator("#results-table tbody tr:visible td:nth-child(2)").all_inner_texts()) == {"picp"}


def test_a_choice_is_an_address(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html", anchor="#suite=digits-study&dataset=digits&metric=ece").page
    expect(chosen(page).locator("h2")).to_have_text("ece on digits")  # on the page of its suite
    page.select_option("select[name=metric]", "accuracy")
    address = page.evaluate("location.hash")
    assert "metric=accuracy" in address
    again = open_page(site / "index.html", anchor=address).page
    expect(chosen(again).locator("h2")).to_have_text("accuracy on digits")
    named = open_page(site / "index.html", anchor="#suite=digits-study&find=swag").page
    choose(named, "suite", "regression-study")
    assert named.input_value("input[name=find]") == "swag"


def test_search_order_and_columns_are_part_of_the_address(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html", anchor="#suite=regression-study&dataset=boston").page
    assert chosen(page).locator("h2").inner_text() == "All metrics on boston"
    page.fill("input[name=find]", "noise injection")  # what a method is, not its name
    assert set(names(page)) == {"mcni-fixed", "mcni-learned"}
    chosen(page).get_by_role("button", name="nll").click()
    page.get_by_text("Columns: 3 of 3 metrics").click()
    page.locator("#columns").get_by_label("picp").uncheck()
    address = page.evaluate("location.hash")
    assert "find=noise+injection" in address
    assert "sort=nll" in address
    assert "columns=rmse+nll" in address
    again = open_page(site / "index.html", anchor=address).page
    assert names(again) == names(page)
    assert chosen(again).locator("thead th:visible").count() == 3
    expect(chosen(again).locator("th[aria-sort=ascending] .sort")).to_have_text("nll")
    again.evaluate("location.hash = 'suite=regression-study&dataset=boston'")
    expect(chosen(again).locator("thead th:visible")).to_have_count(4)
    expect(chosen(again).locator("th[aria-sort]")).to_have_count(0)
    assert len(names(again)) == 9


def test_equal_values_keep_the_order_of_the_page_whatever_was_sorted_before(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html", anchor="#dataset=yacht&metric=nll").page
    for name in ("Method", "Method", "Repeats"):  # all repeats but one method's are equal
        chosen(page).get_by_role("button", name=name, exact=True).click()
    again = open_page(site / "index.html", anchor=page.evaluate("location.hash")).page
    assert names(again) == names(page)


def test_several_metrics_stand_side_by_side_with_the_places_of_their_boards(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html", anchor="#suite=regression-study&dataset=yacht").page
    boards = json.loads((site / "leaderboard.json").read_text("utf-8"))["boards"]
    own = {b["metric"]: {e["method"]: e for e in b["entries"]} for b in boards if b["dataset"] == "yacht"}
    metrics = chosen(page).locator("thead .sort").all_inner_texts()[1:]
    assert metrics == ["rmse", "nll", "picp"]
    for line in chosen(page).locator("tbody tr").all():
        method = line.locator("th > a").inner_text()
        for metric, cell in zip(metrics, line.locator("td").all(), strict=True):
            entry, words = own[metric][method], cell.inner_text().split()
            assert float(words[0]) == pytest.approx(entry["mean"], abs=0.01)
            assert str(cell.locator(".rank").text_content()).split()[-1][-1] == str(entry["place"] or "–")
            # A mean without all repeats is marked, and never sorted among the others.
            assert (cell.get_attribute("data-v") == "") is (entry["repeats"] < entry["planned"])
    accuracy = open_page(site / "suites" / "digits-study.html", anchor="#dataset=digits").page
    header = chosen(accuracy).locator("th[data-key=accuracy]")
    header.get_by_role("button").click()
    expect(header).to_have_attribute("aria-sort", "descending")  # the best first


def test_the_example_leads_to_its_board(open_page: Open, site: Path) -> None:
    page = open_page(site / "reading.html").page
    link = page.locator("section[aria-labelledby=example] a")
    title, method = link.inner_text(), page.locator("section[aria-labelledby=example] strong").inner_text()
    link.click()
    assert title.startswith(chosen(page).locator("h2").inner_text())
    assert method in names(page)


def test_the_order_of_a_method_page_is_part_of_its_address(open_page: Open, site: Path) -> None:
    path = site / "methods" / "deep-ensemble.html"
    page = open_page(path).page
    page.select_option("form select[name=metric]", "picp")
    page.locator("#results-table").get_by_role("button", name="Mean").click()
    again = open_page(path, anchor=page.evaluate("location.hash")).page
    rows = "#results-table tbody tr:visible"
    assert again.locator(rows).all_inner_texts() == page.locator(rows).all_inner_texts()
    assert again.locator(rows).count() == 4  # one of the three datasets is also shown by device


def test_every_view_has_its_data(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html", anchor="#suite=regression-study&dataset=yacht&metric=rmse").page
    links = chosen(page).locator(".data a")
    assert [link.text_content() for link in links.all()] == [
        f"{kind} of rmse on yacht, suite regression-study, Made CPU" for kind in ("CSV", "JSON")
    ]
    content = (site / str(links.nth(0).get_attribute("href"))).read_text("utf-8")
    assert content.count("\n") == 1 + len(names(page))


def test_the_theme_is_chosen_and_kept(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html", scheme="light").page
    light = background(page)
    page.check("#theme-dark")
    dark = background(page)
    assert dark != light
    page.goto((site / "methods" / "swag.html").as_uri())
    assert background(page) == dark
    page.check("#theme-light")
    assert background(page) == light
    assert background(open_page(site / "index.html", scheme="dark").page) == dark


def test_everything_is_reached_by_the_keyboard(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html").page
    reached = []
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("(document.activeElement.name || '') + ' ' + document.activeElement.textContent.slice(0, 40)")
        )
    assert reached[0] == " Skip to the results"
    order = ["theme", " Which, and why", "suite", "dataset", "metric", "device", "find", " Columns", " Method"]
    places = [next(i for i, text in enumerate(reached) if text.startswith(wanted)) for wanted in order]
    assert places == sorted(places)
    assert any(text == " deep-ensemble" for text in reached)


def test_without_scripts_all_boards_are_there(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html", scripts=False).page
    boards = json.loads((site / "leaderboard.json").read_text("utf-8"))["boards"]
    for suite in ("regression-study", "digits-study"):
        if suite != "regression-study":
            page.get_by_role("navigation", name="Suites").get_by_role("link", name=suite).click()
        own = [board for board in boards if board["suite"] == suite]
        places = {(b["task"], b["dataset"], b["device"]) for b in own}
        assert page.locator(".board:visible").count() == len(own) + len(places) > 5
        assert page.locator("form:visible").count() == 0
        assert page.locator("#columns:visible").count() == 0
        assert page.locator(".many").first.locator("thead th:visible").count() == (4 if suite != "digits-study" else 3)


def test_boards_are_text_until_they_are_chosen(open_page: Open, site: Path) -> None:
    """Hundreds of boards as elements took seconds to open."""
    page = open_page(site / "index.html").page
    assert page.locator(".board table").count() == 1
    page.select_option("select[name=metric]", label="rmse")
    assert page.locator(".board table").count() == 2
    assert chosen(page).locator("h2").inner_text().startswith("rmse")


def test_rows_that_are_not_listed_are_told(open_page: Open, site: Path) -> None:
    page = open_page(site / "index.html").page
    assert "3 rows are not listed" in page.locator(".warning").inner_text()
    line = page.locator("section[aria-labelledby=unlisted] tbody tr")
    assert "drop-connect" in line.inner_text()
    assert "it was changed since its last commit (all of 10 results)" in line.inner_text()
    assert page.locator("a", has_text="drop-connect").count() == 0


@pytest.mark.parametrize("width", [1280, PHONE])
def test_hostile_names_are_text(open_page: Open, hostile_site: Path, shots: Shots, width: int) -> None:
    scripted, long = (file_name(HOSTILE[number][:180]) for number in (0, 2))
    for name in (
        "index.html",
        "history.html",
        f"methods/{scripted}.html",
        f"methods/{long}.html",
        f"datasets/{scripted}.html",
    ):
        seen = open_page(hostile_site / name, width=width)
        shots.take(seen.page, f"hostile-{Path(name).stem[:30]}-{width}")
        assert seen.page.title() != "owned"
        assert seen.complaints == []
        assert seen.page.locator("h1").count() == 1
        assert seen.page.locator("script").count() == 1
        assert too_wide(seen.page) == []
        if name.endswith(f"{scripted}.html"):
            assert seen.page.locator("h1").inner_text() == HOSTILE[0]
            assert seen.page.title().startswith(HOSTILE[0])
    page = open_page(hostile_site / "index.html", width=width).page
    assert sorted(names(page)) == sorted(name[:180].strip() for name in HOSTILE)
    page.fill("input[name=find]", "<SCRIPT>")
    assert names(page) == [HOSTILE[0]]


def test_axe_finds_nothing_serious_among_hostile_names(open_page: Open, hostile_site: Path) -> None:
    assert open_page(hostile_site / "index.html").violations() == []
