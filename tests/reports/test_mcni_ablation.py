"""The ablation report: whom it compares with whom, and that its numbers are paired differences."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.api import Figure, Section, Table
from bench.reports.mcni_ablation import MCNIAblation, change, middle, variants_of
from bench.spec.protocol import Protocol
from bench.spec.spec import CellSpec, PluginSpec


class Held:
    """Results of a suite, in memory."""

    suite = "held"
    title = "Held"
    baseline: str | None = None

    def __init__(self, values: dict[str, list[float]], options: dict[str, dict[str, Any]]) -> None:
        self.metrics = ["rmse", "nll"]
        specs = {m: self._spec(own) for m, own in options.items()}
        rows = [(m, seed, value) for m, numbers in values.items() for seed, value in enumerate(numbers)]
        frame = pd.DataFrame(rows, columns=["method", "seed", "value"])
        frame = frame.assign(suite="held", dataset="toy", split=0)
        self.cells = frame.drop(columns="value").assign(spec=[specs[m] for m, _, _ in rows])
        self.frame = frame.assign(metric="rmse")
        self.remarks = self.failures = pd.DataFrame()

    @staticmethod
    def _spec(options: dict[str, Any]) -> str:
        method, protocol = PluginSpec("noise", options=options), Protocol()
        toy = PluginSpec("toy")
        return CellSpec(dataset=toy, data="x", method=method, protocol=protocol, split=0, seed=0, harness=2).text

    def curves(self, key: str) -> None:
        return None

    def arrays(self, key: str) -> dict[str, Any]:
        return {}


BASE = np.array([1.0, 3.0, 2.0, 5.0])
STEPS = np.array([0.1, 0.2, 0.3, 0.2])
OPTIONS = {"loud": {"law": "a", "level": 2}, "plain": {"law": "a", "level": 1}, "other": {"law": "b", "level": 1}}
VALUES = {"loud": list(BASE + STEPS), "plain": list(BASE), "other": list(BASE - 0.5)}


def section(results: Held, **options: Any) -> Section | None:
    return MCNIAblation(**options).section(results)


def test_the_reference_is_the_variant_in_the_middle() -> None:
    assert middle(OPTIONS) == "plain"
    assert change(OPTIONS["loud"], OPTIONS["plain"]) == "level = 2"
    assert change(OPTIONS["plain"], OPTIONS["plain"]) == "reference"
    assert variants_of(Held(VALUES, OPTIONS).cells) == {"noise": OPTIONS}


def test_differences_are_paired_by_seed() -> None:
    found = section(Held(VALUES, OPTIONS))
    assert found is not None
    (table,) = [block for block in found.blocks if isinstance(block, Table)]
    cells = dict(zip(table.data["variant"], table.data["rmse"], strict=True))
    assert cells["plain"] == f"{BASE.mean():.4g}"
    # The seeds scatter by 1.7, the differences by 0.08: unpaired, the error would be twenty times as large.
    assert cells["loud"] == f"{(BASE + STEPS).mean():.4g} (+0.2 ± {STEPS.std(ddof=1) / 2:.1g})"
    assert cells["other"] == f"{BASE.mean() - 0.5:.4g} (-0.5 ± 0)"


def test_the_figure_says_which_variants_are_better() -> None:
    values = VALUES | {"other": list(BASE - STEPS)}
    found = section(Held(values, OPTIONS))
    assert found is not None
    (figure,) = [block for block in found.blocks if isinstance(block, Figure)]
    assert "toy, rmse: law = b." in figure.caption
    shown = [axis for axis in figure.figure.axes if axis.axison]
    assert [label.get_text() for label in shown[0].get_yticklabels()] == ["level = 2", "law = b"]


@pytest.mark.parametrize(("kept", "options"), [(["plain", "loud"], {}), (["plain", "loud", "other"], {"variants": 4})])
def test_too_few_variants_are_no_ablation(kept: list[str], options: dict[str, int]) -> None:
    assert section(Held({m: VALUES[m] for m in kept}, {m: OPTIONS[m] for m in kept}), **options) is None
