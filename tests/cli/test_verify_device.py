"""`uqbench verify device`: its table, its file, and what it says where there is no such device."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from bench.cli.doctor import examine
from bench.cli.plugins import verify
from bench.errors import UserError
from bench.plugins.registry import Registry


def test_the_result_is_a_table_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "device.json"
    result = CliRunner().invoke(
        verify, ["device", "cpu", "--only", "two-clocks", "--only", "out-of-memory", "--out", str(file)]
    )
    assert result.exit_code == 0, result.output
    first, second, last = result.output.splitlines()
    assert first.startswith("-        two-clocks: not applicable: ")
    assert second.startswith("ok       out-of-memory: it computes the same after running out of memory (")
    assert last == "device cpu: 1 ok, 1 not applicable"
    stored = json.loads(file.read_text("utf-8"))
    assert stored["ok"]
    assert (stored["kind"], stored["name"], stored["facts"]["device"]) == ("device", "cpu", "cpu")
    assert [check["check"] for check in stored["checks"]] == ["two-clocks", "out-of-memory"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["device", "tpu"], "unknown device 'tpu'"),
        (["device", "cpu", "--only", "placment"], "did you mean placement"),
        (["device", "cpu", "--data", "."], "leave out --plugin and --data"),
    ],
)
def test_misuse_is_one_line(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(verify, arguments)
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_absent_is_one_line() -> None:
    error = CliRunner().invoke(verify, ["device", "cuda"]).exception
    assert isinstance(error, UserError)
    assert "sees no cuda device here" in str(error)


def test_doctor_points_to_it(tmp_path: Path) -> None:
    device = next(f for f in examine(Registry(), str(tmp_path / "s.db")) if f.subject == "device")
    assert "uqbench verify device" in device.text
