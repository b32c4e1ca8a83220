"""The exports of results in results/, and the public leaderboard that is built from them alone.

    python -m tools.published_results pack [--shown] STORE results/NAME.tar.xz SUITE ...
    python -m tools.published_results site results submissions build/leaderboard

An export is a store in a compressed archive: every value of some suites with its provenance, in full precision, and
the files of plug-ins. It has no arrays and no predictions, but the values that a scaling of the calibration gives, and
names neither the machine nor its users.
"""

import argparse
import json
import sqlite3
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pandas as pd

from bench.counts import plural
from bench.errors import UserError, unknown_name
from bench.leaderboard.collect import Leaderboard
from bench.metrics.recalibration import RAW
from bench.plugins.registry import Registry
from bench.stats.recalibration import SCALINGS, recalibration_frame
from bench.store.address import parse_address
from bench.store.database import insert_rows
from bench.store.merge import merge
from bench.store.recalibrated import COLUMNS, write_recalibrated
from bench.store.results import StoredResults
from bench.store.store import Store
from bench.store.tables import metrics
from bench.submissions.entry import enter
from bench.submissions.scoring import score_submission
from bench.workflow import write_leaderboard
from tools.gallery_results import STORE, anonymous, unpacked

ROOT = Path(__file__).resolve().parents[1]


def pack(source: str, archive: Path, suites: Sequence[str], *, shown: bool = False) -> None:
    """Write an export of some suites of a SQLite store, or of all; the store is left as it is.

    `shown`: only with the metrics that a suite names, under all conditions.
    """
    with Store(source, create=False, writable=False) as store:
        known = store.suites()
    for name in suites:
        if name not in known:
            raise unknown_name("suite", name, known, source)
    path = parse_address(source).path
    if path is None:
        raise UserError(f"{source}: only a SQLite store can be packed; 'uqbench merge' copies this one into one")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / STORE
        with closing(sqlite3.connect(path)) as database:
            database.execute("VACUUM INTO ?", (str(copy),))
        keep_scaled(source, copy, suites or list(known))
        reduce_to(copy, suites or list(known))
        if shown:
            keep_shown(copy)
        with tarfile.open(archive, "w:xz", preset=9) as content:
            content.add(copy, STORE, filter=anonymous)


def keep_scaled(source: str, copy: Path, suites: Sequence[str]) -> None:
    """Write the values before and after a scaling of the calibration of all cells, which need their predictions."""
    corrections = {RAW, *(scaling.correction for scaling in SCALINGS.values())}
    with Store(source, create=False, writable=False) as store, Store(str(copy)) as target:
        for suite in suites:
            results = StoredResults(store, suite)
            found = recalibration_frame(results.cells, results.kept, stored=results.frame, quick=True)
            rows = pd.concat([found, results.corrected]) if len(results.corrected) else found
            chosen = rows.loc[rows["correction"].isin(corrections), list(COLUMNS)]
            scaled = [dict(zip(COLUMNS, row, strict=True)) for row in chosen.itertuples(index=False)]
            target.database.write(partial(write_recalibrated, rows=scaled))


def keep_shown(path: Path) -> None:
    """Remove the metrics that no suite names."""
    with closing(sqlite3.connect(path)) as database:
        named = {name for (text,) in database.execute("SELECT metrics FROM suites") for name in json.loads(text)}
        for (name,) in database.execute("SELECT DISTINCT metric FROM metrics").fetchall():
            if name not in named and name.partition("@")[0] not in named:
                database.execute("DELETE FROM metrics WHERE metric = ?", (name,))
        database.commit()
        database.execute("VACUUM")


def reduce_to(path: Path, suites: Sequence[str]) -> None:
    """Remove other suites, all files that are beside a store, and the traces of drivers."""
    marks = ", ".join("?" for _ in suites)
    with closing(sqlite3.connect(path)) as database:
        for table in ("wanted", "remarks"):
            database.execute(f"DELETE FROM {table} WHERE suite NOT IN ({marks})", tuple(suites))  # our names
        database.execute(f"DELETE FROM suites WHERE name NOT IN ({marks})", tuple(suites))  # our names
        for table in ("cells", "metrics", "rescored", "recalibrated", "searches"):
            database.execute(f"DELETE FROM {table} WHERE key NOT IN (SELECT key FROM wanted)")  # our names
        for table in ("predictions", "drivers", "claims", "settings"):
            database.execute(f"DELETE FROM {table}")  # our names
        database.execute("UPDATE cells SET arrays = NULL")
        database.commit()
        database.execute("VACUUM")


@contextmanager
def merged(exports: Path) -> Iterator[Store]:
    """Yield a store with the results of all exports of a folder; two may have other metrics of the same cell."""
    archives = sorted(exports.glob("*.tar.xz"))
    if not archives:
        raise UserError(f"{exports}: no exports (*.tar.xz); 'python -m tools.published_results pack' writes one")
    with tempfile.TemporaryDirectory() as folder, Store(str(Path(folder) / "all.db")) as store:
        for archive in archives:
            with unpacked(archive) as other:
                done = merge(store, other)
            differ = {one.key for one in done.conflicts if one.here is not None and one.there is not None}
            if differ:
                raise UserError(f"{archive}: {plural(len(differ), 'cell')} with other values than in another export")
            lacking = [one for one in done.conflicts if one.here is None]
            rows = [{"key": one.key, "metric": one.what, "value": one.there} for one in lacking]
            if rows:
                store.database.write(partial(insert_rows, table=metrics, rows=rows))
        yield store


def build_site(exports: Path, submissions: Path, out: Path) -> tuple[Path, Leaderboard]:
    """Write the leaderboard of all exports and submissions; return its page, and what it lists.

    Submissions are folders submissions/SUITE/NAME, each with a submission.toml.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    with merged(exports) as store:
        for document in sorted(submissions.glob("*/*/submission.toml")):
            enter(store, score_submission(document, Registry()), document.parents[1].name)
        return write_leaderboard(store, out, repository=project.get("urls", {}).get("Repository"))


def main() -> None:
    """Write an export, or the site."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = arguments.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="write an export")
    packing.add_argument("store", help="a SQLite store")
    packing.add_argument("archive", type=Path, help="the file to write")
    packing.add_argument("--shown", action="store_true", help="only with the metrics that the suites name")
    packing.add_argument("suites", nargs="*", help="which suites; all by default")
    site = commands.add_parser("site", help="write the leaderboard")
    site.add_argument("exports", type=Path, help="the folder of exports")
    site.add_argument("submissions", type=Path, help="the folder of submissions; it may be missing")
    site.add_argument("out", type=Path, help="where the pages are written")
    given = arguments.parse_args()
    if given.command == "pack":
        pack(given.store, given.archive, given.suites, shown=given.shown)
        print(f"{given.archive}: {given.archive.stat().st_size / 1e6:.2f} MB")
    else:
        page, found = build_site(given.exports, given.submissions, given.out)
        print(f"leaderboard: {page}, {plural(len(found.rows), 'row')} listed, {len(found.unlisted)} not listed")


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        raise SystemExit(f"published_results: {error}") from None
