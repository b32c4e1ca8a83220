"""Compare the last two saved benchmark runs by ratio; `make bench-compare` saves one and runs this.

    python tools/compare_benchmarks.py .benchmarks 1.3

The fastest round of each case counts: other work on the machine disturbs it least. The exit code is 1 where a ratio is
above the limit.
"""

import json
import sys
from pathlib import Path


def fastest(path: Path) -> dict[str, float]:
    """Return the milliseconds of the fastest round of each case of a saved run."""
    return {each["name"]: each["stats"]["min"] * 1000 for each in json.loads(path.read_text("utf-8"))["benchmarks"]}


def compare(folder: Path, limit: float) -> int:
    """Print old and new times with their ratio, the slower ones marked; return the exit code."""
    runs = sorted(folder.glob("*/*.json"), key=lambda path: path.name)  # pytest-benchmark numbers them
    if len(runs) < 2:
        print(f"saved in {folder}; there is no earlier run to compare with")
        return 0
    before, now = (fastest(path) for path in runs[-2:])
    slower = 0
    for name in sorted(now.keys() & before.keys()):
        ratio = now[name] / before[name]
        slower += ratio > limit
        mark = "SLOWER" if ratio > limit else ""
        print(f"{name:<60} {before[name]:10.2f} ms -> {now[name]:10.2f} ms  {ratio:5.2f}x  {mark}".rstrip())
    print(f"{slower} of {len(now.keys() & before.keys())} hot paths are slower than {limit:g}x of {runs[-2].name}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(compare(Path(sys.argv[1]), float(sys.argv[2])))
