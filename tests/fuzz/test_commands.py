"""Commands on inputs that were changed at random: one line where something is wrong, a documented exit code, no hang.

`make fuzz` tries UQBENCH_FUZZ inputs (10,000), shared by the kinds below; without that variable a few of each.
"""

import json
import math
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.cli import main as cli
from bench.store.store import Store
from tests.fixtures.results import save_classifiers
from tests.fixtures.suites import TINY

KINDS = 7
EXAMPLES = max(5, math.ceil(int(os.environ.get("UQBENCH_FUZZ", "0")) / KINDS))
SECONDS = 60  # that no command on a small input may take
CODES = {0, 1, 2}  # of README.md; nobody stops these commands, and somebody reads what they print

TABLE = "a,b,price\n" + "".join(f"{i},{i * i % 7},{3 * i}\n" for i in range(30))
SUITE = TINY + '\n[datasets.houses]\nuse = "csv"\npath = "houses.csv"\ntarget = "price"\n'
SUITE += '\n[methods.laplace]\n[methods.deep-ensemble]\nnetworks = 2\n[gate]\nmetrics = ["rmse"]\nalpha = 0.05\n'
TOKENS = [
    *"[]{}=,\"\n\t .-'#\\/:;%?*\0é\ufeff\u202e",
    *("0", "-1", "1e400", "nan", "inf", "9" * 40, "true", "null", "=1+1", "../..", "[[", "x" * 300),
    *("seeds", "draws", "title", "training", "methods", "datasets", "network", "hidden", "values", "format", "places"),
]

# What is done to a text: at a place (as a share of its length), so many signs are replaced by a token.
changes = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 30), st.one_of(st.sampled_from(TOKENS), st.text(max_size=5))),
    min_size=1,
    max_size=6,
)
bytes_changes = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 50), st.binary(max_size=20)), min_size=1, max_size=5)


def changed(content: Any, edits: list[tuple[float, int, Any]]) -> Any:
    for place, length, new in edits:
        at = int(place * len(content))
        content = content[:at] + new + content[at + length :]
    return content


class HangError(BaseException):
    """A command took too long."""


@contextmanager
def time_limit() -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


Check = Callable[..., None]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite, a table, a store, a baseline and a published leaderboard that are all well."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "good.toml").write_text(SUITE, "utf-8")
    (folder / "houses.csv").write_text(TABLE, "utf-8")
    with Store(str(folder / "good.db")) as store:
        save_classifiers(store, {"a": 12, "c": 1})
    return folder


