import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import bench.methods
from bench.errors import UserError
from bench.plugins.building import PluginError, build, in_one_line
from bench.plugins.kinds import Kind, plugin_name
from bench.plugins.registry import Registry
from tests.fixtures.plugin_sources import KIND_SOURCES

WritePlugin = Callable[[str, str], Path]


@pytest.fixture
def method_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A second folder of built-in methods, so that a test can drop a file into it."""
    folder = tmp_path / "methods"
    folder.mkdir()
    monkeypatch.setattr(bench.methods, "__path__", [*bench.methods.__path__, str(folder)])
    spec = bench.methods.__spec__
    assert spec is not None
    monkeypatch.setattr(spec, "submodule_search_locations", bench.methods.__path__)
    return folder


def install(folder: Path, name: str, entry_points: str) -> None:
    """Make a folder look like an installed distribution."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(entry_points, "utf-8")


def test_listing_imports_no_plugin(python: Callable[[str], str]) -> None:
    code = (
        "import sys\n"
        "from bench.plugins.kinds import FOLDERS; from bench.plugins.registry import Registry\n"
        "r = Registry()\n"
        "names = [list(r.plugins(k)) for k in FOLDERS]\n"
        "assert all(names), names\n"
        "print([m for m in sys.modules if m.startswith(('bench.methods', 'bench.datasets', 'bench.reports', 'torch'))])"
    )
    assert python(code) == "[]"


def test_loading_imports_one(python: Callable[[str], str]) -> None:
    code = (
        "import sys\n"
        "from bench.plugins.registry import Registry\n"
        "Registry().load('method', 'deep-ensemble')\n"
        "print(sorted(m for m in sys.modules if m.startswith('bench.methods')))"
    )
    assert python(code) == "['bench.methods', 'bench.methods.deep_ensemble']"


def test_names_and_summaries_come_from_the_files() -> None:
    plugins = Registry().plugins("method")
    assert list(plugins) == sorted(plugins)
    assert not any(name.startswith(("-", "_")) for name in plugins)  # private helpers are not plug-ins
    assert plugins["mc-dropout"].summary.startswith("Monte Carlo dropout")
    assert plugin_name("mc_dropout") == "mc-dropout"


@pytest.mark.parametrize("kind", list(KIND_SOURCES))
def test_every_plugin_loads_and_builds_with_its_defaults(kind: Kind) -> None:
    registry = Registry()
    for name in registry.plugins(kind):
        plugin = registry.make(kind, name, {})
        with pytest.raises(AttributeError):  # frozen
            plugin.anything = 1


def test_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UserError, match=r"quick: unknown method 'mc-dropot'; did you mean mc-dropout"):
        Registry().load("method", "mc-dropot", "quick")


def test_unknown_name_says_what_the_files_have_and_where_names_come_from(write_plugin: WritePlugin) -> None:
    with pytest.raises(
        UserError, match=r"unknown method 'many-heads'; .* \(a method of your own needs --plugin FILE\)$"
    ):
        Registry().load("method", "many-heads")
    path = write_plugin("a", KIND_SOURCES["method"])
    registry = Registry([path])
    with pytest.raises(UserError, match=rf"\({path} has the method 'a' \(named after its file\)\)$"):
        registry.load("method", "many-heads")
    with pytest.raises(UserError, match=rf"\({path} has no network\)$"):
        registry.load("network", "many-heads")
    declared = KIND_SOURCES["method"].replace("(Method):", "(Method):\n    name: ClassVar[str] = 'own'", 1)
    named = write_plugin("b", f"from typing import ClassVar\n{declared}")
    with pytest.raises(UserError, match=rf"\({named} has the method 'own'\)$"):
        Registry([named]).load("method", "many-heads")


def test_a_plugin_that_no_given_file_has_is_not_taken_for_theirs(write_plugin: WritePlugin) -> None:
    path = write_plugin("a", KIND_SOURCES["method"])
    Registry().require_from_file("method", "mc-dropout")
    Registry([path]).require_from_file("method", "a")
    with pytest.raises(
        UserError, match=rf"^method 'mc-dropout' is built in, not from --plugin: {path} has the method 'a'"
    ):
        Registry([path]).require_from_file("method", "mc-dropout")


def test_the_name_of_a_file_says_how_to_name_it_as_a_dataset(tmp_path: Path) -> None:
    for name in ("bikes.csv", "bikes.csv?target=x", "BIKES.CSV"):
        path = name.partition("?")[0]
        with pytest.raises(UserError, match=rf"unknown dataset '.*'; a file is named csv:{path}\?target=TARGET"):
            Registry().load("dataset", name)
    with pytest.raises(UserError, match=r"a file is named npy:x\.npy\?target=TARGET"):
        Registry().load("dataset", "x.npy")
    (other := tmp_path / "bikes.xls").touch()
    with pytest.raises(UserError, match=rf"a file is named READER:{other}\?target=TARGET"):
        Registry().load("dataset", str(other))


