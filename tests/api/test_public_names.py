"""The one import of plug-in authors: what it exports, what it loads, and what it says of a wrong name."""

import importlib
import re

import pytest

import bench.api
from tests.test_house import ROOMS, ROOT, room

STUB = ROOT / "bench" / "api" / "__init__.pyi"


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
