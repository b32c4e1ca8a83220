"""Differences between the environments of two sets of results: processors and libraries round differently."""

from collections.abc import Mapping
from typing import Any

# Times are compared only where all of these are equal.
MACHINE = ("cpu", "vectors", "cores", "threads", "device", "device_name")
UNIMPORTANT = ("matplotlib", "seaborn", "pandas", "SQLAlchemy", "uqbench")  # no value of a cell depends on them


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return one line per fact that differs."""
    names = sorted({*then, *now} - set(UNIMPORTANT))
    changed = [name for name in names if then.get(name) != now.get(name)]
    return [f"{name}: {_text(then.get(name))} in the baseline, now {_text(now.get(name))}" for name in changed]


def same_machine(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether times measured in the two environments can be compared."""
    return all(then.get(name) == now.get(name) for name in MACHINE)


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value)
