"""Standard output is the command's alone, whatever plug-ins print."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.store.store import Store, SuiteRecord
from tests.fixtures.commands import Command

WritePlugin = Callable[[str, str], Path]

LOUD = """
import os, sys
print("LOUD in print")
os.write(1, b"LOUD in C\\n")

def shout():
    print("LOUD in print")
    sys.__stdout__.write("LOUD in the first stream\\n")
    os.write(1, b"LOUD in C\\n")

@dataclass(frozen=True)
class Loud(Method):
    def draw(self, net, x, tape):
        shout()
        return net(x)

@dataclass(frozen=True)
class LoudReport(Report):
    def section(self, results):
        shout()
        return None
"""


def test_what_plugins_print_is_not_in_the_json(tmp_path: Path, tiny_file: Path, write_plugin: WritePlugin) -> None:
    path = write_plugin("loud", LOUD)
    arguments = ["run", str(tiny_file), "--method", "loud", "--plugin", str(path), "--json"]
    arguments += ["--engine", "local", "--workers", "1"]  # the driver imports the file, too
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ),
        check=False,
    )
    assert json.loads(done.stdout)["stored"] == 2
    for how in ("in print", "in the first stream", "in C"):
        assert f"LOUD {how}" in done.stderr


def test_in_this_process_too(command: Command, write_plugin: WritePlugin) -> None:
    path = write_plugin("loud", "print('LOUD')\n\n@dataclass(frozen=True)\nclass Loud(Method):\n    pass\n")
    answer = command("list", "methods", "--json", "--plugin", str(path))
    assert "loud" in {row["name"] for row in json.loads(answer.out)}
    assert answer.err == "LOUD\n"


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no such names here")
def test_the_standard_output_may_be_named_as_a_file(tmp_path: Path) -> None:
    with Store(str(tmp_path / "s.db")) as store:
        store.want(SuiteRecord("empty", "", None, [], "{}"), [])
    call = [sys.executable, "-m", "bench", "export", "--store", "s.db", "--out", "/dev/stdout"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "suite,dataset,split,method,seed,metric,value,key,status\n"


def test_commands_print_through_one_function() -> None:
    folder = Path(__file__).resolve().parents[2] / "bench" / "cli"
    for path in folder.glob("*.py"):
        text = path.read_text("utf-8")
        assert path.name == "output.py" or "click.echo(" not in text, f"{path.name}: print with echo of output.py"
        assert path.name in ("main.py", "failures.py") or "sys.exit(" not in text, f"{path.name}: end with end()"
