"""What is measured on any page, whatever it shows."""

from pathlib import Path

from playwright.sync_api import Page

# Elements that reach beyond the screen's right edge and are not inside a part that scrolls by itself.
TOO_WIDE = """() => {
  const scrolls = (element) => {
    for (let one = element.parentElement; one; one = one.parentElement) {
      if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(one).overflowX)) return true;
    }
    return false;
  };
  return Array.from(document.body.querySelectorAll("*"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !scrolls(one))
    .map((one) => one.outerHTML.slice(0, 160));
}"""


def too_wide(page: Page) -> list[str]:
    """What does not fit the screen."""
    beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [*page.evaluate(TOO_WIDE), *([f"the page itself, by {beyond} px"] if beyond else [])]


def foreign(requests: list[str], path: Path) -> list[str]:
    """What a page asked for beside itself."""
    return [url for url in requests if url.partition("#")[0] != path.as_uri() and not url.startswith("data:")]


def background(page: Page) -> str:
    """The colour of the paper."""
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))
