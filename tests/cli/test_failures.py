"""Whatever fails is one line and an exit code."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli.failures import TRACEBACK, report_failure
from bench.errors import UserError
from tests.fixtures.commands import Command
from tests.fixtures.suites import TINY

WritePlugin = Callable[[str, str], Path]
LONG = "n" * 300
FULL = Path("/dev/full")

ERRORS: list[tuple[BaseException, int, str]] = [
    (UserError("two\nlines"), 2, "two lines"),
    (OSError(errno.ENOSPC, "No space left on device", "out.csv"), 2, "out.csv: No space left on device"),
    (OSError("odd"), 2, "the system refused: odd"),
    (MemoryError("Unable to allocate 8 TiB"), 2, "out of memory: Unable to allocate 8 TiB"),
    (RecursionError("maximum recursion depth exceeded"), 2, "nested too deeply"),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 2, "not valid Unicode"),
    (SystemExit(0), 2, "a plug-in ended the command (sys.exit(0))"),
    (KeyError("missing"), 2, "an error in uqbench or in a plug-in: KeyError: 'missing'"),
    (GeneratorExit(), 2, "GeneratorExit"),
    (KeyboardInterrupt(), 130, "stopped; finished cells are stored"),
]


@pytest.mark.parametrize(("error", "code", "words"), ERRORS, ids=[type(error).__name__ for error, _, _ in ERRORS])
def test_a_failure_is_one_line(
    error: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TRACEBACK, raising=False)
    assert report_failure(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("uqbench: ")
    assert err.count("\n") == 1
    assert words in err


def test_a_traceback_is_shown_to_those_who_want_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRACEBACK, "1")
    assert report_failure(KeyError("missing")) == 2
    assert "Traceback" not in capsys.readouterr().err.splitlines()[-1]


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "endless-time-limit": (("run", "tiny.toml", "--time-limit", "1e300"), "time_limit: at most"),
    "infinite-time-limit": (("run", "tiny.toml", "--time-limit", "inf"), "time_limit: at most"),
    "infinite-learning-rate": (("run", "tiny.toml", "--set", "training.learning_rate=inf"), "finite"),
    "infinite-weight-decay": (("run", "tiny.toml", "--set", "training.weight_decay=1e400"), "finite"),
    "no-output": (("export", "--out", ""), "'--out': the name is empty"),
    "blank-output": (("report", "--out", " "), "'--out': the name is empty"),
    "no-junit": (("gate", "tiny.toml", "--baseline", "x", "--junit", ""), "'--junit': the name is empty"),
    "long-suite": (("run", f"{LONG}.toml"), "File name too long"),
    "long-plugin": (("list", "methods", "--plugin", f"{LONG}.py"), "File name too long"),
    "long-store": (("status", "--store", f"{LONG}.db"), "File name too long"),
    "long-baseline": (("gate", "tiny.toml", "--baseline", f"{LONG}.json"), "File name too long"),
    "long-output": (("baseline", "tiny.toml", "--out", f"{LONG}.json"), "File name too long"),
    "long-name": (("new", "method", "n" * 300), "File name too long"),
    "deep-suite": (("run", "deep.toml"), "nested too deeply"),
    "deep-baseline": (("gate", "tiny.toml", "--baseline", "deep.json"), "nested too deeply"),
    "not-utf-8": (("run", "latin.toml"), "not UTF-8"),
    "name-not-utf-8": (("run", "\udcff.toml"), "no such file"),
    "endless-device": (("list", "methods", "--plugin", "/proc/self/mem"), "Input/output error"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_line_and_exit_2(case: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY, "utf-8")
    (tmp_path / "deep.toml").write_text(f"title = {'[' * 5000}{']' * 5000}", "utf-8")
    (tmp_path / "deep.json").write_text("[" * 200_000, "utf-8")
    (tmp_path / "latin.toml").write_bytes(b'title = "\xff"\n')
    arguments, words = REFUSED[case]
    answer = command(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("uqbench: ")
    assert answer.err.count("\n") == 1
    assert words in answer.err
    assert not (tmp_path / "runs").exists()


def test_a_suite_may_begin_with_a_byte_order_mark(command: Command, tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_bytes(b"\xef\xbb\xbf" + TINY.encode())
    (tmp_path / "plain.toml").write_bytes(TINY.encode())
    keys = [
        [row["key"] for row in json.loads(command("run", f"{name}.toml", "--dry-run", "--json").out)]
        for name in ("marked", "plain")
    ]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 4


def shell(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command line in which 'uqbench' stands for this one."""
    text = f"set -o pipefail\nuqbench() {{ '{sys.executable}' -m bench \"$@\"; }}\n{command}"
    return subprocess.run(
        ["bash", "-c", text], cwd=folder, capture_output=True, text=True, timeout=120, env=dict(os.environ), check=False
    )


@pytest.mark.skipif(not FULL.exists(), reason="no such device here")
def test_a_full_standard_output_is_one_line(tmp_path: Path) -> None:
    done = shell("uqbench list metrics > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (2, "uqbench: standard output: No space left on device\n")
    both = shell("uqbench list metrics > /dev/full 2>&1", tmp_path)
    assert (both.returncode, both.stdout, both.stderr) == (2, "", "")


def test_a_closed_pipe_ends_the_command_without_a_word(tmp_path: Path) -> None:
    done = shell("uqbench list metrics --json | true", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")
    done = shell("uqbench --help | true", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")


def test_a_closed_standard_output_is_not_taken_by_a_file(tmp_path: Path) -> None:
    # The first file that is opened would be descriptor 1.
    code = "from bench.cli.output import occupy_descriptors; occupy_descriptors(); assert open('x', 'w').fileno() > 2"
    done = shell(f"'{sys.executable}' -c \"{code}\" >&- 2>&-", tmp_path)
    assert done.returncode == 0
    done = shell("uqbench list methods >&-", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_plugin_that_exits_when_it_is_loaded_is_no_success(command: Command, write_plugin: WritePlugin) -> None:
    path = write_plugin("exits", "raise SystemExit(0)\n")
    answer = command("list", "methods", "--plugin", str(path))
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert "exit" in answer.err.lower()


@pytest.mark.slow
def test_a_plugin_that_leaves_the_process_fails_its_own_cells(
    command: Command, write_plugin: WritePlugin, tmp_path: Path
) -> None:
    """`os._exit(0)` would end the command without a word and with the code of a success."""
    leaves = "@dataclass(frozen=True)\nclass Leaves(Method):\n    def draw(self, net, x, tape):\n        os._exit(0)\n"
    path = write_plugin("leaves", f"import os\n\n{leaves}")
    (tmp_path / "tiny.toml").write_text(TINY, "utf-8")
    run = f"uqbench run tiny.toml --engine inline --seeds 1 --plugin '{path}' --method leaves --method deterministic"
    done = shell(f"{run} --store s.db", tmp_path)
    assert done.returncode == 1
    assert "1 failed" in done.stderr + done.stdout
    assert "SystemExit: 0" in done.stderr + done.stdout
    (row,) = json.loads(command("status", "--store", "s.db", "--json").out)["rows"]
    assert (row["done"], row["failed"]) == (1, 1)
