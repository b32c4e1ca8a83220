"""Everything in docs/tutorial.md is carried out, in its order, in one empty folder."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bench.machine.environment import code_version

DOCUMENT = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall(DOCUMENT.read_text("utf-8"))


def test_the_tutorial_has_commands_and_code_only() -> None:
    assert {language for language, _ in blocks()} == {"console", "python"}
    text = " ".join(body for _, body in blocks())
    for step in ("uqbench new", "uqbench verify", "uqbench run", "uqbench report", "pytest"):
        assert step in text


def test_the_network_of_the_tutorial_has_at_most_twenty_lines() -> None:
    (code,) = (body for language, body in blocks() if language == "python" and "(Network)" in body)
    assert len(code.splitlines()) - 1 <= 20  # the first names the file


def test_the_forest_of_the_tutorial_has_at_most_twenty_five_lines() -> None:
    (code,) = (body for language, body in blocks() if language == "python" and "(Estimator)" in body)
    assert len(code.splitlines()) - 1 <= 25


def test_the_wrapper_of_the_tutorial_has_at_most_forty_lines() -> None:
    (code,) = (body for language, body in blocks() if language == "python" and "(Wrapper)" in body)
    assert len(code.splitlines()) - 1 <= 40


def write(code: str, folder: Path) -> None:
    first, _, rest = code.partition("\n")
    verb, name = re.fullmatch(r"# (file|add to): (\w+\.py)", first).groups()  # type: ignore[union-attr]
    path = folder / name
    if verb == "file":
        path.write_text(code, "utf-8")
        return
    lines = path.read_text("utf-8").splitlines(keepends=True)
    (place,) = [number for number, line in enumerate(lines) if line.lstrip().startswith("search_space")]
    path.write_text("".join([*lines[: place + 1], rest, *lines[place + 1 :]]), "utf-8")


def call(line: str, folder: Path) -> None:
    command, _, remark = line.partition("#")
    expected = int(re.sub(r"\D", "", remark) or 0)
    program, *arguments = shlex.split(command)
    module = {"uqbench": [sys.executable, "-m", "bench"], "python": [sys.executable]}[program]
    done = subprocess.run([*module, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == expected, f"{line}\n{done.stdout}\n{done.stderr}"


def test_every_step_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # two versions of a file within a second look alike to a cache
    for language, body in blocks():
        if language == "python":
            write(body, tmp_path)
        else:
            for line in body.splitlines():
                call(line, tmp_path)
    page = (tmp_path / "report" / "report.md").read_text("utf-8")
    assert "shake" in page
    assert "mc-dropout" in page
    assert "forest" in page
    site = tmp_path / "leaderboard"
    assert (site / "index.html").is_file()
    if "dirty" not in code_version():  # rows of changed code are not listed
        (card,) = site.glob("**/*forest*.html")
        assert "Breiman 2001" in card.read_text("utf-8")
    assert (tmp_path / "shaken-biases" / "pyproject.toml").is_file()
