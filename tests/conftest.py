"""What the tests of the shell share: a suite that trains in a moment, plug-in files, and the command as a process."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.cli import main as cli
from bench.machine.torchvision_compat import import_torchvision
from bench.plan.suite import Suite, load_suite
from bench.store.store import Store

# torchmetrics imports torchvision where it is installed, which fails beside a CPU build of torch without this.
if importlib.util.find_spec("torchvision"):
    import_torchvision()

ROOT = Path(__file__).resolve().parents[1]

# Files of few tests that take long: begun first, so that no process is left alone with one at the end.
LONG = ("tests/faults", "tests/engines")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; pytest-xdist would put those with the most tests there."""
    items.sort(key=lambda item: not item.path.relative_to(ROOT).as_posix().startswith(LONG))


TINY = """
title = "Tiny"
seeds = 2
draws = 5
baseline = "mc-dropout"

[training]
epochs = 2
batch = 100

[network]
hidden = [4]

[datasets.toy]
rows = 40

[methods.deterministic]

[methods.mc-dropout]
"""

PLUGIN_HEAD = """
from dataclasses import dataclass
import numpy as np
from bench.api import Dataset, Method, Report, Section, Split, Text
"""


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    """A suite file of two datasets' worth of nothing: four cells."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, "utf-8")
    return path


@pytest.fixture
def tiny(tiny_file: Path) -> Suite:
    return load_suite(str(tiny_file))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "runs" / "store.db"))


@pytest.fixture
def write_suite(tmp_path: Path) -> Callable[..., str]:
    """Write a suite's text to a file and return its path."""

    def write(text: str, name: str = "mine") -> str:
        path = tmp_path / f"{name}.toml"
        path.write_text(text, "utf-8")
        return str(path)

    return write


@pytest.fixture
def write_plugin(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a plug-in's classes, with the usual imports above them, to a file and return its path."""

    def write(name: str, text: str) -> Path:
        folder = tmp_path / "plugins"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}.py"
        path.write_text(f'"""The plug-in {name}."""\n{PLUGIN_HEAD}\n{text}', "utf-8")
        return path

    return write


Process = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def uqbench(tmp_path: Path) -> Process:
    """Run the command as a user does, in an empty folder, without a terminal."""

    def call(arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "bench", *arguments],
            cwd=tmp_path,
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command inside this process, in an empty folder: sooner, where no process is needed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["uqbench", *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        told = capsys.readouterr()
        return Done(code, told.out, told.err)

    return call


def done(command: Sequence[str | Path], folder: Path, seconds: int = 300) -> str:
    """Carry out a command that has to succeed; return what it printed."""
    result = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture
def python() -> Callable[[str], str]:
    """Run code in a fresh interpreter and return what it prints."""

    def call(code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return call
