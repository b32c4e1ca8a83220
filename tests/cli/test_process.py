"""The command as a process of its own: what it imports, closed pipes, Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.store.store import Store
from tests.fixtures.commands import Process


def test_help_imports_nothing_heavy_and_is_quick(python: Callable[[str], str]) -> None:
    code = (
        "import sys, bench\n"
        "heavy = ('torch', 'pandas', 'scipy', 'seaborn', 'numpy', 'matplotlib', 'sklearn', 'sqlalchemy')\n"
        "assert not [m for m in heavy if m in sys.modules]\n"
        "from bench.cli.main import main\nimport bench.cli.store, bench.cli.stats\n"
        "for arguments in (['--help'], ['--version'], ['run', '--help'], ['data', '--help'], ['list', 'methods']):\n"
        "    sys.argv = ['uqbench', *arguments]\n"
        "    try:\n        main()\n    except SystemExit:\n        pass\n"
        "    print('HEAVY', [m for m in heavy if m in sys.modules])\n"
    )
    assert [line for line in python(code).splitlines() if line.startswith("HEAVY")] == ["HEAVY []"] * 5


def test_the_command_as_a_process(uqbench: Process) -> None:
    done = uqbench(["run", "quik"])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("uqbench: unknown suite 'quik'; did you mean quick")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m bench list metrics --json | head -c 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[", "")


@pytest.mark.slow
def test_ctrl_c_twice_stops_at_once_and_keeps_what_was_finished(tmp_path: Path, tiny_file: Path) -> None:
    """The second method never ends; by then the first one's cells are stored."""
    plugin = tmp_path / "slow.py"
    plugin.write_text(
        "import time\nfrom dataclasses import dataclass\nfrom bench.api import Method\n"
        "@dataclass(frozen=True)\nclass Slow(Method):\n"
        "    def loss(self, net, batch, tape):\n        time.sleep(600)\n",
        "utf-8",
    )
    store = tmp_path / "s.db"
    arguments = ["run", str(tiny_file), "--store", str(store), "--plugin", str(plugin)]
    # A shell that starts the tests in the background has them ignore the signal, and so would their children.
    heard = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from bench.cli.main import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", heard, *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if store.is_file() and len([c for c in _cells(store) if c["status"] == "ok"]) == 4:
                break
            time.sleep(0.2)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None  # politely: it would finish the cell
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    first, second = (line for line in err.splitlines() if line)  # a blank one below the terminal's ^C
    assert first.startswith("uqbench: finishing the cells in work")
    assert second == "uqbench: stopped; finished cells are stored"
    assert out == ""
    cells = {(c["method"], c["seed"]): c["status"] for c in _cells(store)}
    assert cells == {("deterministic", s): "ok" for s in (0, 1)} | {("mc-dropout", s): "ok" for s in (0, 1)} | {
        ("slow", s): None for s in (0, 1)
    }


def _cells(path: Path) -> list[dict[str, object]]:
    store = Store(str(path))
    try:
        return store.cells("tiny")
    finally:
        store.close()