def test_duplicate_of_a_built_in_names_both(write_plugin: WritePlugin) -> None:
    path = write_plugin("mc_dropout", KIND_SOURCES["method"])
    with pytest.raises(UserError) as caught:
        Registry([path]).plugins("method")
    assert "'mc-dropout'" in str(caught.value)
    assert "mc_dropout.py), and file " in str(caught.value)
    assert str(path) in str(caught.value)


def test_duplicate_within_the_folder_names_both_files(method_folder: Path) -> None:
    (method_folder / "same_name.py").write_text("", "utf-8")
    (method_folder / "same-name.py").write_text("", "utf-8")
    with pytest.raises(UserError, match=r"same-name\.py.*same_name\.py"):
        Registry().plugins("method")


@pytest.mark.parametrize("source", ["import not_a_package_at_all", "def broken(:", "\x00", "# no class"])
def test_a_broken_file_in_the_folder_harms_no_other(source: str, method_folder: Path) -> None:
    (method_folder / "broken_one.py").write_text(source, "utf-8")
    registry = Registry()
    assert "broken-one" in registry.plugins("method")
    with pytest.raises(PluginError, match=r"method 'broken-one' \(built in\) cannot be loaded"):
        registry.load("method", "broken-one")
    assert registry.load("method", "deterministic").__name__ == "Deterministic"


def test_a_file_of_another_encoding_harms_no_listing(method_folder: Path) -> None:
    (method_folder / "latin.py").write_bytes(b'"""caf\xe9"""\n')
    assert Registry().plugins("method")["latin"].summary == "(cannot be parsed)"


def test_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "from dataclasses import dataclass\nfrom bench.api import Method\n"
    body = "@dataclass(frozen=True)\nclass {}(Method):\n    strength: float = 0.5\n"
    site = tmp_path / "site"
    points = (
        "from_module = foo_one\nfrom_class = foo_two:Second\nlost = foo_three\nodd = foo_one:head\nboth = foo_two\n"
    )
    install(site, "foo", "[bench.methods]\n" + points)
    (site / "foo_one.py").write_text(head + body.format("First") + "head = 3\n", "utf-8")
    (site / "foo_two.py").write_text(head + body.format("Zeroth") + body.format("Second"), "utf-8")
    monkeypatch.syspath_prepend(site)
    registry = Registry()
    plugins = registry.plugins("method")
    assert "foo_one" not in sys.modules
    assert plugins["from-module"].origin == "package foo 1.0"
    assert registry.load("method", "from-module").__name__ == "First"
    assert registry.load("method", "from-class").__name__ == "Second"
    with pytest.raises(PluginError, match=r"'lost' \(package foo 1\.0\) cannot be loaded: ModuleNotFoundError"):
        registry.load("method", "lost")
    with pytest.raises(PluginError, match=r"'odd' \(package foo 1\.0\) cannot be loaded"):
        registry.load("method", "odd")
    with pytest.raises(PluginError, match=r"found Zeroth, Second; an entry point names one of them, as in foo_two:Zer"):
        registry.load("method", "both")
    assert registry.load("method", "deterministic")


def test_entry_point_with_a_built_in_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", "rival", "[bench.datasets]\ntoy = rival_toy\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with pytest.raises(UserError, match=r"are named 'toy': built in \(.*toy\.py\), and package rival 1\.0"):
        Registry().plugins("dataset")
    assert Registry().plugins("method")  # the other kinds are well


@dataclass(frozen=True)
class Example:
    rate: float = 0.1
    layers: int = 2
    name: str = "x"

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise ValueError(f"rate must not be negative, got {self.rate}")
        if self.layers == 13:
            raise KeyError("unlucky")


@dataclass(frozen=True)
class Demanding:
    level: float


def test_options_are_checked() -> None:
    assert build(Example, {"rate": 1}, "here").rate == 1.0  # TOML's 1 is a fine float
    for given, reason in (
        ({"rat": 0.1}, r"here: unknown option 'rat'; did you mean rate\?"),
        ({"rate": "0.1"}, r"here: rate: .*valid number, got '0\.1'"),
        ({"rate": True}, r"here: rate: "),
        ({"layers": 2.5}, r"here: layers: .*valid integer, got 2\.5"),
        ({"name": 3}, r"here: name: .*valid string"),
        ({"rate": -1.0}, r"here: rate must not be negative, got -1\.0"),
    ):
        with pytest.raises(UserError, match=reason):
            build(Example, given, "here")
    with pytest.raises(UserError, match=r"here: the option 'level' has no default"):
        build(Demanding, {}, "here")


def test_a_constructor_that_fails_is_the_plugins_fault() -> None:
    with pytest.raises(PluginError, match=r"here: KeyError: 'unlucky'"):
        build(Example, {"layers": 13}, "here")


def test_in_one_line() -> None:
    assert in_one_line(RuntimeError("a\n  b")) == "RuntimeError: a b"
    assert in_one_line(UserError("as it is")) == "as it is"
