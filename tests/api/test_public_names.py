"""The one import of plug-in authors: what it exports, what it loads, and what it says of a wrong name."""

import importlib
import re
from collections.abc import Callable

import pytest

import bench.api
from tests.test_house import ROOMS, ROOT, room

STUB = ROOT / "bench" / "api" / "__init__.pyi"


def modules(kind: str) -> list[str]:
    return [f"bench.{kind}.{path.stem}" for path in sorted((ROOT / kind).glob("[!_]*.py"))]


def test_every_name_is_the_object_of_its_module() -> None:
    assert len(bench.api.__all__) == len(set(bench.api.__all__)) >= 40
    assert dir(bench.api) == sorted(bench.api.__all__)
    for line in re.findall("^from .*", STUB.read_text("utf-8"), re.MULTILINE):
        _, home, _, name, _, again = line.split()
        assert name == again, "a stub exports a name only under itself"
        whole = home in ("bench", "bench.api")
        inner = f"{home}.{name}" if whole else home
        module = importlib.import_module(inner)
        assert getattr(bench.api, name) is (module if whole else getattr(module, name))
        assert ROOMS.index(room(inner)) <= ROOMS.index("api"), f"{name} comes from a room below bench.api"


def test_a_wrong_name_gets_the_nearest_right_one() -> None:
    with pytest.raises(AttributeError, match="unknown name 'Metod'; did you mean Method"):
        bench.api.__getattr__("Metod")


@pytest.mark.parametrize(
    "names", ["Dataset, Split, File, find_file, corruptions", "Report, Results, Table, Metric, stats, style"]
)
def test_authors_of_datasets_and_reports_do_not_load_torch(python: Callable[[str], str], names: str) -> None:
    assert python(f"import sys\nfrom bench.api import {names}\nprint('torch' in sys.modules)") == "False"


@pytest.mark.parametrize("kind", ["datasets", "reports"])
def test_built_in_datasets_and_reports_do_not_load_torch(python: Callable[[str], str], kind: str) -> None:
    code = f"import importlib, sys\nfor name in {modules(kind)}:\n    importlib.import_module(name)\n"
    assert python(f"{code}    assert 'torch' not in sys.modules, name\nprint('none')") == "none"
