"""How long the gate over suite smoke takes, as a CI job sees it: the whole command, everything run anew.

The bar is 60 s on two cores.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def timed(*arguments: str, folder: Path) -> tuple[float, "subprocess.CompletedProcess[str]"]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    return time.perf_counter() - began, done


def test_the_gate_over_smoke(tmp_path: Path) -> None:
    seconds, done = timed("baseline", "smoke", "--out", "smoke.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    print(f"\nbaseline: {seconds:.1f} s")
    for options in ([], ["--sequential"]):
        seconds, done = timed("gate", "smoke", "--baseline", "smoke.json", *options, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        print(f"gate {' '.join(options)}: {seconds:.1f} s; {done.stdout.strip().splitlines()[-1]}")
