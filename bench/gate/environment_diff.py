"""Where two sets of results were made, and what differs: other processors and libraries round differently."""

from collections.abc import Mapping
from typing import Any

# Times can be compared where all of these are the same.
MACHINE = ("cpu", "vectors", "cores", "threads", "device", "device_name")
UNIMPORTANT = ("matplotlib", "seaborn", "pandas", "SQLAlchemy", "uqbench")  # no number of a cell comes from them


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what differs, a fact a line."""
    names = sorted({*then, *now} - set(UNIMPORTANT))
    changed = [name for name in names if then.get(name) != now.get(name)]
    return [f"{name}: {_said(then.get(name))} in the baseline, now {_said(now.get(name))}" for name in changed]


def same_machine(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether times that were taken here and there can be compared."""
    return all(then.get(name) == now.get(name) for name in MACHINE)


def _said(value: Any) -> str:
    return "unknown" if value is None else str(value)
