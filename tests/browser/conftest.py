"""Pages in a real browser: a Chromium of the system, driven by playwright, which brings none of its own.

`CHROMIUM` names the program where it is not `chromium` on the path. `UQBENCH_SCREENSHOTS` names a folder for pictures
of every page, to be looked at; without it none are taken.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'uqbench[test]'")

from playwright.sync_api import Browser, Locator, Page, sync_playwright

from bench.history.files import metric_history, write_history
from bench.leaderboard import collect
from bench.leaderboard.site import write_site
from bench.plugins.registry import Registry
from bench.report.write import write_report
from bench.spec.cell import Outcome
from bench.store.store import Store, SuiteRecord
from tests.fixtures.results import ENVIRONMENT, HOSTILE, cell, fill, spec

AXE = Path(__file__).with_name("axe.min.js")
RULES = {"light": (), "dark": ("color-contrast",)}  # of axe: in the dark a page has other colours, and nothing else
PHONE = 390
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """The program, where there is one."""
    named = os.environ.get("CHROMIUM")
    return shutil.which(named) if named else next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium on the path: install it (Debian: apt-get install chromium) or name it in CHROMIUM")
    with sync_playwright() as playwright:
        # As root, as in a container, Chromium runs without its sandbox only.
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@dataclass
class Seen:
    """A page, with everything it asked for and complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def violations(self, *rules: str) -> list[str]:
        """What axe finds that is serious or critical, in one line each; by some of its rules, or all."""
        # The page's policy lets no other script in; axe comes by the debugger's door, which policies do not guard.
        self.page.evaluate(AXE.read_text("utf-8"))
        options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
        found: dict[str, Any] = self.page.evaluate("(options) => axe.run(document, options)", options)
        return [
            f"{one['id']} ({one['impact']}): {one['nodes'][0]['html'][:200]}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]


Open = Callable[..., Seen]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a file as a reader does, with a width, a colour scheme, with or without scripts."""
    contexts = []

    def opened(path: Path, *, width: int = 1280, scheme: Any = "light", scripts: bool = True, anchor: str = "") -> Seen:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        contexts.append(context)
        seen = Seen(context.new_page())
        watch(seen)
        seen.page.goto(path.as_uri() + anchor)
        return seen

    yield opened
    for context in contexts:
        context.close()


def watch(seen: Seen) -> None:
    """Note what a page asks for and complains about."""
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.on("console", lambda message: seen.complaints.append(message.text))


@dataclass(frozen=True)
class Shots:
    """Takes pictures for people, where a folder for them is named."""

    folder: Path | None

    def take(self, page: Page, name: str, *, whole: bool = True) -> None:
        """The page as it is on the screen, from top to bottom or the part that is visible."""
        if self.folder:
            page.screenshot(path=self.folder / f"{name}.png", full_page=whole)

    def take_each(self, parts: Locator, name: str) -> None:
        """Every part of a page that is found."""
        for number, part in enumerate(parts.all() if self.folder else ()):
            part.screenshot(path=f"{self.folder}/{name}-{number:02}.png")

    def print(self, page: Page, name: str) -> None:
        """The page on paper."""
        if self.folder:
            page.pdf(path=self.folder / f"{name}.pdf", format="A4")


@pytest.fixture(scope="session")
def shots() -> Shots:
    named = os.environ.get("UQBENCH_SCREENSHOTS")
    if named:
        Path(named).mkdir(parents=True, exist_ok=True)
    return Shots(Path(named) if named else None)


@pytest.fixture(scope="session")
def hostile_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Every name that a store may hold, as a method and as a dataset, and failures that say the same."""
    store = Store(str(tmp_path_factory.mktemp("hostile") / "hostile.db"))
    names = [name[:180] for name in HOSTILE]

    def value(dataset: str, method: str, seed: int, metric: str) -> float:
        return 1.0 + 0.1 * names.index(method) + 0.01 * seed + 0.001 * ((seed * 7 + names.index(method)) % 5)

    facts = {**ENVIRONMENT, "cpu": HOSTILE[0], "device_name": HOSTILE[1]}
    fill(
        store,
        value,
        suite=names[0],
        title=HOSTILE[1],
        methods=names,
        datasets=names[:2],
        metrics=["rmse", "nll"],
        environment=facts,
        baseline=names[2],
    )
    # An earlier version whose code says the same, and whose numbers were others.
    fill(
        store,
        lambda *place: value(*place) + 1.0 + 0.001 * place[2],
        suite=names[0],
        methods=names,
        datasets=names[:2],
        metrics=["rmse", "nll"],
        environment={**facts, "code": HOSTILE[0]},
        wanted=False,
        version="0",
        finished=1.6e9,
    )
    failed = cell(spec(names[0], "failing", 0))
    store.want(SuiteRecord(names[0], HOSTILE[1], names[2], [], "{}"), [failed])
    store.save([(failed, Outcome("failed", "\n".join(HOSTILE), environment=facts))])
    store.remark(names[0], names[0], "", [*HOSTILE, "\u202e reversed"])
    return store


@pytest.fixture(scope="session")
def site(shown_site: Path) -> Path:
    return shown_site


@pytest.fixture(scope="session")
def hostile_site(hostile_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hostile-site")
    write_site(collect(hostile_store), Registry(), out)
    return out


@pytest.fixture(scope="session")
def history(shown_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of one metric."""
    return write_history(
        "rmse", metric_history([shown_store], "rmse", "regression-study"), tmp_path_factory.mktemp("history")
    )[0]


@pytest.fixture(scope="session")
def hostile_history(hostile_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_history("rmse", metric_history([hostile_store], "rmse"), tmp_path_factory.mktemp("hostile-history"))[0]


@pytest.fixture(scope="session")
def report(shown_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report")
    write_report(shown_store, Registry(), out)
    return out


@pytest.fixture(scope="session")
def hostile_report(hostile_store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hostile-report")
    write_report(hostile_store, Registry(), out)
    return out
