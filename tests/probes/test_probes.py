"""How probes are found, built and checked; and that a new one is one file."""

import json
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import probes
from bench.api import Method, Split
from bench.api.corruptions import CORRUPTIONS, FOREIGN
from bench.errors import UserError
from bench.plan.cells import Refused, Task, plan
from bench.plan.suite import load_suite
from bench.plan.units import Units
from bench.plugins.registry import Registry
from bench.probes import make_probe, probe_types
from bench.probes.base import Probe
from bench.run.job import Job
from bench.run.jobs import outcomes
from bench.spec.cell import Cell, Outcome
from bench.spec.protocol import Protocol
from bench.store.store import Store

SUITE = """
title = "A new probe"
seeds = 2
draws = 3
[probe]
kind = "mirrored"
times = 3
[training]
epochs = 1
[network]
hidden = [4]
[datasets.digits]
[datasets.toy]
rows = 40
[methods.deterministic]
[methods.mc-dropout]
"""

MIRRORED = '''
"""Accuracy at mirrored images."""

from dataclasses import replace

from pydantic.dataclasses import dataclass

from bench.errors import UserError
from bench.metrics import score
from bench.probes.base import Finding, Probe
from bench.probes.score import forecast_of
from bench.spec.protocol import CLOSED, Positive


@dataclass(frozen=True, config=CLOSED)
class Mirrored(Probe):
    kind = "mirrored"
    times: Positive = 1
    axis: Positive = 3

    def check(self, split):
        if split.test_x.ndim != 4:
            raise UserError("probe 'mirrored' is for images")

    def rows_drawn(self, test_rows):
        return self.times * test_rows

    def measure(self, subject):
        images = subject.data.test_x.flip(self.axis)
        values = score(forecast_of(replace(subject, data=replace(subject.data, test_x=images))))
        found = {f"accuracy@mirrored:{self.times}": values["accuracy"]}
        return Finding(found, record={"mirrors": self.times}, doubts=["the mirror is dusty"])

    @staticmethod
    def table(results):
        return f"mirrored: {len(results.frame)} values of {', '.join(sorted(set(results.frame['method'])))}"

    @staticmethod
    def check_outcome(outcome):
        if "accuracy@mirrored:0" in outcome.metrics:
            raise UserError("mirrored no times")
'''


