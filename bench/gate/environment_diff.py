"""Differences between the environments of two sets of results: processors and libraries round differently."""

from collections.abc import Mapping
from typing import Any

# Times are compared only where all of these are equal.
MACHINE = ("cpu", "vectors", "cores", "threads", "device", "device_name")
# No value of a cell depends on them; seaborn is recorded in old stores.
UNIMPORTANT = ("matplotlib", "seaborn", "pandas", "SQLAlchemy", "uqbench")


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return one line per fact that differs."""
    names = sorted({*then, *now} - set(UNIMPORTANT))
    changed = [name for name in names if then.get(name) != now.get(name)]
    return [f"{name}: {_text(then.get(name))} in the baseline, now {_text(now.get(name))}" for name in changed]


def plugin_differences(then: Mapping[str, str] | None, now: Mapping[str, str]) -> list[str]:
    """Return one line per plug-in, other than built-in ones, that is not the baseline's; None: it recorded none."""
    if then is None:
        return [f"{name}: not recorded in the baseline, now {origin}" for name, origin in now.items()]
    lines = []
    for name in sorted({*then, *now}):
        if name not in now:
            lines.append(f"{name}: {then[name]} in the baseline, not used now")
        elif name not in then:
            lines.append(f"{name}: not in the baseline, now {now[name]}")
        elif then[name] != now[name]:
            lines.append(f"{name} changed: {then[name]} in the baseline, now {now[name]}")
    return lines


def form_differences(then: Mapping[tuple[str, str], str], now: Mapping[tuple[str, str], str]) -> list[str]:
    """Return one line per place whose networks were trained in another form than the baseline's."""
    return [
        f"{' '.join(place)}: trained {form} in the baseline, now {now[place]}"
        for place, form in sorted(then.items())
        if now.get(place, form) != form
    ]


def same_machine(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether times measured in the two environments can be compared."""
    return all(then.get(name) == now.get(name) for name in MACHINE)


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value)
