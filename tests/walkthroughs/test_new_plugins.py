"""What 'uqbench new' writes works as it stands: alone, and as a package installed beside uqbench's wheel."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench.plugins.registry import Registry
from bench.plugins.scaffold import PLUGINS, plugin_of, registered_as, scaffold
from tests.fixtures.commands import done
from tests.fixtures.environments import copy_sources, new_environment

OTHERS = [kind for kind in PLUGINS if kind != "method"]
Process = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("kind", OTHERS)  # a new method goes through test_tutorial.py
def test_a_new_plug_in_passes_verify_and_its_own_test(kind: str, tmp_path: Path, uqbench: Process) -> None:
    made = uqbench(["new", kind, "my-own_thing"])
    assert made.returncode == 0, made.stderr
    *wrote, following, then = made.stdout.splitlines()
    assert wrote == ["wrote my_own_thing.py", "wrote test_my_own_thing.py"]
    name = "my_own_thing" if kind == "metric" else "my-own-thing"
    assert following == f"next: uqbench verify {registered_as(kind)} {name} --plugin my_own_thing.py"
    assert then.startswith("then: uqbench ")
    verified = uqbench(
        [*following.split()[2:], "--json", "--only", "declaration" if kind == "metric" else "options"]
    )  # its test runs all checks
    told = json.loads(verified.stdout)
    assert verified.returncode == 0, told
    assert told["ok"]
    done([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_own_thing.py"], tmp_path)


def wheel(source: Path, out: Path) -> Path:
    code = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    done([sys.executable, "-c", code, out], source)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with uqbench's wheel, and that of a new package for every kind of plug-in."""
    place = tmp_path_factory.mktemp("environment")
    source = place / "uqbench"
    copy_sources(source)
    scaffold("package", "brand-new", place, Registry())
    for kind in OTHERS:
        scaffold("package", f"brand-new-{kind}", place, Registry(), kind)
    names = ["brand-new", *(f"brand-new-{kind}" for kind in OTHERS)]
    wheels = [wheel(source, place / "wheel"), *(wheel(place / name, place / f"wheel of {name}") for name in names)]
    return new_environment(place / "venv", wheels, "pytest")


def test_a_new_package_installs_and_is_found(environment: Path, tmp_path: Path) -> None:
    where = done(
        [environment / "python", "-c", "import bench, brand_new; print(bench.__file__, brand_new.__file__)"], tmp_path
    )
    assert where.count(str(environment.parent)) == 2, where
    listed = json.loads(done([environment / "uqbench", "list", "methods", "--json"], tmp_path))
    assert [row["origin"] for row in listed if row["name"] == "brand-new"] == ["package brand-new 0.1.0"]
    assert [row["name"] for row in listed if row["name"] == "mc-dropout"] == ["mc-dropout"]


def test_a_new_package_passes_verify_and_runs(environment: Path, tmp_path: Path) -> None:
    told = json.loads(done([environment / "uqbench", "verify", "method", "brand-new", "--json"], tmp_path))
    assert told["ok"], told
    run = "run quick --method brand-new --dataset diabetes --seeds 1 --set training.epochs=2 --set draws=5"
    assert "1 cell run" in done([environment / "uqbench", *run.split()], tmp_path)
    page = done([environment / "uqbench", "report"], tmp_path)
    assert "report" in page
    assert "brand-new" in (tmp_path / "report" / "report.md").read_text("utf-8")


@pytest.mark.parametrize("kind", OTHERS)
def test_a_new_package_of_another_kind_is_found_and_passes_verify(kind: str, environment: Path, tmp_path: Path) -> None:
    name, known_as = plugin_of(kind, f"brand-new-{kind}"), registered_as(kind)
    listed = json.loads(done([environment / "uqbench", "list", f"{known_as}s", "--json"], tmp_path))
    assert [row["name"] for row in listed if row["name"] == name] == [name]
    told = json.loads(done([environment / "uqbench", "verify", known_as, name, "--json"], tmp_path))
    assert told["ok"], told
    assert name in done([environment / "uqbench", "doctor"], tmp_path)


def test_an_installed_uqbench_has_the_templates(environment: Path, tmp_path: Path) -> None:
    done([environment / "uqbench", "new", "package", "another-one"], tmp_path)
    assert (tmp_path / "another-one" / "src" / "another_one" / "method.py").is_file()