@pytest.fixture
def check(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Check:
    """Run a command in the folder; it has to end as documented."""
    monkeypatch.chdir(home)

    def call(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["uqbench", *arguments])
        code = 0
        capsys.readouterr()
        try:
            with time_limit():
                cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        err = capsys.readouterr().err
        about = f"uqbench {' '.join(arguments)!r}: exit {code}\n{err}"
        assert code in CODES, about
        assert "Traceback" not in err, about
        assert "an error in uqbench" not in err, about
        assert "HangError" not in err, about
        if code == 2:
            assert err.count("\n") == 1, about
            assert err.startswith("uqbench: "), about

    return call


fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@fuzzed
@given(changes)
def test_suites(home: Path, check: Check, edits: Any) -> None:
    text: str = changed(SUITE, edits)
    (home / "suite.toml").write_text(text, "utf-8", "surrogatepass")
    check("run", "suite.toml", "--dry-run")


@fuzzed
@given(changes)
def test_tables(home: Path, check: Check, edits: Any) -> None:
    (home / "table.csv").write_text(changed(TABLE, edits), "utf-8", "surrogatepass")
    check("run", "good.toml", "--dry-run", "--dataset", "csv:table.csv", "--method", "laplace")


@fuzzed
@given(bytes_changes)
def test_stores(home: Path, check: Check, edits: Any) -> None:
    shutil.rmtree(home / "bad.db.arrays", ignore_errors=True)
    for path in home.glob("bad.db*"):
        path.unlink()
    (home / "bad.db").write_bytes(changed((home / "good.db").read_bytes(), edits))
    for arguments in (["status"], ["export"], ["compare", "a", "base"]):
        check(*arguments, "--store", "bad.db")


@fuzzed
@given(changes)
def test_published_leaderboards(home: Path, check: Check, edits: Any) -> None:
    if not (home / "site" / "leaderboard.json").exists():
        check("leaderboard", "--store", "good.db", "--out", "site", "--version", "one")
    text = (home / "site" / "leaderboard.json").read_text("utf-8")
    (home / "frozen.json").write_text(changed(text, edits), "utf-8", "surrogatepass")
    check("leaderboard", "--store", "good.db", "--out", "again", "--frozen", "frozen.json")


@fuzzed
@given(changes)
def test_baselines(home: Path, check: Check, edits: Any) -> None:
    """A baseline that still fits is measured against a store that has the values."""
    text = json.dumps(BASELINE, indent=1)
    (home / "baseline.json").write_text(changed(text, edits), "utf-8", "surrogatepass")
    check("gate", "good.toml", "--baseline", "baseline.json", "--store", "good.db")


BASELINE: dict[str, Any] = {
    "asked": {"title": "x"},
    "code": "abc",
    "environment": {"python": "3.11"},
    "format": 1,
    "forms": {},
    "lost": {},
    "plugins": {},
    "reasons": [{"date": "2026-01-01", "code": "abc", "why": "first"}],
    "seeds": [0, 1],
    "suite": "good",
    "suite_hash": "0",
    "values": {"toy": {"deterministic": {"rmse": [1.0, 2.0]}}},
}
VALUES = st.one_of(
    st.sampled_from(["", " ", ".", "..", "/", "0", "-1", "1e300", "nan", "x" * 300, "=", "a=b", "a\nb", "\udcff"]),
    st.sampled_from(
        ["good.db", "good.toml", "houses.csv", "csv:houses.csv", "training.epochs=1", "/dev/null", "https://x"]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
)
OPTIONS = {
    "run": ("--method", "--dataset", "--seeds", "--splits", "--set", "--store", "--time-limit", "--plugin"),
    "compare": ("--metric", "--suite", "--store", "--dataset", "--margin", "--test-share", "--power", "--alpha"),
    "rank": ("--metric", "--suite", "--store", "--alpha", "--correction", "--plugin"),
    "status": ("--store",),
    "show": ("--suite", "--store"),
    "list": ("--plugin",),
    "export": ("--format", "--store"),
    "history": ("--metric", "--suite", "--store"),
    "data": ("--data",),
}
FIXED = {"run": ["good.toml", "--dry-run"], "compare": ["a", "base"], "history": ["--out", "h"], "data": ["list"]}


@fuzzed
@given(st.sampled_from(sorted(OPTIONS)), st.data())
def test_options(check: Check, name: str, data: st.DataObject) -> None:
    arguments = list(FIXED.get(name, []))
    for _ in range(data.draw(st.integers(0, 3))):
        arguments += [data.draw(st.sampled_from(OPTIONS[name])), data.draw(VALUES)]
    if data.draw(st.booleans()):
        arguments.append(data.draw(VALUES))
    if name in ("compare", "rank", "status", "show", "export", "history") and "--store" not in arguments:
        arguments += ["--store", "good.db"]
    check(name, *arguments)


@fuzzed
@given(bytes_changes)
def test_merged_stores(home: Path, check: Check, edits: Any) -> None:
    for path in [*home.glob("other.db*"), *home.glob("own.db*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(home / "good.db.arrays", home / "other.db.arrays")
    (home / "other.db").write_bytes(changed((home / "good.db").read_bytes(), edits))
    check("merge", "other.db", "--store", "own.db")
