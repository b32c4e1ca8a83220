"""What else the machine did."""

import os
import time
from pathlib import Path

import pytest

from bench.probes.latency import machine_load as load
from bench.probes.latency.machine_load import OtherProcesses, Throttling


def test_the_share_of_others_is_what_was_busy_and_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    clock, own = [0.0], [0.0]
    monkeypatch.setattr(load, "_STAT", stat)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(time, "process_time", lambda: own[0])
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sysconf", lambda name: 100)
    stat.write_text("cpu 1000 0 0 5000 0 0 0 0 0 0\n", "utf-8")
    others = OtherProcesses()
    clock[0], own[0] = 10.0, 8.0  # 10 s on 4 processors: 40 s, of which 16 were busy and 8 ours
    stat.write_text("cpu 2200 0 300 7400 0 0 0 100 0 0\n", "utf-8")
    assert others.share() == pytest.approx((16 - 8) / 40)


def test_without_the_system_s_word_there_is_no_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_STAT", tmp_path / "none")
    assert OtherProcesses().share() is None


def test_throttling_is_what_was_counted_meanwhile(tmp_path: Path) -> None:
    counts = [tmp_path / f"cpu{k}" / "thermal_throttle" / "core_throttle_count" for k in range(2)]
    for path in counts:
        path.parent.mkdir(parents=True)
        path.write_text("5\n", "utf-8")
    heat = Throttling(tmp_path)
    assert heat.message() == ""
    counts[1].write_text("8\n", "utf-8")
    assert "3 times" in heat.message()
