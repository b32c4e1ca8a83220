"""The first lines of commits, asked of git."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.history.commits import subjects


def git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": "n", f"GIT_{who}_EMAIL": "e@example.org"}
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A repository as the current folder, and its commits, the oldest first."""
    git(tmp_path, "init", "--quiet")
    for message in ("First", "Second: é <b>\n\nA body\nof two lines", "Third"):
        git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", message)
    monkeypatch.chdir(tmp_path)
    return git(tmp_path, "log", "--reverse", "--format=%H").split()


def test_commits_are_found_by_their_short_names_also_where_they_were_changed(repository: list[str]) -> None:
    first, second, third = repository
    asked = [first[:12], f"{second[:12]}-dirty", third, "0123456789ab", "uqbench 0.1.0", ""]
    assert subjects(asked) == {first[:12]: "First", f"{second[:12]}-dirty": "Second: é <b>", third: "Third"}


def test_git_is_called_once(repository: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    run = subprocess.run

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr(subprocess, "run", counted)
    assert len(subjects([*repository, *(code[:12] for code in repository)])) == 6
    assert len(calls) == 1
    assert subjects(["unknown", "--output=x"]) == {}
    assert len(calls) == 1  # nothing that could be a commit


def test_names_that_are_no_commits_are_not_handed_to_git(repository: list[str], tmp_path: Path) -> None:
    assert subjects(["--output=stolen", "HEAD", "deadbeef\nHEAD"]) == {}
    assert not (tmp_path / "stolen").exists()


def test_a_tree_or_a_blob_has_no_first_line(repository: list[str], tmp_path: Path) -> None:
    assert subjects([git(tmp_path, "rev-parse", "HEAD^{tree}"), repository[0]]) == {repository[0]: "First"}


def test_outside_a_repository_and_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert subjects(["0123456789ab"]) == {}
    monkeypatch.setenv("PATH", "")
    assert subjects(["0123456789ab"]) == {}
