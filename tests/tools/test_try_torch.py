import tomllib
from pathlib import Path

import pytest

from tools.try_torch import with_any_torch

PROJECT = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text("utf-8")


def test_only_the_bounds_of_torch_are_removed() -> None:
    before, after = (tomllib.loads(text)["project"] for text in (PROJECT, with_any_torch(PROJECT)))
    assert "torch" in after["dependencies"]
    assert after["optional-dependencies"]["images"] == ["torchvision"]
    changed = set(before["dependencies"]) ^ set(after["dependencies"])
    assert {text.partition(">")[0] for text in changed} == {"torch"}
    assert "torchmetrics>=1.4" in after["optional-dependencies"]["test"]


def test_a_project_without_a_range_is_refused() -> None:
    with pytest.raises(SystemExit, match="no range of torch"):
        with_any_torch('dependencies = ["torch"]')
