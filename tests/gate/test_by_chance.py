"""What fails a gate without a test says how often it is a false alarm between unrelated runs, as in docs/gate.md."""

import math
from pathlib import Path

import numpy as np

from bench.gate.decide import gate
from bench.gate.output import gate_lines
from bench.gate.verdicts import BY_CHANCE, Rules, compare
from bench.stats.tests import Array
from tests.fixtures.gate import baseline, measured, spread

PAGE = Path(__file__).parents[2] / "docs" / "gate.md"
PLACE = ("toy", "m")


def rate(row: str) -> float:
    """Return the first number of the one row of the page that begins like this."""
    (line,) = (line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {row}"))
    return float(line.split("|")[2])


def notes(before: Array, after: Array, status: str = "", *, few: bool = False) -> str:
    """Return what the gate says; with a status, the cell of the first seed ended in it."""
    lost = {PLACE: {status: (0,)}} if status else {}
    now = measured({PLACE: {"rmse": after}}, lost=lost)
    return " ".join(row.note for row in compare(measured({PLACE: {"rmse": before}}), now, Rules(last_look=few)))


def test_the_rates_are_those_of_the_page() -> None:
    diverging = [rate(f"10 seeds; one method on one dataset diverges in {share}%") for share in (1, 5)]
    assert BY_CHANCE["diverged"].startswith("{:g} to {:g} % of gates".format(*diverging))
    skewed = [rate("very skewed (lognormal, sigma 1"), rate("lognormal, sigma 2")]
    assert BY_CHANCE["outlier"].startswith("{:g} to {:g} % of gates".format(*skewed))
    few = [rate(f"{seeds} seeds: too few for a test") for seeds in (3, 4)]
    assert BY_CHANCE["few"] == "{:g} % of gates with 3 seeds, {:g} % with 4".format(*few)


def test_long_notes_are_wrapped_below_their_row() -> None:
    before = spread(1.0, 0.1)
    now = measured({PLACE: {"rmse": np.where(np.arange(10) == 0, 100.0, before)}})
    made = gate(baseline(measured({PLACE: {"rmse": before}})), lambda seeds, places: now, Rules())
    _, row, *lines = gate_lines(made)
    notes = [line for line in lines if line.startswith("    ")]
    assert row.startswith("regressed")
    assert len(notes) > 1
    assert max(map(len, notes)) <= 110
    assert " ".join(line.strip() for line in notes) == made.rows[0].note


def test_every_rule_without_a_test_says_its_rate() -> None:
    before = spread(1.0, 0.1)
    first = np.arange(10) == 0
    lost = np.where(first, math.nan, before)
    assert BY_CHANCE["diverged"] in notes(before, lost, "diverged")
    assert "may be chance" not in notes(before, lost, "failed")
    assert BY_CHANCE["infinite"] in notes(before, np.where(first, math.inf, before))
    assert BY_CHANCE["outlier"] in notes(before, np.where(first, 100.0, before))
    assert BY_CHANCE["few"] in notes(before[:4], before[:4] + 10.0, few=True)
    assert "may be chance" not in notes(before, before + 10.0 + 0.1 * spread(0.0, 1.0))  # a test decides
