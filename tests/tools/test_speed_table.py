"""The tables of speed are made of the rows that the benchmark writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools import speed_table

Row = dict[str, Any]


def row(name: str, method: str, seconds: float, **parts: Any) -> Row:
    """A row of a million steps, which a loop would take 400 s for by the clock, 300 s of the processor."""
    warm: Row = {"member_steps": 1_000_000, "slot_steps": 1_250_000, "seconds": seconds, "cpu_seconds": seconds / 2}
    warm |= {"graphs_compiled": 0, "loop_us": [300.0, 500.0], "loop_cpu_us": [300.0, 300.0]}
    return {"set": name, "method": method, "warm": warm, **parts}


JAX = {"seconds": 4.0, "cpu_seconds": 3.0, "member_steps": 1_000_000, "compile_seconds": 11.0, "whole": False}
ROWS = [row("boston", "a", 10.0, jax=JAX), row("boston", "b", 40.0), row("yacht", "a", 20.0)]


def test_ratios_are_those_of_the_rows() -> None:
    small = speed_table.small_table(ROWS)
    assert small == ["| set | a | b |", "| --- | --- | --- |", "| boston | 40x | 10x |", "| yacht | 20x | – |"]
    first = dict(
        zip(*([cell.strip() for cell in line.strip("|").split("|")] for line in _head_and_first()), strict=True)
    )
    assert first["seconds"] == "10.0 *"  # half of the time went to others
    assert (first["slots in use"], first["us per member-step"], first["loop, us"]) == ("80 %", "10.0", "400")
    assert (first["JAX, us"], first["times JAX"]) == ("4.0 (a part)", "0.40x")
    assert "cold" not in " ".join(first)  # no row has it
    text = speed_table.large(ROWS)
    assert "over 3 cells is **20.0 times the loop** (30.0 by processor time)" in text
    assert "the least is 10, of `b` on boston" in text
    # The faster half of each loop took 300 us: 300 / 10, 300 / 40 and 300 / 20.
    assert "would be 15.0 times the loop, the least 7.5." in text
    assert "JAX after 11 to 11 s of compiling takes 0.40 to 0.40 times our time" in text
    assert "geometric mean is 20.0x. [docs" in speed_table.in_readme(ROWS)


def _head_and_first() -> list[str]:
    lines = speed_table.large_table(ROWS)
    return [lines[0], lines[2]]


def test_by_processor_time() -> None:
    rows = [speed_table.in_processor_time(one) for one in ROWS]
    assert speed_table.small_table(rows)[2] == "| boston | 60x | 15x |"
    assert "30.0 times the loop** by processor time;" in speed_table.large(rows)
    assert "geometric mean is 30.0x, by processor time." in speed_table.in_readme(rows)


def test_without_jax_and_with_cold_runs() -> None:
    cold = row("yacht", "a", 50.0)["warm"]
    rows = [{**ROWS[2], "cold": cold}, ROWS[1]]
    text = speed_table.large(rows)
    assert "| 50.0, 8x |" in text
    assert "over 1 cell is 8.0 times the loop, the least 8.00." in text
    assert "JAX" not in text + speed_table.in_readme(rows)


def test_a_cold_run_alone_is_added_to_its_row(tmp_path: Path) -> None:
    cold = {"set": "boston", "method": "a", "cold": row("boston", "a", 50.0)["warm"]}
    assert "| boston | a | 50.0, 8x |" in speed_table.large([cold])
    earlier, later = tmp_path / "earlier.jsonl", tmp_path / "later.jsonl"
    earlier.write_text(json.dumps(ROWS[0]) + "\n", "utf-8")
    later.write_text(json.dumps(cold) + "\n", "utf-8")
    assert speed_table.read_rows(earlier, later) == [{**ROWS[0], "cold": cold["cold"]}]
    later.write_text(json.dumps(cold) + "\n" + json.dumps(ROWS[0]) + "\n", "utf-8")
    assert speed_table.read_rows(earlier, later) == [ROWS[0]]  # an earlier cold run is not of the same version


def test_rows_are_kept_and_both_pages_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, kept = tmp_path / "rows.jsonl", tmp_path / "results" / "uci-speed.jsonl"
    kept.parent.mkdir()
    (tmp_path / "docs").mkdir()
    for name, (part, _) in speed_table.PARTS.items():
        (tmp_path / name).write_text(f"before\n<!-- {part}: begin -->\nold\n<!-- {part}: end -->\nafter\n", "utf-8")
    earlier = {**ROWS[0], "warm": {**ROWS[0]["warm"], "seconds": 1.0}}
    measured.write_text("".join(json.dumps(one) + "\n" for one in (earlier, *ROWS)), "utf-8")
    monkeypatch.setattr(speed_table, "ROOT", tmp_path)
    monkeypatch.setattr(speed_table, "ROWS", kept)
    monkeypatch.setattr("sys.argv", ["speed_table", str(measured)])
    speed_table.main()
    assert speed_table.read_rows(kept) == ROWS  # of two rows for one cell the later one
    for name in speed_table.PARTS:
        text = (tmp_path / name).read_text("utf-8")
        assert text == speed_table.page(name, text, ROWS)
        assert "40x" in text
        assert "old" not in text
        assert text.endswith("after\n")
