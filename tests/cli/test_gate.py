"""The commands as users type them. Values are read from a store that holds them; two tests run everything anew."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
import torch

from tests.fixtures.commands import Command
from tests.fixtures.gate import Change
from tests.fixtures.suites import tiny_suite

GATE = ("gate", "tiny.toml", "--baseline", "tiny.json")
STORED = (*GATE, "--store", "tiny.db")


@pytest.mark.slow
def test_a_baseline_made_and_gated_anew_is_identical(command: Command, tiny_files: Path) -> None:
    done = command("baseline", "tiny.toml", "--out", "new/own.json")
    assert done.code == 0, done.err
    assert "18 values, 2 pairs of dataset and method, 6 seeds" in done.out
    done = command("gate", "tiny.toml", "--baseline", "new/own.json")
    assert done.code == 0, done.err
    assert "are bit-identical to the baseline; no tests were needed" in done.out
    assert "read from" not in done.out  # nothing old could answer
    own, stored = (json.loads((tiny_files / name).read_text("utf-8")) for name in ("new/own.json", "tiny.json"))
    assert own["values"] == stored["values"]


@pytest.mark.slow
def test_a_regression_exits_1_and_names_the_metric(command: Command, change: Change) -> None:
    change(0.5, "mc-dropout", "rmse")
    done = command(*STORED)
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("regressed")]
    assert line.split()[:4] == ["regressed", "toy", "mc-dropout", "rmse"]
    assert done.out.splitlines()[-1] == "FAILED: suite tiny: 1 regressed, 2 identical"
    assert "12 cells read from" in done.out


def test_an_improvement_exits_0_and_is_told(command: Command, change: Change) -> None:
    change(2.0, "mc-dropout", "rmse")
    done = command(*STORED, "--strict")
    assert done.code == 0
    assert "passed: suite tiny: 1 improved, 2 identical" in done.out


def test_strict_makes_inconclusive_fail(command: Command, tiny_files: Path) -> None:
    content = json.loads((tiny_files / "tiny.json").read_text("utf-8"))
    row = content["values"]["toy"]["mc-dropout"]["rmse"]
    content["values"]["toy"]["mc-dropout"]["rmse"] = row[1:] + row[:1]  # the same numbers at other seeds
    (tiny_files / "tiny.json").write_text(json.dumps(content), "utf-8")
    assert command(*STORED).code == 0
    done = command(*STORED, "--strict")
    assert done.code == 1
    assert "FAILED: suite tiny: 1 inconclusive, 2 identical" in done.out


def test_reports_for_machines_agree_with_the_exit_code(command: Command, change: Change, tiny_files: Path) -> None:
    change(0.5, "mc-dropout", "rmse")
    done = command(*STORED, "--json", "--junit", "out/gate.xml", "--markdown", "out/gate.md")
    told = json.loads(done.out)
    assert (done.code, told["passed"], told["counts"]) == (1, False, {"identical": 2, "regressed": 1})
    (row,) = [row for row in told["rows"] if row["verdict"] == "regressed"]
    assert (row["dataset"], row["method"], row["metric"]) == ("toy", "mc-dropout", "rmse")
    suite = Xml.parse(tiny_files / "out" / "gate.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    (failure,) = suite.iter("failure")
    assert "regressed: rmse of mc-dropout on toy" in str(failure.get("message"))
    page = (tiny_files / "out" / "gate.md").read_text("utf-8")
    assert page.startswith("### ❌ uqbench gate: FAILED")
    assert "| regressed | toy | mc-dropout | rmse | 6 |" in page


@pytest.mark.slow
def test_a_method_that_is_gone_fails_and_a_new_one_is_reported(command: Command, tiny_files: Path) -> None:
    suite = (tiny_files / "tiny.toml").read_text("utf-8")
    (tiny_files / "tiny.toml").write_text(suite.replace("[methods.mc-dropout]", "[methods.mean-variance]"), "utf-8")
    done = command(*STORED)
    assert done.code == 1
    assert "missing      toy          mc-dropout" in done.out
    assert "not in the suite any more" in done.out
    assert "new          toy          mean-variance" in done.out


def test_another_environment_is_told_and_statistics_decide(command: Command, tiny_files: Path) -> None:
    content = json.loads((tiny_files / "tiny.json").read_text("utf-8"))
    content["environment"] |= {"cpu": "Another CPU", "torch": "2.0.0"}
    row = content["values"]["toy"]["mc-dropout"]["crps"]
    content["values"]["toy"]["mc-dropout"]["crps"] = [value * (1 + 1e-7 * k) for k, value in enumerate(row)]
    (tiny_files / "tiny.json").write_text(json.dumps(content), "utf-8")
    done = command(*STORED)
    assert done.code == 0
    assert "environment: cpu: Another CPU in the baseline, now" in done.out
    assert "environment: torch: 2.0.0 in the baseline, now" in done.out
    assert "values may change by rounding, so the tests decide" in done.out
    assert "1 equivalent" in done.out


@pytest.mark.slow
@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() == "DEFAULT",
    reason="this processor has no vector instructions to do without",
)
def test_a_processor_with_other_instructions_is_told_and_passes(tiny_files: Path) -> None:
    """Torch really computes without the vector instructions the baseline was made with."""
    command = [sys.executable, "-m", "bench", "gate", "tiny.toml", "--baseline", "tiny.json"]
    other = {**os.environ, "ATEN_CPU_CAPABILITY": "default"}
    done = subprocess.run(command, cwd=tiny_files, env=other, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        f"environment: vectors: {torch.backends.cpu.get_cpu_capability()} in the baseline, now DEFAULT" in done.stdout
    )


def test_a_sequential_gate_stops_early_and_tells_what_it_saved(command: Command, change: Change) -> None:
    done = command(*STORED, "--sequential")
    assert done.code == 0
    assert "sequential: looked at 3 seeds; 6 of 12 cells needed, 50 % saved" in done.out
    change(0.5, "mc-dropout", "rmse")
    done = command(*STORED, "--sequential")
    assert done.code == 1
    assert "sequential: looked at 3, 6 seeds; 9 of 12 cells needed, 25 % saved" in done.out


def test_updating_a_baseline_is_deliberate(command: Command, tiny_files: Path) -> None:
    make = ("baseline", "tiny.toml", "--out", "tiny.json", "--store", "tiny.db")
    done = command(*make)
    assert (done.code, "replace it with --update --why REASON" in done.err) == (2, True)
    done = command(*make, "--update")
    assert (done.code, "say why the numbers may change" in done.err) == (2, True)
    done = command(*make, "--update", "--why", "a better optimiser")
    assert done.code == 0
    reasons = json.loads((tiny_files / "tiny.json").read_text("utf-8"))["reasons"]
    assert [reason["why"] for reason in reasons] == ["first", "a better optimiser"]
    assert "0 of 3 metrics moved" in done.out


@pytest.mark.parametrize(
    ("change_suite", "told"),
    [
        (("epochs = 2", "epochs = 3"), "training.epochs was 2 and is 3"),
        (("rows = 40", "rows = 41"), "datasets.toy.rows was 40 and is 41"),
        (
            ("[methods.mc-dropout]", "[methods.mc-dropout]\nrate = 0.3"),
            "methods.mc-dropout.rate was not given and is 0.3",
        ),
    ],
)
def test_another_suite_than_the_baselines_is_misuse(
    command: Command, tiny_files: Path, change_suite: tuple[str, str], told: str
) -> None:
    path = tiny_files / "tiny.toml"
    path.write_text(path.read_text("utf-8").replace(*change_suite), "utf-8")
    done = command(*STORED)
    assert done.code == 2
    assert told in done.err
    assert "--update --why" in done.err


def test_what_does_not_change_numbers_may_change_in_the_suite(command: Command, tiny_files: Path) -> None:
    path = tiny_files / "tiny.toml"
    text = path.read_text("utf-8").replace('"Tiny"', '"Tinier"').replace("seeds = 6", "seeds = 2")
    path.write_text(text.replace("alpha = 0.01", 'alpha = 0.02\nmargins = {rmse = "3%"}'), "utf-8")
    done = command(*STORED)
    assert done.code == 0, done.err
    assert "bit-identical" in done.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("gate", "tiny.toml", "--baseline", "none.json"), "none.json: no such file"),
        (("gate", "quick", "--baseline", "tiny.json"), "tiny.json is the baseline of suite tiny, not of quick"),
        (("gate", "tinny", "--baseline", "tiny.json"), "unknown suite 'tinny'"),
        (("gate", "tiny.toml"), "Missing option '--baseline'"),
        (("baseline", "tiny.toml", "--out", "new.json", "--update", "--why", "x"), "there is no new.json yet"),
    ],
)
def test_misuse_is_one_line_and_exit_2(
    command: Command, tiny_files: Path, arguments: tuple[str, ...], told: str
) -> None:
    done = command(*arguments)
    assert done.code == 2
    assert told in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_wrong_key_of_the_gate_in_a_suite_is_told(command: Command, tiny_files: Path) -> None:
    path = tiny_files / "tiny.toml"
    path.write_text(path.read_text("utf-8").replace("alpha = 0.01", "aplha = 0.01"), "utf-8")
    done = command(*STORED)
    assert (done.code, "gate: unknown key 'aplha'; did you mean alpha" in done.err) == (2, True)


OWN = """
from dataclasses import dataclass
from bench.api import Method, Metric
@dataclass(frozen=True)
class Mine(Method):
    def loss(self, net, batch, tape):
        return {factor} * batch.loss(net(batch.x))
