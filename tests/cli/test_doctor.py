from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bench.cli.doctor import Finding, examine
from bench.machine.data_files import VARIABLE
from bench.metrics import discovery
from bench.plugins.registry import Registry

WritePlugin = Callable[[str, str], Path]


def about(findings: list[Finding], subject: str) -> list[Finding]:
    return [f for f in findings if f.subject == subject]


def test_a_sound_installation_has_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "uci").mkdir()
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    findings = examine(Registry(), str(tmp_path / "runs" / "s.db"))
    assert [f for f in findings if f.state == "problem"] == []
    assert {f.subject for f in findings} == {
        "python",
        "packages",
        "device",
        "threads",
        "compiler",
        "methods",
        "networks",
        "datasets",
        "reports",
        "metrics",
        "data",
        "store",
    }
    assert about(findings, "data")[0].text == f"{tmp_path}: uci"
    assert not (tmp_path / "runs").exists()  # looking changes nothing


@pytest.mark.parametrize("store", ["/proc/nowhere/s.db", "sqlite:////proc/s.db", "postgresql://host/db", "/tmp"])
def test_a_store_that_cannot_be_written(store: str) -> None:
    (finding,) = about(examine(Registry(), store), "store")
    assert finding.state == "problem"


def test_a_store_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "s.db").touch()
    (finding,) = about(examine(Registry(), f"sqlite:///{tmp_path}/s.db"), "store")
    assert (finding.state, "exists" in finding.text) == ("ok", True)


def test_spinning_threads_are_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    (finding,) = about(examine(Registry(), str(tmp_path / "s.db")), "threads")
    assert finding.state == "problem"
    assert "PASSIVE" in finding.text


def test_a_missing_package_is_a_problem_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("bench.cli.doctor.package_versions", lambda: {"uqbench": None, "torch": None, "numpy": "2"})
    findings = examine(Registry(), str(tmp_path / "s.db"))
    assert [f.state for f in about(findings, "packages")] == ["ok", "problem", "note"]
    assert "missing: torch; run 'pip install uqbench' again" in [f.text for f in findings]
    assert about(findings, "device") == []  # cannot be told without torch


def test_a_broken_plugin_is_told_and_the_others_are_listed(write_plugin: WritePlugin, tmp_path: Path) -> None:
    path = write_plugin("broken", "class Broken(Method):\n    pass\n")
    listed, problem = about(examine(Registry([path]), str(tmp_path / "s.db")), "methods")
    assert "mc-dropout" in listed.text
    assert problem.state == "problem"
    assert "'broken'" in problem.text
    assert "frozen dataclass" in problem.text


METRIC = "Metric('{0}', 'regression', 'predictive', 'target', 0.0, '1', frozenset(), 'f', 'theirs', lambda f: 0.0)"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two installed packages, one of which has a metric and the other is broken."""
    code = f"from bench.metrics import Metric\nOWN = {METRIC.format('their_bias')}\n"
    (tmp_path / "doctor_metrics.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    points = [EntryPoint(n, f"doctor_metrics:{n}", discovery.GROUP) for n in ("OWN", "GONE")]
    monkeypatch.setattr(discovery, "entry_points", lambda group: points)
    for cached in (discovery._installed, discovery._declared_by_installed):
        cached.cache_clear()
    yield
    for cached in (discovery._installed, discovery._declared_by_installed):
        cached.cache_clear()


@pytest.mark.usefixtures("packages")
def test_metrics_of_packages_and_files_are_listed_and_broken_ones_told(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(f"from bench.api import Metric\nOWN = {METRIC.format('my_bias')}\n", "utf-8")
    listed, problem = about(examine(Registry([path]), str(tmp_path / "s.db")), "metrics")
    assert (listed.state, problem.state) == ("ok", "problem")
    assert listed.text == f"{len(discovery.BUILT_IN)} built in; of plug-ins: my_bias, their_bias"
    assert "doctor_metrics:GONE" in problem.text


def test_a_metric_that_is_declared_twice_is_told(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(f"from bench.api import Metric\nOWN = {METRIC.format('rmse')}\n", "utf-8")
    (problem,) = about(examine(Registry([path]), str(tmp_path / "s.db")), "metrics")
    assert problem.state == "problem"
    assert "'rmse' is declared twice" in problem.text
