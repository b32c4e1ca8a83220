"""Files given with `--plugin`: what they may hold, and what is said of those that cannot be used."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.metrics import catalogue, using_metrics
from bench.plugins.building import PluginError
from bench.plugins.kinds import Kind
from bench.plugins.registry import Registry
from tests.fixtures.plugin_sources import KIND_SOURCES

WritePlugin = Callable[[str, str], Path]


@pytest.mark.parametrize("kind", KIND_SOURCES)
def test_a_file_of_each_kind(kind: Kind, write_plugin: WritePlugin) -> None:
    path = write_plugin("my_own", KIND_SOURCES[kind])
    registry = Registry([path])
    for other in KIND_SOURCES:
        assert ("my-own" in registry.plugins(other)) == (other == kind)
    plugin = registry.plugins(kind)["my-own"]
    assert plugin.origin == f"file {path}"
    assert plugin.summary == "The plug-in my_own."
    assert type(registry.make(kind, "my-own", {})).__name__ == "Mine"


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    paths = []
    places: tuple[tuple[str, Kind], ...] = (("a", "method"), ("b", "report"))
    for folder, kind in places:
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "mine.py")
        own = f"Own{kind.title()}"  # a name that only this module knows
        source = KIND_SOURCES[kind].replace("class Mine", f"{own} = int\n@dataclass(frozen=True)\nclass Mine", 1)
        source = source.removeprefix("@dataclass(frozen=True)\n") + f"    level: {own} = 3\n"
        head = "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom bench.api import *\n"
        paths[-1].write_text(head + source, "utf-8")
    registry = Registry(paths)
    assert registry.make("method", "mine", {"level": 4}).level == 4
    assert registry.make("report", "mine", {"level": 5}).level == 5


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def broken(:\n", r"SyntaxError: .*line 7"),
        ("import not_a_package_at_all\n", "ModuleNotFoundError: No module named 'not_a_package_at_all'"),
        ("raise ValueError('two\\nlines')\n", "ValueError: two lines"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("", "expected a subclass of .*Method, .*Report, or a Metric; found none"),
        (KIND_SOURCES["method"] + "    name = 'a b'\n", r"Mine\.name is 'a b'; use letters"),
        (KIND_SOURCES["method"] + "    name = 3\n", r"Mine\.name is 3; use letters"),
        ("METRICS = 3\n", "METRICS must be a tuple of Metric, found a int in it"),
        ("METRICS = ('rmse',)\n", "METRICS must be a tuple of Metric, found a str in it"),
    ],
)
def test_a_file_that_cannot_be_used(source: str, reason: str, write_plugin: WritePlugin) -> None:
    path = write_plugin("bad", source)
    before = set(sys.modules)
    with pytest.raises(PluginError, match=reason) as caught:
        Registry([path])
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    if "Error" in reason or "Exit" in reason:
        assert not [name for name in set(sys.modules) - before if name.startswith("bench_plugin_bad")]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("class Mine(Method):\n    pass\n", "Mine must be a frozen dataclass"),
        ("@dataclass(frozen=True)\nclass _Base(Method):\n    pass\nclass Mine(_Base):\n    pass\n", "frozen dataclass"),
    ],
)
def test_a_file_whose_class_cannot_be_used(source: str, reason: str, write_plugin: WritePlugin) -> None:
    path = write_plugin("bad", source)
    with pytest.raises(PluginError, match=reason) as caught:
        Registry([path]).load("method", "bad")
    assert str(path) in str(caught.value)


TWO = KIND_SOURCES["method"] + KIND_SOURCES["method"].replace("Mine", "Other")
METRIC = (
    "from bench.api import Metric\n"
    "{} = Metric('{}', 'any', 'predictive', 'lower', None, '1', frozenset(), 'f of x', 's', lambda f: 1.0)\n"
)


def test_a_file_of_several_plugins(write_plugin: WritePlugin) -> None:
    """Of several classes of one kind those without a declared name are `file:Class`; other kinds have the file's."""
    named = KIND_SOURCES["method"].replace("Mine", "Named") + "    name: ClassVar[str] = 'given-name'\n"
    source = f"from typing import ClassVar\n{TWO}{named}{KIND_SOURCES['dataset'].replace('Mine', 'Data')}"
    registry = Registry([write_plugin("my_pair", source + METRIC.format("BIAS", "own_bias"))])
    own = {name: p for name, p in registry.plugins("method").items() if p.origin.startswith("file ")}
    assert set(own) == {"my-pair:Mine", "my-pair:Other", "given-name"}
    assert "my-pair" in registry.plugins("dataset")
    for name, cls in (("my-pair:Mine", "Mine"), ("my-pair:Other", "Other"), ("given-name", "Named")):
        assert type(registry.make("method", name, {"strength": 0.25})).__name__ == cls
        assert registry.identity("method", name) == (name, registry.sources[0].hash)
    assert registry.identity("dataset", "my-pair") == ("my-pair", registry.sources[0].hash)
    assert registry.metric_hashes == {"own_bias": registry.sources[0].hash}
    with pytest.raises(UserError, match=r"unknown method 'my-pair:Min'; did you mean my-pair:Mine"):
        registry.load("method", "my-pair:Min")


