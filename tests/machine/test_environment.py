import json
import os
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from bench.machine import environment


def test_versions_are_those_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "PACKAGES", ("numpy", "no-such-package-at-all"))
    assert environment.package_versions() == {"numpy": version("numpy"), "no-such-package-at-all": None}


def test_facts_are_plain_and_true() -> None:
    facts = environment.facts("cpu")
    assert json.loads(json.dumps(facts)) == facts
    assert facts["threads"] == torch.get_num_threads()
    assert facts["wait_policy"] == os.environ["OMP_WAIT_POLICY"]
    assert facts["device"] == "cpu"
    assert facts["packages"]["torch"] == version("torch")
    assert 1 <= facts["cores"] <= (os.cpu_count() or 1)
    assert facts["cpu"]


def test_the_code_version_is_that_of_our_own_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed below somebody else's repository, their commit says nothing of us."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # inside a git hook they would lead to our own repository
    package = tmp_path / "site-packages" / "bench" / "machine"
    package.mkdir(parents=True)
    (package / "environment.py").touch()
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "theirs"], check=True)
    monkeypatch.setattr(environment, "__file__", str(package / "environment.py"))
    assert environment.code_version.__wrapped__() == ""
    (tmp_path / "site-packages" / "pyproject.toml").touch()  # now it looks like our checkout
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    assert commit.startswith(environment.code_version.__wrapped__())
    assert environment.code_version.__wrapped__()
    (package / "environment.py").write_text("changed", "utf-8")
    assert environment.code_version.__wrapped__().endswith("-dirty")


def test_without_git_there_is_no_code_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert environment.code_version.__wrapped__() == ""
