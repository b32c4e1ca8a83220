"""The ablation report: whom it compares with whom, and that its numbers are paired differences."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.api import Figure, Section, Table
from bench.reports._variants import variants_of
from bench.reports.mcni_ablation import MCNIAblation, change, middle
from bench.stats import Measure, compare
from bench.testing.report_results import ExampleResults
from tests.fixtures.results import cell, spec


def held(values: dict[str, list[float]], options: dict[str, dict[str, Any]]) -> ExampleResults:
    """Results of one method, "noise", under several labels with options of their own."""
    rows = [(m, seed, value) for m, numbers in values.items() for seed, value in enumerate(numbers)]
    frame = pd.DataFrame(rows, columns=["method", "seed", "value"]).assign(suite="held", dataset="toy", split=0)
    specs = {method: cell(spec("toy", "noise", options=own)).spec for method, own in options.items()}
    cells = frame.drop(columns="value").assign(spec=[specs[method] for method, _, _ in rows], status="ok")
    return ExampleResults(metrics=["rmse", "nll"], frame=frame.assign(metric="rmse"), cells=cells)


BASE = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 2.5])
STEPS = np.array([0.1, 0.2, 0.3, 0.2, 0.15, 0.25])
OPTIONS = {"loud": {"law": "a", "level": 2}, "plain": {"law": "a", "level": 1}, "other": {"law": "b", "level": 1}}
VALUES = {"loud": list(BASE + STEPS), "plain": list(BASE), "other": list(BASE - 0.5)}


def section(results: ExampleResults, **options: Any) -> Section | None:
    return MCNIAblation(**options).section(results)


def test_the_reference_is_the_variant_in_the_middle() -> None:
    assert middle(OPTIONS) == "plain"
    assert change(OPTIONS["loud"], OPTIONS["plain"]) == "level = 2"
    assert change(OPTIONS["plain"], OPTIONS["plain"]) == "reference"
    assert variants_of(held(VALUES, OPTIONS).cells) == {"noise": OPTIONS}


def test_differences_are_paired_by_seed() -> None:
    found = section(held(VALUES, OPTIONS))
    assert found is not None
    (table,) = [block for block in found.blocks if isinstance(block, Table)]
    cells = dict(zip(table.data["variant"], table.data["rmse"], strict=True))
    assert cells["plain"] == f"{BASE.mean():.3f}"
    # The intervals are those of a comparison: of paired differences, which scatter far less than the seeds.
    results = held(VALUES, OPTIONS)
    (row,) = compare(results.frame, "loud", "plain", [Measure("rmse")], cells=results.cells).rows
    assert row.interval is not None
    assert row.interval.high - row.interval.low < 0.25
    ends = f"{row.interval.low:.3f} to {row.interval.high:.3f}"  # all numbers of a column have the same places
    assert cells["loud"] == f"{(BASE + STEPS).mean():.3f}\n(+0.200, {ends})"
    assert cells["other"] == f"{BASE.mean() - 0.5:.3f}\n(-0.500, -0.500 to -0.500)"


def test_the_figure_has_the_intervals_and_claims_nothing() -> None:
    found = section(held(VALUES, OPTIONS))
    assert found is not None
    (figure,) = [block for block in found.blocks if isinstance(block, Figure)]
    assert "better" not in figure.caption
    assert figure.data is not None
    assert figure.data["variant"].tolist() == ["loud", "other"]
    assert figure.data["difference"].tolist() == pytest.approx([STEPS.mean(), -0.5])
    shown = [axis for axis in figure.figure.axes if axis.axison]
    assert [label.get_text() for label in shown[0].get_yticklabels()] == ["level = 2", "law = b"]


@pytest.mark.parametrize(("kept", "options"), [(["plain", "loud"], {}), (["plain", "loud", "other"], {"variants": 4})])
def test_too_few_variants_are_no_ablation(kept: list[str], options: dict[str, int]) -> None:
    assert section(held({m: VALUES[m] for m in kept}, {m: OPTIONS[m] for m in kept}), **options) is None
