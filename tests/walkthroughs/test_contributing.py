"""The examples of CONTRIBUTING.md are complete: each is written to a file and run as the document says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DOCUMENT = Path(__file__).parents[2] / "CONTRIBUTING.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    lines = [line.partition("#")[0] for block in blocks("console") for line in block.splitlines()]
    return [line for line in lines if line.startswith("uqbench ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every example file and the data that the dataset's example asks for."""
    place = tmp_path_factory.mktemp("contributing")
    for code in blocks("python"):
        (name,) = re.findall(r"\A# file: (\w+\.py)\n", code)
        (place / name).write_text(code, "utf-8")
    (place / "data").mkdir()
    load = np.linspace(0, 5, 60)
    table = np.column_stack([load, 0.4 * load + 0.05 * np.random.default_rng(0).normal(size=60)])
    np.savetxt(place / "data" / "springs.csv", table, delimiter=",", header="load,extension", comments="")
    return place


def call(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    _, *arguments = shlex.split(command)
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_document_shows_plug_ins_of_each_kind() -> None:
    kinds = [re.findall(r"(Method|Dataset|Report|METRICS)(?:\):| = )", code) for code in blocks("python")]
    assert kinds == [["Method"], ["Dataset"], ["Dataset"], ["Report"], ["METRICS"]]
    assert [command.split()[1] for command in commands()] == [
        "new",
        "verify",
        *["verify", "run"] * 3,
        "verify",
        "report",
        *["verify", "list", "run", "compare"],
    ]


def test_every_example_runs_as_written(folder: Path) -> None:
    printed = {}
    for command in commands()[2:]:  # what 'new' writes and 'verify' says of it is carried out by test_tutorial.py
        done = call(command, folder)
        printed[command.split()[1]] = done.stdout
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "skipped" not in done.stderr, done.stderr
    page = (folder / "report" / "report.md").read_text("utf-8")
    for expected in ("input-noise", "springs", "Training length"):
        assert expected in page
    assert re.search(r"far_misses .*\(file far_misses\.py\)", printed["list"])
    assert "far_misses" in printed["compare"]


def test_the_dataset_says_what_to_do_without_its_file(folder: Path, tmp_path: Path) -> None:
    done = call(f"uqbench run quick --plugin {folder / 'springs.py'} --dataset springs --data {tmp_path}", tmp_path)
    assert "springs.csv was not found" in done.stderr
    assert "--data DIR" in done.stderr