def test_a_single_class_without_a_name_has_the_files(write_plugin: WritePlugin) -> None:
    source = f"from typing import ClassVar\n{TWO}    name: ClassVar[str] = 'other'\n"
    registry = Registry([write_plugin("mine", source)])
    assert {"mine", "other"} <= set(registry.plugins("method"))


def test_an_option_called_name_names_nothing(write_plugin: WritePlugin) -> None:
    source = KIND_SOURCES["method"] + "    name: str = 'x'\n"
    registry = Registry([write_plugin("mine", source)])
    assert registry.make("method", "mine", {"name": "y"}).name == "y"


def test_two_classes_of_one_name_are_both_named(write_plugin: WritePlugin) -> None:
    named = "    name = 'same'\n"
    path = write_plugin(
        "mine", KIND_SOURCES["method"] + named + KIND_SOURCES["method"].replace("Mine", "Other") + named
    )
    with pytest.raises(
        UserError, match=r"two methods are named 'same': file .*mine\.py, class Mine, and .*class Other"
    ):
        Registry([path]).plugins("method")


def test_metrics_of_files_join_those_of_uqbench_and_do_not_leak(write_plugin: WritePlugin) -> None:
    first = Registry([write_plugin("one", METRIC.format("SINGLE", "own_single"))])
    several = METRIC.format("_A", "own_a") + METRIC.format("_B", "own_b") + "METRICS = (_A, _B)\n"
    second = Registry([write_plugin("two", several)])
    assert set(first.metrics) - set(Registry().metrics) == {"own_single"}
    assert set(second.metrics) - set(Registry().metrics) == {"own_a", "own_b"}
    assert "own_single" not in catalogue()
    with using_metrics(first.metrics):
        assert "own_single" in catalogue()
        assert "own_a" not in catalogue()
    assert "own_single" not in catalogue()


@pytest.mark.parametrize(
    ("name", "other"), [("rmse", "uqbench itself"), ("own_a", r"file .*one\.py")], ids=["built in", "another file"]
)
def test_a_metric_declared_twice_names_both(name: str, other: str, write_plugin: WritePlugin) -> None:
    files = [write_plugin("one", METRIC.format("A", "own_a")), write_plugin("two", METRIC.format("B", name))]
    with pytest.raises(UserError, match=rf"metric '{name}' is declared twice: by {other} and by file .*two\.py"):
        _ = Registry(files).metrics


def test_a_metric_relative_to_nothing_is_refused(write_plugin: WritePlugin) -> None:
    source = (
        "from bench.api import Metric\nM = Metric('own_gain', 'any', 'predictive', 'lower', None, '1',\n"
        "    frozenset({'baseline'}), 'f of x', 's', None, 'rmsee')\n"
    )
    with pytest.raises(UserError, match=r"gain\.py: metric 'own_gain': relative_to: unknown metric 'rmsee'; did you"):
        _ = Registry([write_plugin("gain", source)]).metrics


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--plugin .*gone\.py: no such file"):
        Registry([tmp_path / "gone.py"])


def test_not_a_python_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello", "utf-8")
    with pytest.raises(PluginError, match="not a Python file"):
        Registry([tmp_path / "notes.txt"])
