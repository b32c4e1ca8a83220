"""Every built-in plug-in passes every check, or says with a reason which one it is right to fail.

A subject is shared by the checks of one plug-in, so that each is trained once. UQBENCH_THOROUGH=1 also
trains them for the comparison with an exact posterior, which takes as long as a third of all the rest.
"""

import os
from functools import cache
from typing import Any

import pytest

from bench.machine.data_files import VARIABLE
from bench.plugins.kinds import Kind
from bench.plugins.registry import Registry
from bench.testing import Check
from bench.testing.check import judge
from bench.testing.verify import checks_of, subject_of


def cases(kind: Kind) -> list[Any]:
    """All checks of one plug-in stand together: the next one's subject replaces it."""
    names = [name for name, plugin in Registry().plugins(kind).items() if plugin.origin == "built in"]
    left_out = () if os.environ.get("UQBENCH_THOROUGH") else ("variance-shrinks",)
    return [
        pytest.param(name, check, id=f"{name}-{check}")
        for name in names
        for check in checks_of(Registry().make(kind, name, {}))
        if check.name not in left_out
    ]


@cache
def made(kind: Kind, name: str) -> tuple[Any, Any]:
    plugin = Registry().make(kind, name, {})
    return plugin, subject_of(plugin)


def passes(kind: Kind, name: str, check: Check[Any]) -> None:
    plugin, subject = made(kind, name)
    verdict = judge(check, subject, plugin.expected_failures)
    assert verdict.state != "failed", f"{kind} {name}: {verdict}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "check"), cases("method"))
def test_a_method_conforms(name: str, check: Check[Any]) -> None:
    passes("method", name, check)


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A world without downloaded data, as in a fresh checkout."""
    empty = str(tmp_path_factory.getbasetemp())
    monkeypatch.setenv(VARIABLE, empty)
    monkeypatch.setenv("XDG_CACHE_HOME", empty)


@pytest.mark.slow
@pytest.mark.usefixtures("no_data")
@pytest.mark.parametrize(("name", "check"), cases("dataset"))
def test_a_dataset_conforms(name: str, check: Check[Any]) -> None:
    passes("dataset", name, check)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "check"), cases("network"))
def test_a_network_conforms(name: str, check: Check[Any]) -> None:
    passes("network", name, check)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "check"), cases("report"))
def test_a_report_conforms(name: str, check: Check[Any]) -> None:
    passes("report", name, check)
