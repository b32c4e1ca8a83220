import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.errors import UserError
from bench.metrics import Metric, catalogue
from bench.metrics.discovery import BUILT_IN, GROUP, assemble


def _metric(name: str, **changes: Any) -> Metric:
    declared: dict[str, Any] = {"compute": lambda forecast: 0.0, "relative_to": None, "needs": frozenset[str]()}
    return Metric(name, "any", "predictive", "lower", None, "1", formula="f", source="s", **{**declared, **changes})


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("a_plugin_of_this_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def _point(attribute: str) -> EntryPoint:
    return EntryPoint(name=attribute, value=f"a_plugin_of_this_test:{attribute}", group=GROUP)


def test_an_entry_point_is_one_metric_or_several(plugin: ModuleType) -> None:
    plugin.__dict__.update(single=_metric("one"), several=[_metric("two"), _metric("three")])
    assert list(assemble((), [_point("single"), _point("several")])) == ["one", "three", "two"]


def test_a_duplicate_name_names_both_origins(plugin: ModuleType) -> None:
    plugin.__dict__.update(mine=_metric("rmse"))
    with pytest.raises(
        UserError, match=r"'rmse' is declared twice: by uqbench itself and by entry point mine = a_plugin"
    ):
        assemble(BUILT_IN, [_point("mine")])


def test_one_that_fails_is_reported_with_its_own_error_and_the_others_stay(plugin: ModuleType) -> None:
    plugin.__dict__.update(good=_metric("good"), wrong=[_metric("other"), 3], number=3)
    broken = EntryPoint(name="broken", value="no_such_module_at_all:x", group=GROUP)
    with pytest.warns(UserWarning, match="is left out") as caught:
        found = assemble((), [broken, _point("wrong"), _point("number"), _point("good")])
    assert list(found) == ["good"]
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 3
    assert "broken" in messages[0]
    assert "No module named 'no_such_module_at_all'" in messages[0]
    assert "expected Metric instances, got int" in messages[1]
    assert "'int' object is not iterable" in messages[2]


def test_one_relative_to_nothing_is_reported_and_left_out() -> None:
    orphan = _metric("orphan", compute=None, relative_to="nowhere", needs=frozenset({"baseline"}))
    with pytest.warns(UserWarning, match="relative to 'nowhere', which does not exist"):
        assert list(assemble([orphan, _metric("good")], ())) == ["good"]


def test_catalogue_is_sorted_and_a_caller_cannot_change_it() -> None:
    metrics = catalogue()
    assert list(metrics) == sorted(metrics, key=lambda name: (metrics[name].family, name))
    assert all(name == metric.name for name, metric in metrics.items())
    metrics.clear()
    assert catalogue()


def test_an_installed_package_adds_its_metric(tmp_path: Path) -> None:
    (tmp_path / "their_metrics.py").write_text(
        "from bench.metrics import Metric\n"
        "METRIC = Metric('their_bias', 'regression', 'predictive', 'target', 0.0, 'target unit', frozenset(),\n"
        "    'mean_i (m_i - y_i)', 'theirs', lambda f: float((f.mean - f.observed).mean()))\n"
    )
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bench.metrics]\nbias = their_metrics:METRIC\n")
    program = (
        "import numpy as np; from bench.metrics import Forecast, score\n"
        "print(score(Forecast('regression', np.zeros(2), np.ones((1, 2))))['their_bias'])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"PYTHONPATH": f"{tmp_path}:{root}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1.0"


def test_listing_metrics_imports_nothing_slow() -> None:
    program = (
        "import sys; from bench.metrics import catalogue; catalogue()\n"
        "print([m for m in ('torch', 'pandas', 'seaborn', 'scipy', 'sklearn', 'matplotlib') if m in sys.modules])"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": root}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
