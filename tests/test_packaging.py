import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import bench

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("methods", "datasets", "reports")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What is in a wheel built from a copy of the sources (building leaves files behind)."""
    source = tmp_path_factory.mktemp("source") / "uqbench"
    source.mkdir()
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("bench", "tools", *KINDS):
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignore)
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, source / name)
        else:
            (source / name).touch()
    out = source.parent / "out"
    code = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=source, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("uqbench-*.whl")
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


def test_the_plugin_folders_are_reached_through_relative_links() -> None:
    for kind in KINDS:
        link = ROOT / "bench" / kind
        assert link.is_symlink()
        assert os.readlink(link) == f"../{kind}"  # noqa: PTH115  (the text itself)
        assert (link / "__init__.py").is_file()


def test_every_package_is_declared(project: dict[str, Any]) -> None:
    declared = set(project["tool"]["setuptools"]["packages"])
    found = {
        ".".join(Path(where).relative_to(ROOT).parts)
        for where, _, files in os.walk(ROOT / "bench", followlinks=True)
        if "__init__.py" in files
    }
    assert declared == found


def test_the_versions_agree(project: dict[str, Any]) -> None:
    assert project["project"]["version"] == bench.__version__


@pytest.mark.slow
def test_the_wheel_holds_no_tools_of_maintainers(wheel: list[str]) -> None:
    assert [
        name for name in wheel if name.split("/")[0] not in ("bench", f"uqbench-{bench.__version__}.dist-info")
    ] == []


def test_the_wheel_holds_all_sources_and_data(wheel: list[str]) -> None:
    for pattern in (
        "**/*.py",
        "methods/*.py",
        "datasets/*.py",
        "reports/*",
        "**/*.toml",
        "**/*.txt",
        "**/templates/*",
        "**/schema.json",
        "**/page.*",
    ):
        found = [path for path in (ROOT / "bench").glob(pattern) if path.is_file()]
        expected = {f"bench/{path.relative_to(ROOT / 'bench').as_posix()}" for path in found}
        assert expected
        assert expected <= set(wheel)


def test_the_wheel_takes_no_other_top_level_name(wheel: list[str]) -> None:
    """A top-level `datasets` would overwrite Hugging Face's."""
    tops = {name.split("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"bench"}


def test_the_wheel_has_the_command(wheel: list[str], project: dict[str, Any]) -> None:
    assert project["project"]["scripts"] == {"uqbench": "bench.cli.main:main"}
    assert any(name.endswith(".dist-info/entry_points.txt") for name in wheel)
