"""Labelled variants of one plug-in in a suite, and sweeps: variants that differ in one number alone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.api import Results, spec_or_none

Options = Mapping[str, Any]
FEWEST_LEVELS = 3  # of a curve
WIDTH, COVERAGE = "mpiw", "picp"  # the axes of a trade-off


@dataclass(frozen=True)
class Sweep:
    """The labels of one plug-in that differ in one option, with its values in ascending order."""

    plugin: str
    option: str
    levels: Mapping[str, float]


def variants_of(cells: pd.DataFrame) -> dict[str, dict[str, Options]]:
    """Return the labels of each plug-in with the options they stand for."""
    found: dict[str, dict[str, Options]] = {}
    for label, spec in cells.dropna(subset="spec").groupby("method", sort=False)["spec"].first().items():
        if (known := spec_or_none(spec)) is not None:
            found.setdefault(known.method.name, {})[str(label)] = known.method.options
    return found


def sweep_of(plugin: str, variants: Mapping[str, Options]) -> Sweep | None:
    """Return the sweep that a plug-in's labels are; None where they are few, or differ otherwise than by one number."""
    names = sorted({name for options in variants.values() for name in options})
    values = {name: {json.dumps(options.get(name)) for options in variants.values()} for name in names}
    changing = [name for name in names if len(values[name]) > 1]
    if len(changing) != 1 or len(variants) < FEWEST_LEVELS:
        return None
    levels: dict[str, float] = {}
    for label, options in variants.items():
        level = options.get(changing[0])
        if isinstance(level, bool) or not isinstance(level, int | float) or level in levels.values():
            return None
        levels[label] = float(level)
    return Sweep(plugin, changing[0], dict(sorted(levels.items(), key=lambda item: item[1])))


def swept(results: Results) -> list[Sweep]:
    """Return the sweeps of a suite whose every label has the width and the coverage of intervals."""
    found = [sweep_of(plugin, variants) for plugin, variants in variants_of(results.cells).items()]
    if not any(found):
        return []
    rows = results.frame[results.frame["metric"].isin([WIDTH, COVERAGE])]
    present = rows.groupby("method")["metric"].nunique()
    return [sweep for sweep in found if sweep and all(present.get(label, 0) == 2 for label in sweep.levels)]
