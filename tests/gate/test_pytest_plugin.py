"""The plug-in as its users run it: pytest in a process of its own."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.fixtures.gate import Change

ROOT = Path(__file__).resolve().parents[2]
MODULE = "bench.gate.pytest_plugin"
ORDINARY = """
import sys

def test_ordinary():
    assert not {"torch", "pandas", "scipy", "numpy", "sqlalchemy"} & set(sys.modules)
    assert "bench.gate.pytest_plugin" in sys.modules
"""


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run pytest with the plug-in: by its entry point where this checkout is installed with it, else by name."""
    installed = any(point.value == MODULE for point in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", MODULE]
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", "-v", *arguments]
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": paths, "PYTEST_ADDOPTS": "", "HYPOTHESIS_NO_PLUGINS": "1"},
    )


def test_without_its_option_nothing_heavy_is_imported(tmp_path: Path) -> None:
    (tmp_path / "test_ordinary.py").write_text(ORDINARY, "utf-8")
    done = run(tmp_path, "-p", "no:hypothesispytest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.slow
def test_every_method_dataset_and_family_is_a_test(tiny_files: Path, change: Change) -> None:
    change(0.5, "mc-dropout", "rmse")
    gate = ("--uqbench-baseline", "tiny.json", "--uqbench-suite", "tiny.toml", "--uqbench-store", "tiny.db")
    done = run(tiny_files, *gate)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "toy-deterministic-predictive PASSED" in done.stdout
    assert "toy-mc-dropout-calibration PASSED" in done.stdout
    assert "toy-mc-dropout-predictive FAILED" in done.stdout
    assert "regressed: rmse of mc-dropout on toy: " in done.stdout
    assert "Traceback" not in done.stdout
    assert "1 failed, 2 passed" in done.stdout


@pytest.mark.slow
def test_a_wrong_baseline_is_a_mistake_in_the_call(tmp_path: Path) -> None:
    done = run(tmp_path, "--uqbench-baseline", "none.json")
    assert done.returncode == 4  # pytest's code for misuse
    assert "none.json: no such file; make it with 'uqbench baseline" in done.stderr + done.stdout
