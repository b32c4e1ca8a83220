"""Loads the shared fixtures, and orders the tests."""

import gc
from pathlib import Path

import pytest

# One that another imports stands before it: pytest marks a module before its import.
SUBJECTS = ("commands", "data", "oracles", "results", "stores", "suites", "training", "gate")
pytest_plugins = [f"tests.fixtures.{subject}" for subject in SUBJECTS]

# What is imported stays: looking through it for garbage again and again takes a fifth of the time to collect the tests.
gc.disable()

ROOT = Path(__file__).resolve().parents[1]

# Files of few tests that take long: begun first, so that no process is left alone with one at the end.
LONG = ("tests/faults", "tests/run/executors")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; pytest-xdist would put those with the most tests there."""
    items.sort(key=lambda item: not item.path.relative_to(ROOT).as_posix().startswith(LONG))


def pytest_collection_finish() -> None:
    """Look for garbage again, but not among what was imported."""
    gc.freeze()
    gc.enable()
