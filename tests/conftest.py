"""Loads the shared fixtures, and orders the tests."""

import gc
import os
import tempfile
from pathlib import Path

import pytest

# One that another imports stands before it: pytest marks a module before its import.
SUBJECTS = (
    "commands",
    "data",
    "oracles",
    "results",
    "sites",
    "openml",
    "shown",
    "stores",
    "suites",
    "runs",
    "training",
    "gate",
)
pytest_plugins = [f"tests.fixtures.{subject}" for subject in SUBJECTS]

# What is imported stays: looking through it for garbage again and again takes a fifth of the time to collect the tests.
gc.disable()

# Not the user's own; graphs that were compiled stay there for the next run of the tests.
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"uqbench-tests-{os.getuid()}"))

ROOT = Path(__file__).resolve().parents[1]

# The files that take longest, begun first, so that no process is left alone with one of them at the end.
LONG = (
    "tests/testing/test_builtins",
    "tests/browser",
    "tests/training/test_stack.py",
    "tests/run",
    "tests/training",
    "tests/cli",
    "tests/tools/test_validity_rates",
    "tests/test_",
    "tests/store",
)

# A test that starts a process, a server or a browser is slow; others that take more than half a second say so.
SLOW_FIXTURES = {"uqbench", "python", "browser", "server", "cluster"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by its fixtures, and put the longest files first; pytest-xdist sorts by the number of tests."""
    for item in items:
        values = getattr(item, "callspec", None) and item.callspec.params.values()  # type: ignore[attr-defined]
        if SLOW_FIXTURES & set(getattr(item, "fixturenames", ())) or "postgresql" in (values or ()):
            item.add_marker("slow")
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    path = item.path.relative_to(ROOT).as_posix()
    return next((place for place, start in enumerate(LONG) if path.startswith(start)), len(LONG))


def pytest_collection_finish() -> None:
    """Look for garbage again, but not among what was imported."""
    gc.freeze()
    gc.enable()
