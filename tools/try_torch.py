"""Tries another version of torch: makes an environment with it from nothing and runs tests in a copy of the tree.

    python -m tools.try_torch 2.12.1
    python -m tools.try_torch 2.14.1 tests/training tests/methods

Without tests, those that 'make test-quick' runs. PyTorch's index of CPU builds is asked; where it has none, the command
stops, because a build with CUDA brings gigabytes. `UQBENCH_TORCH_INDEX` names another index.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INDEX = "https://download.pytorch.org/whl/cpu"
QUICK = ["tests", "-m", "not slow"]


def with_any_torch(project: str) -> str:
    """Return the text of pyproject.toml without bounds on torch and torchvision."""
    text, count = re.subn(r'"(torch|torchvision)>=[^"]*"', r'"\1"', project)
    if not count:
        raise SystemExit("pyproject.toml: no range of torch was found")
    return text


def main() -> int:
    """Return 0 if the tests passed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("version", help="of torch, such as 2.12.1")
    arguments.add_argument("tests", nargs="*", default=QUICK, help="what pytest is called with")
    given, rest = arguments.parse_known_args()
    index = os.environ.get("UQBENCH_TORCH_INDEX", INDEX)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        tree = place / "tree"
        subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
        project = tree / "pyproject.toml"
        project.write_text(with_any_torch(project.read_text("utf-8")), "utf-8")
        pins = [line for line in (tree / "constraints.txt").read_text("utf-8").splitlines() if line[:5] != "torch"]
        (place / "pins.txt").write_text("\n".join(pins) + "\n", "utf-8")
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / "bin" / "python"
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        cpu = subprocess.run([*pip, "--no-deps", "--index-url", index, f"torch=={given.version}+cpu"], check=False)
        if cpu.returncode:
            raise SystemExit(f"no build of torch {given.version} for CPUs at {index}")
        wanted = [f"torch=={given.version}+cpu", "-e", f"{tree}[test]"]
        subprocess.run([*pip, "-c", str(place / "pins.txt"), "--extra-index-url", index, *wanted], check=True)
        return subprocess.run([python, "-m", "pytest", "-q", *given.tests, *rest], cwd=tree, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
