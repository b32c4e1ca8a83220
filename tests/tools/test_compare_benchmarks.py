"""The comparison of saved benchmark runs."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tools" / "compare_benchmarks.py"


def compared(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), str(folder), "1.3"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def saved(folder: Path, number: int, **seconds: float) -> None:
    path = folder / "Linux" / f"{number:04d}_x.json"
    path.parent.mkdir(exist_ok=True)
    found = [{"name": name, "stats": {"min": value}} for name, value in seconds.items()]
    path.write_text(json.dumps({"benchmarks": found}), "utf-8")


def test_only_what_got_slower_is_marked_with_its_ratio(tmp_path: Path) -> None:
    saved(tmp_path, 1, drawing=9.0, scoring=9.0)
    assert compared(tmp_path).returncode == 0
    saved(tmp_path, 2, drawing=0.010, scoring=0.020, gone=1.0)
    saved(tmp_path, 3, drawing=0.025, scoring=0.021, new=1.0)
    done = compared(tmp_path)
    assert done.returncode == 1
    (line,) = (line for line in done.stdout.splitlines() if "SLOWER" in line)
    assert line.startswith("drawing")
    assert "2.50x" in line
    assert "1 of 2 hot paths" in done.stdout
