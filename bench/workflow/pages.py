"""Write reports and leaderboards."""

from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import UserError
from bench.store import DEFAULT_URL
from bench.workflow.sources import Files, Names, StoreSource, opened_store, registry_of

if TYPE_CHECKING:
    from bench.leaderboard import Leaderboard


def write_report(
    store: StoreSource = DEFAULT_URL,
    out: str | Path = "report",
    *,
    suites: Names = (),
    plugins: Files = (),
    pdf: bool = False,
) -> Path:
    """Write a report on some suites of a store (all by default) into a folder; return its page, `index.html`.

    `pdf`: the figures also as PDF, which takes about twice as long.
    """
    from bench.metrics import using_metrics
    from bench.report.write import write_report as write

    registry = registry_of(plugins)
    with opened_store(store) as opened, using_metrics(registry.metrics):
        for suite in suites:
            opened.require_suite(suite)
        return write(opened, registry, Path(out), suites, pdf=pdf)[0]


def write_leaderboard(
    store: StoreSource = DEFAULT_URL,
    out: str | Path = "leaderboard",
    *,
    suites: Names = (),
    metrics: Names = (),
    plugins: Files = (),
    version: str = "",
    frozen: str | Path | None = None,
    repository: str | None = None,
) -> "tuple[Path, Leaderboard]":
    """Write a store as a static site; return its page, `index.html`, and what it lists.

    `version` names the boards. `frozen` is the leaderboard.json of a version that is continued: its places are kept.
    Commits are links to `repository`, a web address; None: to the remote 'origin' of the current folder, if it has one.
    """
    from bench.history.repository import find_repository
    from bench.leaderboard import collect
    from bench.leaderboard.frozen import read_frozen
    from bench.leaderboard.site import write_site
    from bench.metrics import using_metrics

    if version and frozen:
        raise UserError(f"--version {version} with --frozen {frozen}: a site that continues a version has its name")
    kept = None if frozen is None else read_frozen(frozen)
    place = find_repository(repository)
    registry = registry_of(plugins)
    with using_metrics(registry.metrics):
        with opened_store(store) as opened:
            found = collect(opened, suites, metrics, version=version, frozen=kept)
        return write_site(found, registry, Path(out), place)[0], found