BIAS = Metric("own_bias", "regression", "predictive", "target", 0.0, "1", frozenset(), "mean_i (m_i - y_i)", "test",
              lambda forecast: (forecast.mean - forecast.observed).mean(), signed=True)
"""


@pytest.mark.slow
def test_a_changed_plug_in_is_named_and_its_metric_gated(command: Command, tmp_path: Path) -> None:
    keys = {"seeds": 3, "baseline": "mine", "metrics": ["rmse", "own_bias"]}
    text = tiny_suite(**keys).replace("[methods.deterministic]", "").replace("[methods.mc-dropout]", "[methods.mine]")
    (tmp_path / "own.toml").write_text(text, "utf-8")
    (tmp_path / "mine.py").write_text(OWN.format(factor=1), "utf-8")
    made = command("baseline", "own.toml", "--plugin", "mine.py")
    assert made.code == 0, made.err
    stored = json.loads((tmp_path / "baselines" / "own.json").read_text("utf-8"))
    assert set(stored["plugins"]) == {"method mine", "metric own_bias"}
    assert set(stored["values"]["toy"]["mine"]) == {"own_bias", "rmse"}
    gate = ("gate", "own.toml", "--baseline", "baselines/own.json", "--plugin", "mine.py")
    same = command(*gate)
    assert same.code == 0, same.err
    assert "plug-in" not in same.out
    (tmp_path / "mine.py").write_text(OWN.format(factor=3), "utf-8")
    changed = command(*gate)
    before = stored["plugins"]["method mine"]
    assert f"plug-in: method mine changed: {before} in the baseline, now " in changed.out
    refused = command("gate", "own.toml", "--baseline", "baselines/own.json")
    assert refused.code == 2
    assert "unknown metric 'own_bias'" in refused.err
