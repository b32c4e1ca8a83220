"""The section on sensitivity: which labels are levels of one method, and that methods are compared at equal width."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.api import Figure, Section, Table, Text
from bench.reports._trade_off import OWN, RANGE, at_equal_width, curve_of, settings_against
from bench.reports._variants import sweep_of, swept
from bench.reports.mcni_ablation import MCNIAblation
from bench.reports.sensitivity import Sensitivity
from bench.testing.report_results import ExampleResults
from tests.fixtures.results import cell, spec

SEEDS = 6
RATES = {"drop-1": 0.1, "drop-2": 0.2, "drop-5": 0.5}
LEVELS = {"noise-a": 0.02, "noise-b": 0.05, "noise-c": 0.2}
GAIN = 0.1  # in coverage at equal width
SCATTER = np.array([0.01, -0.02, 0.0, 0.02, -0.01, 0.005])


def results(gain: float = GAIN, wider: float = 1.0, **changes: Any) -> ExampleResults:
    """Two methods whose coverage is 0.3 + 0.2 width, of the second `gain` more; widths depend on level and seed."""
    rows = []
    for plugin, levels, option in (("drop", RATES, "rate"), ("noise", LEVELS, "alpha")):
        for label, level in levels.items():
            for seed in range(SEEDS):
                width = (1 + 0.1 * seed) * (2 * level if plugin == "drop" else 5 * level * wider)
                more = 0.0 if plugin == "drop" else gain + SCATTER[seed]
                values = {"mpiw": width, "picp": 0.3 + 0.2 * width + more, "winkler": 9 - width - more, "crps": 1.0}
                about = cell(spec("toy", plugin, seed, options={option: level, "per_row": False})).spec
                rows += [(label, seed, metric, value, about) for metric, value in values.items()]
    columns = ["method", "seed", "metric", "value", "spec"]
    frame = pd.DataFrame(rows, columns=columns).assign(suite="held", dataset="toy", split=0)
    cells = frame.drop_duplicates(["method", "seed"]).drop(columns=["metric", "value"]).assign(status="ok")
    usual: dict[str, Any] = {"baseline": "drop-2", "metrics": ["picp", "mpiw"], "cells": cells}
    usual["frame"] = frame.drop(columns="spec")
    return ExampleResults(**usual | changes)


def section(held: ExampleResults) -> Section:
    found = Sensitivity().section(held)
    assert found is not None
    return found


def blocks(held: ExampleResults, kind: Any) -> list[Any]:
    return [block for block in section(held).blocks if isinstance(block, kind)]


def test_levels_are_labels_that_differ_in_one_number() -> None:
    found = sweep_of(
        "m", {"c": {"rate": 0.3, "law": "a"}, "a": {"rate": 0.1, "law": "a"}, "b": {"rate": 1, "law": "a"}}
    )
    assert found is not None
    assert (found.option, found.levels) == ("rate", {"a": 0.1, "c": 0.3, "b": 1.0})
    assert sweep_of("m", {"a": {"rate": 0.1}, "b": {"rate": 0.2}}) is None, "two are no curve"
    assert sweep_of("m", {name: {"law": name} for name in "abc"}) is None
    assert sweep_of("m", {name: {"on": name == "a"} for name in "abc"}) is None
    three = {name: {"rate": 0.1 * place, "law": name} for place, name in enumerate("abc")}
    assert sweep_of("m", three) is None


def test_at_equal_width_a_known_gain_is_found_at_every_width() -> None:
    held = results()
    drop, noise = (curve_of(sweep, held.frame) for sweep in swept(held))
    assert drop is not None
    assert noise is not None
    found = at_equal_width(noise, drop, "toy", held.cells)
    # Every repeat reaches the widest of the narrowest and the narrowest of the widest.
    assert [at.width for at in found] == ["0.3", "0.405", "0.548", "0.74", "1", RANGE, OWN]
    for at in found:
        assert at.rows["picp"].difference == pytest.approx(GAIN + SCATTER.mean())
        assert at.rows["picp"].verdict == "better"
        assert at.rows["winkler"].difference == pytest.approx(-GAIN - SCATTER.mean())
        assert at.rows["crps"].difference == pytest.approx(0.0)
    assert found[0].rows["picp"].mean_b == pytest.approx(0.3 + 0.2 * 0.3)
    interval = found[-1].rows["picp"].interval
    assert interval is not None
    assert interval.high - interval.low < 0.05  # paired: widths differ by half from seed to seed


def test_levels_beyond_the_widest_are_not_interpolated() -> None:
    """A level that covers nothing with narrower intervals must not lower the curve of the method that has it."""
    held = results()
    back = held.frame["method"] == "drop-5"
    narrow = held.frame["value"].where(held.frame["metric"] == "mpiw", 0.0) * 0.3
    turned = held.frame.assign(value=held.frame["value"].where(~back, narrow))
    drop, noise = (curve_of(sweep, turned) for sweep in swept(held))
    assert drop is not None
    assert noise is not None
    assert list(drop.widening().sweep.levels) == ["drop-1", "drop-2"]
    for at in at_equal_width(noise, drop, "toy", held.cells):
        assert at.rows["picp"].difference == pytest.approx(GAIN + SCATTER.mean())


def test_a_method_with_one_width_is_compared_at_it() -> None:
    held = results()
    narrow = held.frame["method"].isin(list(LEVELS)) & (held.frame["metric"] == "mpiw")
    cover = held.frame["method"].isin(list(LEVELS)) & (held.frame["metric"] == "picp")
    seeds = held.frame["seed"]
    value = held.frame["value"].where(~narrow, 0.3 + 0.2 * seeds).where(~cover, 0.3 + 0.2 * (0.3 + 0.2 * seeds) + GAIN)
    drop, noise = (curve_of(sweep, held.frame.assign(value=value)) for sweep in swept(held))
    assert drop is not None
    assert noise is not None
    (own,) = at_equal_width(noise, drop, "toy", held.cells)
    assert (own.width, own.rows["picp"].pairs) == (OWN, 6)
    assert own.rows["picp"].difference == pytest.approx(GAIN)


def test_no_gain_is_no_difference_and_says_what_would_have_been_seen() -> None:
    (text,) = [
        block.text for block in blocks(results(gain=-float(SCATTER.mean())), Text) if "widths from" in block.text
    ]
    assert "coverage" in text
    assert "no difference shown (these repeats show" in text or "equivalent" in text
    assert "better" not in text
    (text,) = [block.text for block in blocks(results(), Text) if "widths from" in block.text]
    assert "coverage +0.101" in text
    assert ", better" in text


def test_what_would_have_been_seen_is_no_power_of_ten() -> None:
    held = results(gain=-float(SCATTER.mean()))
    large = held.frame["metric"] == "winkler"
    held.frame.loc[large, "value"] = 500 + 400 * np.random.default_rng(0).normal(size=int(large.sum()))
    texts = " ".join(block.text for block in blocks(held, Text))
    assert "these repeats show" in texts
    assert "e+0" not in texts


def test_settings_are_counted_by_width_and_coverage_together() -> None:
    held = results()
    drop, noise = (curve_of(sweep, held.frame) for sweep in swept(held))
    assert drop is not None
    assert noise is not None
    found = settings_against(noise, drop, held.frame, held.cells)
    # Widths of noise are 0.1, 0.25, 1 and of dropout 0.2, 0.4, 1, times 1 to 1.5; its coverage is 0.1 higher.
    assert sum(means for means, _ in found.counts.values()) == 9
    assert found.counts["narrower", "higher"][0] == 3  # 0.1 against 0.2 and 0.4, 0.25 against 0.4: the gain outweighs
    assert found.counts["narrower", "lower"][0] == 2  # against 1
    assert found.counts["wider", "lower"] == (0, 0)
    assert found.counts["wider", "higher"] == (4, 3)  # of the same width in every repeat: nothing is shown
    assert found.tests == 18


def test_widths_that_do_not_meet_are_not_compared() -> None:
    texts = [block.text for block in blocks(results(wider=100.0), Text)]
    assert any("cannot be compared at equal width" in text for text in texts)


def test_one_method_alone_is_drawn_and_not_compared() -> None:
    held = results()
    frame, cells = (table[table["method"].isin(list(LEVELS))] for table in (held.frame, held.cells))
    alone = results(frame=frame, cells=cells)
    assert any("nothing to compare with" in block.text for block in blocks(alone, Text))
    assert [block.name for block in blocks(alone, Figure)] == ["sensitivity-toy"]


def test_the_figure_has_a_curve_per_method_with_intervals() -> None:
    (figure,) = blocks(results(), Figure)
    assert figure.data is not None
    coverage = figure.data[figure.data["metric"] == "picp"]
    assert coverage["method"].tolist() == ["drop"] * 3 + ["noise"] * 3
    assert coverage["level"].tolist() == [*RATES.values(), *LEVELS.values()]
    assert (coverage["low"] < coverage["value"]).all()
    assert {table.name for table in blocks(results(), Table)} == {"equal-width-toy-noise", "settings-toy", "levels-toy"}


def test_suites_without_levels_have_no_section_and_levels_are_no_ablation() -> None:
    held = results()
    few = held.cells["method"].isin(["drop-1", "drop-2", "noise-a"])
    assert Sensitivity().section(results(cells=held.cells[few])) is None
    assert MCNIAblation().section(held) is None