@pytest.fixture
def mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A probe in one file, in a folder that the package is extended by."""
    folder = tmp_path / "probes"
    folder.mkdir()
    (folder / "mirrored.py").write_text(MIRRORED, "utf-8")
    monkeypatch.setattr(probes, "__path__", [*probes.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, "bench.probes.mirrored", raising=False)
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("mirrored")
def test_one_file_is_enough_from_the_suite_to_the_table(
    write_suite: Callable[..., str], command: Callable[..., Any], tmp_path: Path
) -> None:
    ran = command("run", write_suite(SUITE), "--engine", "inline", "--store", "s.db")
    assert "toy: probe 'mirrored' is for images" in ran.err  # its check
    assert "4 cells run" in ran.out
    assert "mirrored: 4 values of deterministic, mc-dropout" in ran.out  # its table instead of the ranks
    store = Store(str(tmp_path / "s.db"))
    assert {row["metric"] for row in store.values("mine")} == {"accuracy@mirrored:3"}
    assert {json.loads(cell["training"])["mirrors"] for cell in store.cells("mine")} == {3}
    assert "the mirror is dusty" in ran.err
    with pytest.raises(UserError, match="mirrored no times"):
        store.save([(Cell("k", "d", 0, "m", 0, "{}"), Outcome("ok", metrics={"accuracy@mirrored:0": 1.0}))])


@pytest.mark.usefixtures("mirrored")
def test_the_key_of_a_cell_and_the_cost_of_a_unit_know_a_new_probe(write_suite: Callable[..., str]) -> None:
    tasks, seconds = [], []
    for change in ("probe.times=3", "probe.times=3000"):
        suite = load_suite(write_suite(SUITE), [change])
        assert suite.protocol_for("digits").probe == {"kind": "mirrored", "times": int(change[12:]), "axis": 3}
        first, *_, refused = plan(suite, Registry())
        assert isinstance(first, Task)
        assert isinstance(refused, Refused)
        units = Units()
        units.add_task(first, first.cells)
        tasks.append(first)
        seconds.append(units.cut(1)[0].seconds)
    assert tasks[0].cells[0].key != tasks[1].cells[0].key
    assert seconds[1] > seconds[0]


@pytest.mark.usefixtures("mirrored")
def test_a_mistake_in_the_table_of_a_new_probe_names_file_and_key(write_suite: Callable[..., str]) -> None:
    path = write_suite(SUITE)
    with pytest.raises(UserError, match=rf"^{path}: probe: unknown key 'tmes'; did you mean times\?$"):
        load_suite(path, ["probe.tmes=3"])
    with pytest.raises(UserError, match=rf"^{path}: probe\.times: .* greater than 0, got 0$"):
        load_suite(path, ["probe.times=0"])
    with pytest.raises(UserError, match=r"probe: unknown kind 'mirored'; did you mean mirrored\?"):
        load_suite(path, ["probe.kind=mirored"])


@pytest.mark.parametrize(("text", "message"), [("", "found 0"), (MIRRORED.replace("mirrored", "shift"), "two probes")])
def test_a_file_that_is_no_probe_is_an_error(text: str, message: str, mirrored: Path) -> None:
    (mirrored / "mirrored.py").write_text(text, "utf-8")
    with pytest.raises(TypeError, match=message):
        probe_types()


def test_every_probe_is_found_and_states_its_options_in_full() -> None:
    assert probe_types().keys() == {"test", "shift", "row-shift", "softmax-noise", "latency"}
    assert make_probe(Protocol().probe).kind == "test"
    for kind, cls in probe_types().items():
        assert issubclass(cls, Probe)
        options = fields(cls)  # type: ignore[arg-type]  # probes are dataclasses
        assert all(f.default is not MISSING or f.default_factory is not MISSING for f in options)
        # Options that came later are named where they are not at their defaults.
        stated = {f.name: getattr(cls(), f.name) for f in options if f.name not in cls.later}
        assert make_probe({"kind": kind}).spec == {"kind": kind} | stated
    shift = make_probe({"kind": "shift"}).spec
    assert (shift["corruptions"], shift["foreign"]) == (list(CORRUPTIONS), list(FOREIGN))


@dataclass(frozen=True)
class FiniteAtDarkImages(Method):
    """Draws are infinite where an image is brighter than half of the range, as no digit is."""

    def draw(self, net: Any, x: Any, tape: Any) -> Any:
        return net(x) / (x.mean((1, 2, 3)).abs() < 0.5).float()[:, None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "where"),
    [
        ({"kind": "test"}, ""),
        ({"kind": "shift", "corruptions": ["brightness"], "severities": [5], "foreign": []}, " under brightness of"),
        ({"kind": "shift", "corruptions": [], "severities": [], "foreign": ["inverted"]}, " at the foreign images"),
        ({"kind": "softmax-noise", "levels": [0.0, 90.0]}, ""),
    ],
)
def test_a_prediction_that_is_not_finite_is_divergence(table: Any, where: str, load: Callable[..., Split]) -> None:
    """Not a failure, and the message names the condition."""
    split = load()
    if table["kind"] == "test":
        split = replace(split, test_x=np.full_like(split.test_x, 90.0))
    training: Any = {"epochs": 1}
    protocol = Protocol(training=training, scale_inputs=False, draws=2, probe=table)
    ((_, outcome),) = outcomes([Job(FiniteAtDarkImages(), protocol, split, 0)])
    assert outcome.status == "diverged", outcome.message
    assert outcome.message.startswith(f"a prediction at the test rows was not finite{where}")
    assert not outcome.metrics
