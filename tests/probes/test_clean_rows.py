"""What probes that score shifted rows store of the clean ones: the values by group, and why a metric has none."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.api import Split
from bench.metrics import catalogue
from bench.probes.row_shift import RowShift
from bench.probes.shift import Shift
from bench.spec.cell import Outcome
from bench.spec.protocol import Protocol

USUAL = Protocol().probe
FEW = 70


def by_group(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if "@group=" in name or name.endswith("@worst-group")}


@pytest.mark.parametrize("kind", ["row-shift", "shift"])
def test_clean_rows_are_scored_by_group_as_in_the_ordinary_probe(
    kind: str, ask: Callable[..., list[Outcome]], load: Callable[..., Split]
) -> None:
    split = load("diabetes") if kind == "row-shift" else load()
    split = replace(split, test_groups=np.array(["north", "south"])[np.arange(len(split.test_y)) % 2])
    probe: Any = RowShift(shifts=["noise"], severities=[5])
    first = split
    if kind == "shift":
        probe = Shift(corruptions=["contrast"], severities=[5], foreign=[], rows=FEW)
        cut = {name: getattr(split, name)[:FEW] for name in ("test_x", "test_y", "test_groups")}
        first = replace(split, **cut)
    shifted, usual = ask("deterministic", {}, [(probe.spec, split), (USUAL, first)])
    assert by_group(shifted.metrics) == by_group(usual.metrics)
    assert len(by_group(usual.metrics)) > 10
    assert all(name.count("@") <= 1 for name in shifted.metrics)
    assert shifted.training["left_out"] == usual.training["left_out"]


def test_every_metric_of_the_task_has_a_value_or_a_reason(
    ask: Callable[..., list[Outcome]], load: Callable[..., Split]
) -> None:
    (outcome,) = ask("deterministic", {}, [(USUAL, load("diabetes"))])
    reasons = {name: why for why, names in outcome.training["left_out"].items() for name in names}
    every = {n: m for n, m in catalogue().items() if m.compute is not None and not m.on_request}
    own = {n for n, m in every.items() if m.task in ("any", "regression")}
    assert reasons.keys() | outcome.metrics.keys() == own
    assert not reasons.keys() & outcome.metrics.keys()
    assert reasons["nll_mc"] == "there is one draw"
    assert reasons["picp"] == "one draw that states no variance has none"
