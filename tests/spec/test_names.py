"""What a name may be, and that every place where one comes in refuses the others."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UserError
from bench.metrics import group_names
from bench.plan.suite import load_suite
from bench.plugins.registry import Registry
from bench.spec.cell import Cell
from bench.spec.names import check_name, name_fault, short_names
from bench.store.store import Store, SuiteRecord
from tests.fixtures.suites import PLUGIN_HEAD

REFUSED = [
    "a\nb",
    "a\tb",
    "\x1b[2J",
    "a\x00b",
    "a\u2028b",
    "a\u202eb",
    "a\ud800b",
    "a\u00a0b",
    "x" * 201,
    " a",
    "a ",
    "",
]
METHOD = "@dataclass(frozen=True)\nclass Mine(Method):\n    pass\n"


@pytest.mark.parametrize("name", REFUSED)
def test_refused_names_are_told_in_one_short_line(name: str) -> None:
    with pytest.raises(UserError) as caught:
        check_name(name, "method")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "name", ["mc-dropout", "csv:data/houses.csv?target=price", "my file:Class", "名前", "<b>", "x" * 200]
)
def test_names_that_can_be_printed_stay(name: str) -> None:
    assert check_name(name, "method") == name


@given(st.text())
def test_a_name_is_one_printable_line(name: str) -> None:
    printed = 0 < len(name) <= 200 and name.isprintable() and name == name.strip()
    assert (name_fault(name) is None) == printed


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("kind", ["suite", "dataset", "method", "store", "group"])
def test_every_door_refuses_them(kind: str, name: str, store: Store) -> None:
    suite = {"name": "tiny", "title": "Tiny", "datasets": {"toy": {}}, "methods": {"deterministic": {}}}
    doors: dict[str, Callable[[], object]] = {
        "suite": lambda: load_suite(suite | {"name": name}),
        "dataset": lambda: load_suite(suite | {"datasets": {name: {"use": "toy"}}}),
        "method": lambda: load_suite(suite | {"methods": {name: {"use": "deterministic"}}}),
        "store": lambda: store.want(SuiteRecord("tiny", "Tiny", None, [], "{}"), [Cell("k", "d", 0, name, 0, "{}")]),
        "group": lambda: group_names(np.array([name, "b"], dtype=object), 2),
    }
    with pytest.raises(UserError) as caught:
        doors[kind]()
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("stem", ["a\nb", "a\u202eb", "x" * 201, "a\x1b[2J"])
def test_a_plugin_file_with_such_a_name(stem: str, tmp_path: Path) -> None:
    path = tmp_path / f"{stem}.py"
    path.write_text(PLUGIN_HEAD + METHOD, "utf-8")
    with pytest.raises(UserError) as caught:
        Registry([path])
    assert len(str(caught.value).splitlines()) == 1


def test_a_plugin_that_declares_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN_HEAD + METHOD.replace("pass", f"name = '{'x' * 201}'"), "utf-8")
    with pytest.raises(UserError, match="at most 200 characters"):
        Registry([path])


def test_a_file_is_shown_by_its_stem_where_that_is_unambiguous() -> None:
    bikes = "csv:data/bikes.csv?target=rentals&categories=one-hot"
    names = [bikes, "diabetes", "openml:44971", "csv:a/houses.csv", "csv:b/houses.csv", "parquet:toy.parquet", "toy"]
    assert short_names(names) == {name: name for name in names} | {bikes: "bikes"}
    assert short_names([r"csv:C:\data\bikes.csv?target=y"]) == {r"csv:C:\data\bikes.csv?target=y": "bikes"}
