"""The source archive and the wheel are complete: what is installed from them runs a suite and writes a report.

`make package-test` does it in an environment made from nothing, dependencies included.
"""

import email
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import bench
from tests.fixtures.commands import done
from tests.fixtures.environments import copy_sources, new_environment

pytest.importorskip("build", reason="build is not installed: pip install 'uqbench[test]'")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source archive, and the wheel that was built from the archive."""
    place = tmp_path_factory.mktemp("distribution")
    copy_sources(place / "uqbench")
    alone = ["--no-isolation"] if int(version("setuptools").partition(".")[0]) >= 77 else []  # else it is downloaded
    command = [sys.executable, "-m", "build", *alone, "--outdir", str(place / "dist"), str(place / "uqbench")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if ran.returncode and "No matching distribution found for setuptools" in ran.stdout + ran.stderr:
        pytest.skip("no package index: setuptools cannot be installed for the build")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return place / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return built / f"uqbench-{bench.__version__}-py3-none-any.whl"


def test_the_archives_are_of_this_version_and_complete(built: Path, wheel: Path) -> None:
    source = built / f"uqbench-{bench.__version__}.tar.gz"
    assert sorted(built.iterdir()) == [wheel, source]
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "methods/mc_dropout.py", "bench/plan/suites/quick.toml"} <= packed
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = email.message_from_bytes(archive.read(metadata))
    assert about["Version"] == bench.__version__
    assert {"all", "cluster", "gpu", "images", "parquet", "postgres"} <= set(about.get_all("Provides-Extra", []))
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_what_is_installed_runs_and_reports(wheel: Path, tmp_path: Path) -> None:
    programs = new_environment(tmp_path / "venv", [wheel])
    place = tmp_path / "work"
    place.mkdir()
    where = done([programs / "python", "-c", "import bench; print(bench.__file__)"], place)
    assert str(tmp_path / "venv") in where
    assert done([programs / "uqbench", "--version"], place).strip() == f"uqbench, version {bench.__version__}"
    run = "run quick --method mc-dropout --dataset diabetes --seeds 1 --set training.epochs=2 --set draws=5"
    assert "1 cell run" in done([programs / "uqbench", *run.split()], place)
    done([programs / "uqbench", "report"], place)
    assert (place / "report" / "index.html").is_file()
